"""The Spark session: built from `spark-defaults.conf`, or the user's own, taken as it is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from mainstem.errors import UnsupportedFeature, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mainstem.engines import Jdbc

_NO_SPARK = "Install it by: pip install pyspark delta-spark (docs/dependencies.md names the versions)."
_ZONE = "spark.sql.session.timeZone"
_UTC = frozenset(
    {"UTC", "ETC/UTC", "GMT", "ETC/GMT", "UCT", "ETC/UCT", "ZULU", "Z", "+00:00", "UTC+00:00", "GMT+00:00"}
)
_ADD_JARS = "Start the session with --properties-file spark-defaults.conf, or add its spark.jars.packages to yours."


def defaults() -> dict[str, str]:
    """The properties of the `spark-defaults.conf` that ships with the library."""
    lines = files("mainstem").joinpath("spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(maxsplit=1) for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return {key: value.strip() for key, value in pairs}


def given() -> bool:
    """Whether somebody else decides about the session: spark-submit, Spark Connect, or one that runs already."""
    if (
        "PYSPARK_GATEWAY_PORT" in os.environ
        or "SPARK_REMOTE" in os.environ
        or "DATABRICKS_RUNTIME_VERSION" in os.environ
    ):
        return True
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def build_session(app_name: str = "mainstem", *, master: str | None = None, **conf: str) -> SparkSession:
    """A Spark session that can do what Mainstem needs.

    A given session (spark-submit, notebook, Connect) is returned as it is. Otherwise one is started with
    `spark-defaults.conf`, on `local[*]` unless `master` says otherwise; `conf` wins over the file.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UnsupportedFeature("this needs pyspark, which is not installed.", hint=_NO_SPARK) from error
    if given():
        return SparkSession.builder.getOrCreate()
    # A worker must be the Python that runs here, also where its environment was never activated.
    master = master or "local[*]"
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in {**defaults(), **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def conf_lookup(spark: SparkSession | None) -> Callable[[str], str | None] | None:
    """How settings read `spark.mainstem.*`, also over Connect; None without a session."""
    if spark is None:
        return None
    return lambda key: spark.conf.get(key, None)


def in_utc(find: Callable[[], SparkSession]) -> bool:
    """Whether the session reads moments that name no zone as being in UTC; without a session everybody does.

    Spark is not loaded to learn it: where it was not, there is no session.
    """
    if "pyspark.sql" not in sys.modules:
        return True
    try:
        spark = find()
    except UsageError:
        return True
    return (spark.conf.get(_ZONE, None) or "").upper() in _UTC


def require_delta(spark: SparkSession) -> None:
    """Raise UnsupportedFeature, with the next step, unless the session can read Delta tables."""
    try:
        spark.read.format("delta").load("/mainstem/is/delta/there").schema  # noqa: B018  only the analysis matters
    except Exception as error:
        condition = _condition(error)
        if condition == "DATA_SOURCE_NOT_FOUND":
            raise UnsupportedFeature("this Spark session has no Delta Lake.", hint=_ADD_JARS) from error
        if condition == "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG":
            raise UnsupportedFeature(
                "this Spark session has Delta's jar, but not its extension and catalog.",
                hint="Set spark.sql.extensions and spark.sql.catalog.spark_catalog as spark-defaults.conf does.",
            ) from error
        if condition is None:
            raise


def _condition(error: Exception) -> str | None:
    """Spark's own name of an error. Over py4j some errors arrive as bare Java ones, with the name in brackets."""
    named = getattr(error, "getCondition", lambda: None)()
    if named is None and (found := re.search(r"\[([A-Z0-9_]+)[.\]]", str(error))):
        named = found[1]
    return named.split(".")[0] if named else None


def is_spark_error(error: BaseException) -> bool:
    """Whether Spark itself failed. Over py4j some errors arrive as bare Java ones."""
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")


def require_driver(spark: SparkSession, jdbc: Jdbc) -> None:
    """Raise UnsupportedFeature, with the next step, unless the session can load the catalog's JDBC driver."""
    options = {**jdbc.options(), "query": "SELECT 1 AS one"}
    try:
        spark.read.format("jdbc").options(**options).load()
    except Exception as error:
        # Spark reports a missing class by the class's name alone, over py4j and over Connect alike.
        if "ClassNotFoundException" in f"{type(error).__name__} {error}" and jdbc.driver in str(error):
            raise UnsupportedFeature(f"this Spark session has no JDBC driver {jdbc.driver}.", hint=_ADD_JARS) from error
        # Anything else, such as a database that is down, is said by the read itself, in its place.
