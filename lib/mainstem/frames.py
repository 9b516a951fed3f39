"""From `dl_*` rows to Spark DataFrames, over JDBC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainstem.engines import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_query(spark: SparkSession, engine: Engine, query: str, *, slices: Sequence[str] = ()) -> DataFrame:
    """The rows of a query that runs in the catalog's database, read by Spark's executors.

    With `slices`, each predicate becomes one task, which reads over a connection of its own. The text may hold
    nothing but our own SQL and what `sqltext.jdbc_literal` let through.
    """
    jdbc = engine.jdbc()
    engine.close()  # an idle connection of ours must not keep the JVM out
    table = f"({query}) AS rows_of_query"
    properties = {**jdbc.options(), "fetchsize": str(engine.settings.fetch_size)}
    url = properties.pop("url")
    if slices:
        return spark.read.jdbc(url, table, predicates=list(slices), properties=properties)
    return spark.read.jdbc(url, table, properties=properties)
