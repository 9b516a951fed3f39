"""Data on an S3 API, through Hadoop's S3A: every operation on a table of ours and on a control table by plain Delta.

Ours is read through the catalog, by plain Delta from the published log, and by delta-rs.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltars
import pytest
from pyspark.sql import DataFrame, SparkSession
from s3server import S3

from mainstem import Catalog, Table, open_catalog
from mainstem.errors import UsageError
from mainstem.mount import scratch, sweep

pytestmark = pytest.mark.timeout(1800)

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
}
SCRATCH = "s3://lake/scratch"


@dataclass(frozen=True)
class Way:
    """How a table is mounted: where scratch is, by viewfs or by absolute paths, and where the table is."""

    scratch: str | None
    mount: str
    location: str


WAYS = {
    "scratch on disk": Way(None, "viewfs", "s3://lake/disk/orders"),
    "scratch on S3": Way(SCRATCH, "viewfs", "s3a://lake/remote/orders"),
    "scratch on S3, absolute paths": Way(SCRATCH, "absolute", "s3://lake/absolute/orders"),
    "scratch on disk, absolute paths, an odd name": Way(None, "absolute", "s3://lake/odd%20n%C3%A4me/a%25b"),
    "scratch on S3, an odd name": Way(SCRATCH, "viewfs", "s3://lake/odd%20n%C3%A4me%20too/a%25b"),
}


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession, way: Way) -> Iterator[Catalog]:
    place = way.scratch or tmp_path / "scratch"
    with open_catalog(f"sqlite:///{tmp_path}/lake.db", spark=spark, scratch=place, mount=way.mount) as opened:
        opened.migrate()
        yield opened


Reader = Callable[[Callable[[str], Any], str], Any]


@pytest.fixture(scope="module")
def reader(store: S3) -> Iterator[Reader]:
    """Lets another process do something with a location."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield lambda read, location: pool.submit(read, location).result(timeout=60)


class Pair:
    """The two tables, and what is done to both."""

    def __init__(self, spark: SparkSession, mine: Table, control: str) -> None:
        self.spark = spark
        self.mine = mine
        self.control = control

    def rows(self, *values: str) -> DataFrame:
        return self.spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(values)} AS x(id, p, v)")

    def sql(self, statement: str) -> None:
        """Plain Delta on the control table, which the statement calls {T}."""
        self.spark.sql(statement.replace("{T}", f"delta.`{self.control}`")).collect()

    def write(self, rows: DataFrame, mode: str, **options: str) -> None:
        rows.write.format("delta").mode(mode).options(**options).save(self.control)


def append(pair: Pair) -> None:
    rows = pair.rows("(1L, 'a', 1.5D)", "(2L, 'a', 2.5D)", "(3L, 'b ü/x', 3.5D)", "(4L, 'b ü/x', NULL)")
    for each in (rows.where("id < 3"), rows.where("id > 2")):
        pair.mine.append(each.coalesce(1))
        pair.write(each.coalesce(1), "append")


