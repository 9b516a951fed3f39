"""The fence, as the engines outside meet it: Delta Spark and delta-rs read on, and refuse to write while it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from mainstem import Catalog, Table, open_catalog
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.protocol import FENCE, writer_features

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Catalog]:
    with open_catalog(f"sqlite:///{tmp_path}/lake.db", spark=spark) as catalog:
        catalog.migrate()
        yield catalog


def imported(lake: Catalog, root: Path, *, reader: int, writer: int) -> Table:
    """A table of two rows that an engine has written before features had names."""
    write_deltalake(root, pa.table({"id": [1, 2]}))
    file = root / "_delta_log" / commit_name(0)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    protocol = {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
    file.write_text("".join(json.dumps(protocol if "protocol" in line else line) + "\n" for line in lines))
    lake.import_table(str(root), name=root.name)
    return lake.table(root.name)


def ids_by_spark(spark: SparkSession, table: Table) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(table.location).collect())


def ids_by_deltars(table: Table) -> list[int]:
    return sorted(DeltaTable(table.location).to_pyarrow_table().column("id").to_pylist())


def append_by_spark(spark: SparkSession, table: Table, *ids: int) -> None:
    rows = spark.createDataFrame([(each,) for each in ids], "id long").coalesce(1)
    rows.write.format("delta").mode("append").save(table.location)


def append_by_deltars(table: Table, *ids: int) -> None:
    write_deltalake(table.location, pa.table({"id": list(ids)}), mode="append")


def test_a_fence_keeps_writers_out_lets_readers_in_and_comes_down_with_a_rollback(
    lake: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    table = imported(lake, tmp_path / "t", reader=1, writer=2)
    table.cutover(fence=True)
    assert ids_by_spark(spark, table) == ids_by_deltars(table) == [1, 2]
    with pytest.raises(Py4JJavaError, match=r"DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*mainstemFence"):
        append_by_spark(spark, table, 9)
    with pytest.raises(CommitFailedError, match="mainstemFence"):
        append_by_deltars(table, 9)
    # We are inside: Delta's engine writes through the mount, and a change of the protocol leaves the fence standing.
    table.append(spark.createDataFrame([(3,)], "id long"))
    table.alter("SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    table.delete("id = 1")
    protocol = table.snapshot().protocol
    assert {FENCE, "changeDataFeed", "inCommitTimestamp"} <= set(writer_features(protocol))
    assert ids_by_spark(spark, table) == ids_by_deltars(table) == [2, 3]
    with pytest.raises(Py4JJavaError, match="mainstemFence"):
        append_by_spark(spark, table, 9)
    done = table.rollback()
    assert not {FENCE, "inCommitTimestamp"} & set(writer_features(table.snapshot().protocol))
    append_by_spark(spark, table, 4)
    append_by_deltars(table, 5)
    assert table.follow().version == done.version + 2
    assert ids_by_spark(spark, table) == ids_by_deltars(table) == [2, 3, 4, 5]
    told = spark.sql(f"DESCRIBE HISTORY delta.`{table.location}`").collect()
    assert [row.operation for row in told] == [entry.operation for entry in table.history()]
    assert [row.operation for row in told if row.operation.startswith("MAINSTEM")] == [
        "MAINSTEM ROLLBACK",
        "MAINSTEM CUTOVER",
    ]


@pytest.mark.parametrize(("reader", "writer"), [(1, 1), (1, 3), (1, 4), (1, 6), (2, 5), (2, 6)])
def test_delta_spark_reads_and_writes_every_protocol_of_old_before_and_after(
    lake: Catalog, spark: SparkSession, tmp_path: Path, reader: int, writer: int
) -> None:
    table = imported(lake, tmp_path / "t", reader=reader, writer=writer)
    table.cutover(fence=True)
    assert ids_by_spark(spark, table) == [1, 2]
    table.rollback()
    append_by_spark(spark, table, 3)
    table.follow()
    table.cutover()
    assert ids_by_spark(spark, table) == ids_by_deltars(table) == [1, 2, 3]
    # In-commit timestamps are on, which Delta Spark can write: a foreign commit, with its own.
    append_by_spark(spark, table, 4)
    assert [each.version for each in table.resolve(adopt_foreign=True).foreign] == [table.version]
    at = [entry.committed_at for entry in table.history()]
    assert at == sorted(at, reverse=True)
    before = spark.read.format("delta").option("timestampAsOf", at[1].strftime("%Y-%m-%d %H:%M:%S.%f"))
    assert sorted(row.id for row in before.load(table.location).collect()) == [1, 2, 3]
