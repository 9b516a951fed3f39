"""How each contender opens a table, and what *cold* means for it.

All of them run in a process (for Spark: a JVM) that has done the same before, so that no code is loaded or compiled in
the measured time, on files that lie in the system's cache. Cold is that nothing of the table is known:

- Mainstem: a new catalog object with new connections to the database; nothing is kept of the table. Its image, where
  there is one, is as far behind the head as the log's checkpoint, and is read from the database every time.
- Delta Spark: `DeltaLog.clearCache()` before each turn, which also drops the cached state of its snapshots.
- delta-rs: a new `DeltaTable`; it keeps nothing beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainstem.bench.lab import TABLE
from mainstem.bench.race import Contender, Turn
from mainstem.catalog import open_catalog
from mainstem.errors import UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAINSTEM = {"postgres": "Mainstem on Postgres", "sqlite": "Mainstem on SQLite", "duckdb": "Mainstem on DuckDB"}
DELTA_RS = "delta-rs"
# What Mainstem gives too. The deletion vector by its fields: `toArrow` fails on the struct where it is null.
_ADD_COLUMNS = (
    "path", "deletionVector.*", "size", "partitionValues", "stats", "dataChange", "modificationTime", "tags",
    "baseRowId", "defaultRowCommitVersion", "clusteringProvider",
)  # fmt: skip
_PARTITIONS = "spark.databricks.delta.snapshotPartitions"


def delta_spark(partitions: int) -> str:
    """Delta Spark's name with a number of snapshot partitions."""
    return f"Delta Spark, {partitions} partitions"


def always(call: Callable[[], int]) -> Turn:
    """A turn that needs no preparation."""

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        yield call

    return turn


def mainstem_open(engine: str, uri: str, *, name: str | None = None, **settings: Any) -> Contender:
    """All rows of the live files to Arrow, from a new catalog object and new connections."""

    def call() -> int:
        with open_catalog(uri, **settings) as catalog:
            return int(catalog.table(TABLE).snapshot().to_arrow().num_rows)

    return Contender(name or MAINSTEM[engine], always(call))


def by_rows(engine: str) -> str:
    """The name of Mainstem without an image."""
    return f"{MAINSTEM[engine]}, by rows"


def mainstem_open_by_rows(engine: str, uri: str) -> Contender:
    """The same for a table that has no image, as a new one or one of few files."""
    return mainstem_open(engine, uri, name=by_rows(engine), image_files=0)


def delta_rs_open(log: Path) -> Contender:
    """All rows of the live files to Arrow, from a new DeltaTable."""
    table = delta_rs()

    def call() -> int:
        import pyarrow as pa

        return int(pa.table(table(str(log)).get_add_actions()).num_rows)

    return Contender(DELTA_RS, always(call))


def delta_rs() -> Any:
    """The class `deltalake.DeltaTable`."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise UnsupportedFeature(
            "the benchmark measures delta-rs too, and deltalake is not installed.",
            hint="Install what developers have: pip install 'mainstem[dev]'",
        ) from error
    return DeltaTable


def delta_spark_open(spark: SparkSession, log: Path, *, partitions: int, rounds: int) -> Contender:
    """All rows of the live files to Arrow, by Delta's own snapshot, with nothing cached."""
    return Contender(
        delta_spark(partitions),
        delta_spark_cold(spark, log, partitions, lambda files: int(files.toArrow().num_rows)),
        rounds,
    )


def delta_spark_cold(spark: SparkSession, log: Path, partitions: int, consume: Callable[[DataFrame], int]) -> Turn:
    """Delta's snapshot with nothing cached, and all its live files given to `consume`."""
    return delta_cold(spark, partitions, lambda: consume(delta_files(spark, log)))


def delta_cold(
    spark: SparkSession, partitions: int, call: Callable[[], int], *, before: Callable[[], int] | None = None
) -> Turn:
    """Something that Delta does with nothing cached, or after `before`, with what that has left in the cache."""

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        known = spark.conf.get(_PARTITIONS, None)
        spark.conf.set(_PARTITIONS, str(partitions))
        clear_delta_cache(spark)
        try:
            if before is not None:
                before()
            yield call
        finally:
            clear_delta_cache(spark)
            if known is None:
                spark.conf.unset(_PARTITIONS)
            else:
                spark.conf.set(_PARTITIONS, known)

    return turn


def delta_files(spark: SparkSession, log: Path) -> DataFrame:
    """The live files as Delta's own snapshot has them, by its private API: the public one shows their names only."""
    from pyspark.sql import DataFrame

    found = _delta_log(spark).forTable(spark._jsparkSession, str(log)).unsafeVolatileSnapshot()
    return DataFrame(found.allFiles().toDF(), spark).select(*_ADD_COLUMNS)


def clear_delta_cache(spark: SparkSession) -> None:
    """Let Delta Spark forget every table."""
    _delta_log(spark).clearCache()


def _delta_log(spark: SparkSession) -> Any:
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        raise UnsupportedFeature(
            "the benchmark needs a session with its own JVM: Delta Spark's cache is out of reach over Spark Connect.",
            hint="Run make bench, or spark-submit jobs/benchmark.py without a remote.",
        )
    return jvm.org.apache.spark.sql.delta.DeltaLog
