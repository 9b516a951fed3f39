"""A log that was rebuilt from the catalog, as Delta Spark and delta-rs read it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from mainstem import Catalog, open_catalog


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Catalog]:
    with open_catalog(f"sqlite:///{tmp_path}/lake.db", spark=spark) as opened:
        opened.migrate()
        yield opened


def rich(spark: SparkSession, root: Path) -> None:
    """A table of Delta's own with partitions, deletion vectors and rows that were replaced."""
    rows = spark.range(40).selectExpr("id", "concat('p ', id % 3) AS part", "cast(id AS string) AS text")
    properties = "delta.enableDeletionVectors"
    rows.write.format("delta").partitionBy("part").option(properties, "true").save(str(root))
    for statement in ("DELETE FROM {} WHERE id < 5", "UPDATE {} SET text = 'x' WHERE id = 7", "OPTIMIZE {}"):
        spark.sql(statement.format(f"delta.`{root}`"))


def load(spark: SparkSession, root: Path, version: int | None = None) -> DataFrame:
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(str(root))


def by_spark(spark: SparkSession, root: Path, version: int | None = None) -> set[str]:
    found = load(spark, root, version).inputFiles()
    return {unquote(path).partition(f"{root.name}/")[2] for path in found}


def contents(frame: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in frame.collect())


def test_delta_spark_and_delta_rs_open_a_rebuilt_log_and_have_the_same_files(
    lake: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    root, copy = tmp_path / "orders", tmp_path / "copy"
    rich(spark, root)
    lake.import_table(str(root), name="orders")
    table = lake.table("orders")
    table.cutover()
    table.append(load(spark, root).limit(3))
    table.delete("id = 30")
    done = lake.rebuild_log("orders", to=str(copy))
    assert done.version == table.version
    theirs = DeltaTable(copy)
    assert theirs.version() == table.version
    assert {unquote(path).partition("copy/")[2] for path in theirs.file_uris()} == by_spark(spark, root)
    for version in range(table.version + 1):
        assert by_spark(spark, copy, version) == by_spark(spark, root, version)
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("_delta_log"), dirs_exist_ok=True)
    for version in (0, 2, table.version):
        assert contents(load(spark, copy, version)) == contents(load(spark, root, version))
    assert load(spark, copy).schema == load(spark, root).schema


def test_a_log_that_begins_with_a_checkpoint_is_read_by_both_and_goes_on(
    lake: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "orders"
    rich(spark, root)
    lake.import_table(str(root), name="orders")
    table = lake.table("orders")
    table.cutover()
    table.expire(before_version=table.version)
    before = contents(load(spark, root))
    shutil.rmtree(root / "_delta_log")
    done = lake.rebuild_log("orders")
    assert (done.first_version, done.checkpoints) == (table.version, (table.version,))
    assert contents(load(spark, root)) == before
    assert DeltaTable(root).version() == table.version
    table.append(load(spark, root).limit(2))
    assert load(spark, root).count() == len(before) + 2
    assert table.validate().success
