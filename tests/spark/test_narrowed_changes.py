"""A change on a mount of few files does what plain Delta does: whatever the zone, the types, or an empty text."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from mainstem import Catalog, Table, open_catalog

pytestmark = pytest.mark.spark

NEW_YORK = "America/New_York"


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Catalog]:
    """A catalog in which every merge asks its source for bounds."""
    with open_catalog(f"sqlite:///{tmp_path}/lake.db", spark=spark, mount_files=0) as opened:
        opened.migrate()
        yield opened


@pytest.fixture
def session_in_new_york(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture
def process_in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`collect` gives moments in the zone of this process."""
    monkeypatch.setenv("TZ", NEW_YORK)
    time.tzset()
    yield
    monkeypatch.undo()
    os.environ.pop("TZ", None)
    time.tzset()


def rows(spark: SparkSession, columns: str, *values: str) -> DataFrame:
    return spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(values)} AS x({columns})")


def of(table: Table, column: str) -> list[int]:
    return sorted(row[0] for row in table.read().select(column).collect())


def test_a_session_in_new_york_sees_what_is_before_its_own_midnight(
    lake: Catalog, tmp_path: Path, session_in_new_york: SparkSession
) -> None:
    spark = session_in_new_york
    table = lake.create_table("t", location=str(tmp_path / "t"), schema="id BIGINT, ts TIMESTAMP")
    for id_, moment in ((1, "02:00:00Z"), (2, "06:00:00Z")):
        table.append(rows(spark, "id, ts", f"({id_}L, TIMESTAMP'2026-01-01 {moment}')"))
    before = "ts < '2026-01-01 00:00:00'"  # which is 05:00 in UTC
    assert [row["id"] for row in table.read(where=before).collect()] == [1]
    assert [row["id"] for row in table.read(where="ts >= '2026-01-01 00:00:00'").collect()] == [2]
    assert table.snapshot().files(where=before).count() >= 1
    table.update(set={"id": "10"}, where=before)
    assert of(table, "id") == [2, 10]
    table.delete(before)
    assert of(table, "id") == [2]


@pytest.mark.usefixtures("process_in_new_york")
def test_keys_and_partitions_that_are_moments_say_their_zone(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    moment, other = "TIMESTAMP'2026-01-01 02:00:00Z'", "TIMESTAMP'2026-01-01 22:00:00Z'"
    merged = lake.create_table("m", location=str(tmp_path / "m"), schema="ts TIMESTAMP, v INT")
    merged.append(rows(spark, "ts, v", f"({moment}, 1)"))
    merge = merged.merge(rows(spark, "ts, v", f"({moment}, 2)"), on="t.ts = s.ts")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert of(merged, "v") == [2]
    parted = lake.create_table("p", location=str(tmp_path / "p"), schema="v INT, ts TIMESTAMP", partition_by=["ts"])
    parted.append(rows(spark, "v, ts", f"(1, {moment})", f"(2, {other})"))
    parted.overwrite(rows(spark, "v, ts", f"(3, {moment})"), partitions="dynamic")
    assert of(parted, "v") == [2, 3]


def test_an_empty_text_takes_the_place_of_the_partition_of_null_as_in_plain_delta(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    mine = lake.create_table("t", location=str(tmp_path / "t"), schema="v INT, p STRING", partition_by=["p"])
    plain = str(tmp_path / "plain")
    before = rows(spark, "v, p", "(1, NULL)", "(2, 'a')")
    after = rows(spark, "v, p", "(3, '')")
    mine.append(before)
    before.write.format("delta").partitionBy("p").save(plain)
    mine.overwrite(after, partitions="dynamic")
    after.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(plain)
    expected = sorted(row["v"] for row in spark.read.format("delta").load(plain).collect())
    assert (expected, of(mine, "v")) == ([2, 3], [2, 3])


def test_keys_that_are_numbers_here_and_texts_there_find_each_other(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    table = lake.create_table("t", location=str(tmp_path / "t"), schema="id BIGINT, v INT")
    table.append(rows(spark, "id, v", "(9L, 1)"))
    source = rows(spark, "id, v", "('10', 2)", "('9', 3)")  # as texts, 9 is the greater one
    merge = table.merge(source, on="t.id = s.id").when_matched_update(set={"v": "s.v"})
    merge.when_not_matched_insert(values={"id": "CAST(s.id AS BIGINT)", "v": "s.v"}).execute()
    assert (of(table, "id"), of(table, "v")) == ([9, 10], [2, 3])


def test_a_text_with_a_quote_finds_its_row(lake: Catalog, tmp_path: Path, spark: SparkSession) -> None:
    table = lake.create_table("t", location=str(tmp_path / "t"), schema="id BIGINT, v INT, name STRING")
    table.append(rows(spark, "id, v, name", "(1L, 1, 'it\\'s')"))
    source = rows(spark, "id, v, name", "(1L, 2, 'it\\'s')")
    merge = table.merge(source, on="t.id = s.id AND t.name = 'it''s'")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert of(table, "v") == [2]


def moving(spark: SparkSession, folder: Path, *values: str) -> DataFrame:
    """Rows of a folder to which the second one who looks adds others: every row has been looked at when it is read."""
    rows(spark, "v, p", *values).coalesce(1).write.parquet(str(folder))

    def grow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = folder / "seen"
        first = not seen.exists()
        seen.touch()
        for batch in batches:
            column = batch.column("p") if first else pa.array(["late"] * batch.num_rows)
            yield pa.RecordBatch.from_arrays([batch.column("v"), column], names=["v", "p"])

    return spark.read.parquet(str(folder)).coalesce(1).mapInArrow(grow, "v INT, p STRING")


def test_a_source_that_gives_other_rows_when_asked_again_is_asked_once(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    table = lake.create_table("t", location=str(tmp_path / "t"), schema="v INT, p STRING")
    table.append(rows(spark, "v, p", "(1, 'a')"))
    table.append(rows(spark, "v, p", "(2, 'late')"))
    merge = table.merge(moving(spark, tmp_path / "source", "(7, 'a')"), on="t.p = s.p")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert of(table, "v") == [2, 7]


def test_partitions_that_come_late_are_overwritten_too(lake: Catalog, tmp_path: Path, spark: SparkSession) -> None:
    table = lake.create_table("t", location=str(tmp_path / "t"), schema="v INT, p STRING", partition_by=["p"])
    table.append(rows(spark, "v, p", "(1, 'a')", "(2, 'late')"))
    table.overwrite(moving(spark, tmp_path / "source", "(7, 'a')"), partitions="dynamic")
    assert of(table, "v") == [1, 7]


def test_a_partition_that_delta_computes_is_overwritten_as_in_plain_delta(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    schema = "v INT, ts TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))"
    table = lake.create_table("t", location=str(tmp_path / "t"), schema=schema, partition_by=["day"])
    for value, day in ((1, 1), (2, 2)):
        table.append(rows(spark, "v, ts", f"({value}, TIMESTAMP'2026-01-0{day} 00:00:00')"))
    table.overwrite(rows(spark, "v, ts", "(3, TIMESTAMP'2026-01-02 12:00:00')"), partitions="dynamic")
    assert of(table, "v") == [1, 3]