def merge(pair: Pair) -> None:
    source = pair.rows("(2L, 'a', 22D)", "(3L, 'b ü/x', -1D)", "(8L, 'c', 8.5D)")
    merging = pair.mine.merge(source, on="t.id = s.id").when_matched_delete(condition="s.v < 0")
    merging.when_matched_update_all().when_not_matched_insert_all().execute()
    source.createOrReplaceTempView("s3_source")
    pair.sql(
        "MERGE INTO {T} t USING s3_source s ON t.id = s.id WHEN MATCHED AND s.v < 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def delete(pair: Pair) -> None:
    pair.mine.delete("id = 1 OR v IS NULL")
    pair.sql("DELETE FROM {T} WHERE id = 1 OR v IS NULL")


def update(pair: Pair) -> None:
    pair.mine.update(set={"v": "v + 1"}, where="p = 'a'")
    pair.sql("UPDATE {T} SET v = v + 1 WHERE p = 'a'")


def replace_where(pair: Pair) -> None:
    rows = pair.rows("(10L, 'c', 10.5D)", "(11L, 'c', 11.5D)")
    pair.mine.overwrite(rows, replace_where="p = 'c'")
    pair.write(rows, "overwrite", replaceWhere="p = 'c'")


def optimize(pair: Pair) -> None:
    pair.mine.append(pair.rows("(12L, 'c', 12.5D)"))
    pair.write(pair.rows("(12L, 'c', 12.5D)"), "append")
    pair.mine.optimize(where="p = 'c'")
    pair.sql("OPTIMIZE {T} WHERE p = 'c'")


def restore(pair: Pair) -> None:
    pair.mine.restore(version=2)
    pair.sql("RESTORE TABLE {T} TO VERSION AS OF 2")


STEPS: tuple[Callable[[Pair], None], ...] = (append, merge, delete, update, replace_where, optimize, restore)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_on_s3_every_operation_equals_plain_delta(
    way: Way, lake: Catalog, spark: SparkSession, store: S3, reader: Reader
) -> None:
    columns = "id BIGINT, p STRING, v DOUBLE"
    mine = lake.create_table(
        "sales.orders", location=way.location, schema=columns, partition_by=["p"], properties=PROPERTIES
    )
    control = f"s3a://lake/control-{len(store.objects)}/orders"
    given = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    spark.sql(f"CREATE TABLE delta.`{control}` ({columns}) USING delta PARTITIONED BY (p) TBLPROPERTIES ({given})")
    pair, before = Pair(spark, mine, control), 0
    for step in STEPS:
        step(pair)
        expected = texts(spark.read.format("delta").load(control))
        assert texts(mine.read()) == expected, step.__name__
        assert texts(spark.read.format("delta").load(spark_path(way.location))) == expected, step.__name__
        if "%" in way.location:  # delta-rs 1.6.6 looks for a deletion vector in such a folder by its name encoded twice
            assert reader(deltars.version, way.location) == mine.version, step.__name__
        else:
            assert reader(deltars.rows, way.location) == reader(deltars.rows, control), step.__name__
        if step is not restore:  # whose changes Delta tells in another order of versions
            feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", before + 1)
            theirs = texts(feed.load(control).drop("_commit_timestamp"))
            assert texts(mine.changes(from_version=before + 1).drop("_commit_timestamp")) == theirs, step.__name__
        before = mine.version
    assert texts(mine.read(version=2, where="p = 'a' AND id < 2")) == Counter(['{"id":1,"p":"a","v":1.5}'])
    assert mine.validate().success
    inside = [name for name in store.objects if name.startswith("lake/absolute/") and "/mainstem-" in name]
    assert not [name for name in inside if "/_delta_log/" in name and not name.endswith("/")]
    lake.close()
    # Hadoop marks a folder that it makes by an object whose name ends in a slash, and obstore has no name for those.
    left = [name for name in store.objects if name.startswith("lake/scratch/") and not name.endswith("/")]
    assert left == []


def texts(frame: DataFrame) -> Counter[str]:
    return Counter(frame.toJSON().collect())


def spark_path(location: str) -> str:
    return unquote(location).replace("s3://", "s3a://")


@pytest.mark.parametrize("way", [Way(SCRATCH, "viewfs", "s3://lake/late/orders")], ids=[""])
def test_on_s3_what_is_not_published_is_written_and_read_and_published_later(
    way: Way, lake: Catalog, spark: SparkSession, reader: Reader
) -> None:
    with open_catalog(str(lake.uri), spark=spark, scratch=way.scratch, publish_on_commit=False) as quiet:
        table = quiet.create_table("sales.late", location=way.location, schema="id BIGINT")
        for number in range(3):
            table.append(spark.range(number, number + 1))
        assert sorted(row.id for row in table.read().collect()) == [0, 1, 2]
        with pytest.raises(Exception, match=r"(?i)delta"):
            reader(deltars.version, way.location)
        assert table.publish().written == 4
    assert reader(deltars.version, way.location) == 3


@pytest.mark.parametrize("way", [Way(SCRATCH, "viewfs", "s3://lake/theirs")], ids=[""])
def test_on_s3_a_table_of_plain_delta_is_imported_compared_followed_and_cut_over(
    way: Way, lake: Catalog, spark: SparkSession, reader: Reader
) -> None:
    for _ in range(2):
        spark.range(3).write.format("delta").mode("append").save("s3a://lake/theirs")
    table = lake.table(lake.import_table(way.location, name="theirs").name)
    spark.range(3, 5).write.format("delta").mode("append").save("s3a://lake/theirs")
    table.follow()
    assert table.validate().success
    table.cutover()
    table.delete("id = 4")
    assert sorted(row.id for row in table.read().collect()) == [0, 0, 1, 1, 2, 2, 3]
    assert reader(deltars.version, way.location) == table.version


@pytest.mark.parametrize("way", [Way(SCRATCH, "viewfs", "s3://lake/large")], ids=[""])
def test_on_s3_executors_write_the_log_of_a_large_table(way: Way, lake: Catalog, spark: SparkSession) -> None:
    table = lake.create_table("large", location=way.location, schema="id BIGINT")
    table.append(spark.range(0, 8, 1, 8))
    with open_catalog(str(lake.uri), spark=spark, scratch=way.scratch, checkpoint_files=1) as other:
        assert other.table("large").read().count() == 8


@pytest.mark.parametrize("way", [Way("s3://lake/left", "viewfs", "s3://lake/swept")], ids=[""])
def test_on_s3_what_a_dead_process_has_left_is_swept(
    way: Way, lake: Catalog, spark: SparkSession, store: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    table = lake.create_table("swept", location=way.location, schema="id BIGINT")
    table.read().count()
    home = scratch._home(lake.settings)
    for name, pid in (("dead", dead.pid), ("alive", os.getppid())):
        (home / name).write("owner", f"{pid} {scratch._started(os.getppid())} {scratch._machine()}")
        (home / name).write("table/_delta_log/0.json", "{}")
    assert sweep(lake.settings) == 1

    def left() -> set[str]:
        names = [name for name in store.objects if name.startswith("lake/left/") and not name.endswith("/")]
        return {name.split("/")[3] for name in names}  # without Hadoop's marks of folders

    assert "alive" in left()
    assert "dead" not in left()
    lake.close()
    assert left() == {"alive"}


@pytest.mark.parametrize("way", [Way("s3://lake/a b", "viewfs", "s3://lake/x")], ids=[""])
def test_a_scratch_that_cannot_be_linked_is_told(way: Way, lake: Catalog) -> None:
    with pytest.raises(UsageError, match="a path with ' '"):
        lake.create_table("x", location=way.location, schema="id BIGINT")
