"""Pruning beside Delta's own data skipping: the same predicates on the same tables, and the rows themselves as judge.

A file with a matching row is never lost. A file that Delta's scan keeps is lost only where no row of it can match and
the predicate stands in a list below, by the reason why we know and Delta does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mainstem import Catalog

pytestmark = pytest.mark.spark

FILES, ROWS = 8, 6  # files of a table, rows of a file: the row with the id 13 is in file 2
_FILE = f"CAST(id DIV {ROWS} AS INT)"
COLUMNS = (
    "id",
    "CAST(id - 24 AS TINYINT) AS small",
    "CAST(id * 1.25 AS DECIMAL(10, 2)) AS m",
    f"CASE {_FILE} WHEN 7 THEN double('NaN') WHEN 6 THEN -0.0D WHEN 5 THEN double('Infinity') ELSE id / 4D END AS d",
    # One file of texts that are cut in the statistics, one of none, one whose cut ends beside a wide character.
    f"CASE {_FILE} WHEN 5 THEN repeat('x', 40) || id WHEN 4 THEN NULL WHEN 3 THEN repeat('🦆', 33) || id "
    f"ELSE char(97 + {_FILE}) || id END AS s",
    "date_add(DATE '2024-02-26', CAST(id AS INT)) AS day",
    "TIMESTAMP '2024-01-01 00:00:00.123456' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS ts",
    "TIMESTAMP_NTZ '2024-01-01 00:00:00.123456' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS tn",
    f"{_FILE} % 2 = 0 AS flag",
    f"CASE WHEN {_FILE} = 2 OR ({_FILE} = 3 AND id % 2 = 0) THEN NULL ELSE id END AS some",
    "named_struct('n', id, 'inner', named_struct('t', 'v' || id)) AS st",
    # In the partitioned table these two name the folder of a file, in the others they are columns as any other.
    f"CASE {_FILE} WHEN 0 THEN NULL WHEN 1 THEN 'it''s' WHEN 2 THEN 'a/b=c' WHEN 3 THEN '50%' ELSE 'plain' END AS p",
    f"date_add(DATE '2024-02-26', {_FILE}) AS pd",
)
PREDICATES = (
    "id = 13", "id <= 5", "NOT id > 5", "id IN (1, 47)", "id NOT IN (1, 2)", "id < 12 AND id > 10", "id < 3 OR id > 45",
    "id + 1 = 14", "NOT (id >= 6 AND id <= 41)", "id = 13.5", "id = '13'", "id > 1e3", "id = NULL", "id IS NULL",
    "small > 20", "m = 1.25", "m > 58.75", "d > 100", "d = double('NaN')", "d <= -0.0", "d >= double('Infinity')",
    "s = 'a1'", "s > 'x'", "s LIKE 'c1%'", "s IS NULL", "s IS NOT NULL", "s = repeat('x', 40) || '33'", "s > '🦆'",
    "s IN ('a1', 'h45')", "day = DATE '2024-03-01'", "day < '2024-02-29'", "year(day) = 2023",
    "ts < TIMESTAMP '2024-01-01 05:00:00.123456'", "ts >= TIMESTAMP '2024-01-02 23:00:00.123456'",
    "tn > TIMESTAMP_NTZ '2024-01-02 22:30:00'", "NOT flag", "some IS NULL", "some IS NOT NULL", "st.n > 44",
    "st.inner.t = 'v13'", "TRUE", "FALSE",
)  # fmt: skip
BY_PARTITION = (
    "p = 'plain'", "p = 'it\\'s'", "p = 'a/b=c'", "p IS NULL", "p IS NOT NULL", "p LIKE '5%'", "p <> 'plain'",
    "p IN ('50%', 'none')", "pd = DATE '2024-02-29'", "pd > '2024-03-03' AND id < 46", "p = 'plain' OR id = 13",
    "length(p) = 3",
)  # fmt: skip
# What the other tables are asked: one of each kind is enough, where the statistics are what differs.
FEWER = ("id = 13", "id > 40", "s = 'a1'", "s IS NULL", "some IS NULL", "ts < TIMESTAMP '2024-01-01 05:00:00.123456'")

# Where a file goes that Delta keeps, and why it may: no row of it can match.
PRUNED_BEYOND_DELTA = {
    "id IN (1, 47)": "each value of a list is looked for; Delta looks at its smallest and its largest",
    "s IN ('a1', 'h45')": "each value of a list is looked for; Delta looks at its smallest and its largest",
    "id > 1e3": "whole numbers are compared with a double; for Delta the column is cast, and has no statistics",
    "p = 'plain' OR id = 13": "partition values and statistics are looked at together; Delta looks at each alone",
}


@dataclass(frozen=True)
class Skipped:
    """A table of Delta's own making, and what Delta says of it."""

    name: str
    root: Path
    predicates: tuple[str, ...]
    spark: SparkSession

    @property
    def rows(self) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.root))

    @cached_property
    def kept(self) -> Mapping[str, frozenset[str]]:
        """The files that Delta's scan for each predicate has left after its own skipping."""
        return {where: _names(self.rows.where(where).inputFiles()) for where in self.predicates}

    @cached_property
    def matching(self) -> Mapping[str, frozenset[str]]:
        """The files that have a row for each predicate: every row is looked at, and nothing is skipped."""
        meets = [F.expr(f"coalesce(bool_or({where}), false)").alias(str(n)) for n, where in enumerate(self.predicates)]
        found = self.rows.groupBy(F.col("_metadata.file_path").alias("file")).agg(*meets).collect()
        return {where: _names(row["file"] for row in found if row[str(n)]) for n, where in enumerate(self.predicates)}


def _names(files: Iterator[str] | list[str]) -> frozenset[str]:
    return frozenset(unquote(file).rpartition("/")[2] for file in files)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Skipped]:
    """Plain, under other names, by partitions, with statistics of two columns only, and with deleted rows."""
    session = spark.newSession()
    for key, value in {
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }.items():
        session.conf.set(key, value)
    place = tmp_path_factory.mktemp("skipping")
    rows = session.range(0, FILES * ROWS, 1, FILES).selectExpr(*COLUMNS)

    def written(
        name: str, predicates: tuple[str, ...], partition_by: tuple[str, ...] = (), **properties: str
    ) -> Skipped:
        writer = rows.write.format("delta").partitionBy(*partition_by)
        for key, value in properties.items():
            writer = writer.option(f"delta.{key}", value)
        writer.save(str(place / name))
        return Skipped(name, place / name, predicates, session)

    deleted = written("deleted", FEWER, enableDeletionVectors="true")
    session.sql(f"DELETE FROM delta.`{deleted.root}` WHERE id IN (0, 13, 14, 47)")
    return [
        written("plain", PREDICATES),
        written("partitioned", BY_PARTITION, ("p", "pd")),
        written("mapped", FEWER, **{"columnMapping.mode": "name"}),
        written("two columns", FEWER, dataSkippingNumIndexedCols="2"),
        deleted,
    ]


def test_no_file_is_lost_that_has_a_row_or_that_delta_keeps(catalog: Catalog, tables: list[Skipped]) -> None:
    beyond, alike = set(), 0
    for table in tables:
        catalog.import_table(str(table.root), name=table.name)
        known = catalog.table(table.name).snapshot()
        known.to_arrow()
        for where in table.predicates:
            by_sql = catalog.table(table.name).snapshot().to_arrow(where=where, columns=["path"])
            in_memory = known.to_arrow(where=where, columns=["path"])
            for ours in (_names(found["path"].to_pylist()) for found in (by_sql, in_memory)):
                assert table.matching[where] <= ours, (table.name, where)
                if not table.kept[where] <= ours:
                    beyond.add(where)
                alike += ours == table.kept[where] and len(ours) < FILES
    assert beyond == PRUNED_BEYOND_DELTA.keys()
    assert alike > 50  # both look at the same statistics: most of what they leave out is the same
