"""Mounts: made once, seen in scratch, taken down; odd paths, odd settings, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from catalogs import ask, change
from pyspark.sql import DataFrame, SparkSession

from mainstem import Catalog, Table, open_catalog
from mainstem.errors import UnsupportedFeature, UsageError
from mainstem.mount import scratch, sweep
from mainstem.mount.folder import Folder
from mainstem.mount.scratch import drop_folder
from mainstem.operations import reading

pytestmark = pytest.mark.spark
ODD = "a b%20c # ü's 🦆"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mounts")


@pytest.fixture(scope="module")
def lake(folder: Path, spark: SparkSession) -> Iterator[Catalog]:
    """A catalog with a scratch folder of its own."""
    with open_catalog(f"sqlite:///{folder}/lake.db", spark=spark, scratch=folder / "scratch") as opened:
        opened.migrate()
        yield opened


@pytest.fixture(scope="module")
def orders(lake: Catalog, folder: Path, spark: SparkSession) -> Table:
    """Two partitions of odd names with two files each, one of which has a deletion vector; ids 0..19."""
    table = lake.create_table(
        "sales.orders",
        location=str(folder / f"orders {ODD}"),
        schema="id BIGINT, p STRING",
        partition_by=["p"],
        properties={"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    )
    for first in (0, 10):
        table.append(spark.range(first, first + 10, 1, 1).selectExpr("id", "IF(id % 2 = 0, 'ev%en ü', 'o/dd') AS p"))
    table.delete("id = 3")
    return table


IDS = [number for number in range(20) if number != 3]


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def home_of(lake: Catalog) -> Path:
    home = scratch._home(lake.settings).local
    assert home is not None
    return home


def folders(lake: Catalog) -> set[Path]:
    home = home_of(lake)
    return set(home.iterdir()) if home.is_dir() else set()


def links(spark: SparkSession) -> set[str]:
    return {row.key for row in spark.sql("SET").collect() if row.key.startswith("fs.viewfs.mounttable")}


def mounted_files(uri: str, lake: Catalog) -> list[str]:
    """The files in the scratch checkpoint of a mount that is open."""
    (mount,) = (kept.mount for kept in lake._reader._mounts.values() if kept.mount.uri == uri)
    assert mount.place.local is not None
    checkpoint = pq.ParquetFile(next(mount.place.local.glob("_delta_log/*.checkpoint.parquet")))
    rows = checkpoint.read(columns=["add.path"])["add"].to_pylist()
    return [row["path"] for row in rows if row is not None]


def newest(lake: Catalog) -> str:
    return list(lake._reader._mounts.values())[-1].mount.uri


def test_the_same_read_uses_the_same_mount_and_closing_the_catalog_leaves_nothing(
    lake: Catalog, orders: Table, spark: SparkSession
) -> None:
    lake.close()
    assert folders(lake) == set()
    before = links(spark)
    assert ids(orders.read()) == IDS
    uri, made = newest(lake), folders(lake)
    assert ids(orders.read()) == IDS
    assert (newest(lake), folders(lake)) == (uri, made)
    assert len(made) == 1
    assert len(links(spark) - before) == 2
    lake.close()
    assert folders(lake) == set()
    assert links(spark) == before
    assert ids(orders.read()) == IDS  # a closed catalog may be used again


def test_a_transaction_takes_its_mounts_down_whether_it_commits_or_not(
    lake: Catalog, orders: Table, spark: SparkSession
) -> None:
    before, known, version = folders(lake), links(spark), orders.version
    with lake.transaction() as transaction:
        changed = transaction.table("sales.orders").delete("id = 5")
        assert len(folders(lake)) == len(before) + 1
        assert ids(changed.read(where="id < 7")) == [0, 1, 2, 4, 6]
        transaction.rollback()
    with pytest.raises(ZeroDivisionError), lake.transaction() as transaction:
        transaction.table("sales.orders").update(set={"id": 1}, where="id = 2")
        _ = 1 // 0
    assert (folders(lake), links(spark), orders.version) == (before, known, version)
    assert ids(orders.read()) == IDS


def test_with_a_predicate_only_files_that_may_match_are_mounted_and_rows_are_filtered_again(
    lake: Catalog, orders: Table
) -> None:
    assert ids(orders.read(where="p = 'ev%en ü' AND id > 12")) == [14, 16, 18]
    assert len(mounted_files(newest(lake), lake)) == 1
    assert ids(orders.read(where="p = 'o/dd'")) == [1, 5, 7, 9, 11, 13, 15, 17, 19]
    assert len(mounted_files(newest(lake), lake)) == 2
    assert ids(orders.read(where="id > 100")) == []
    assert mounted_files(newest(lake), lake) == []
    assert ids(orders.read(version=1)) == list(range(10))
    with pytest.raises(UsageError):
        orders.read(where="id >")


def test_all_of_a_large_table_is_read_from_the_published_log_if_it_is_there(
    lake: Catalog, orders: Table, folder: Path, spark: SparkSession
) -> None:
    with open_catalog(
        str(lake.uri), spark=spark, scratch=folder / "other", driver_files=1, publish_on_commit=False
    ) as other:
        table = other.table("sales.orders")
        assert ids(table.read()) == IDS
        assert ids(table.read(version=1)) == list(range(10))
        assert folders(other) == set()
        assert ids(table.read(where="id < 5")) == [0, 1, 2, 4]
        assert len(folders(other)) == 1
        version = orders.version
        table.append(spark.range(77, 78).selectExpr("id", "'x' AS p"))
        assert ids(table.read()) == [*IDS, 77]  # not published: it comes through a mount
        assert len(folders(other)) == 2
        table.restore(version=version)
        table.publish()


def test_a_version_that_the_log_no_longer_has_is_read_through_a_mount(
    lake: Catalog, folder: Path, spark: SparkSession
) -> None:
    table = lake.create_table(
        "sales.old", location=str(folder / "old"), schema="id BIGINT", properties={"delta.checkpointInterval": "2"}
    )
    for number in range(4):
        table.append(spark.range(number, number + 1, 1, 1))
    for gone in (0, 1):
        (folder / "old" / "_delta_log" / f"{gone:020d}.json").unlink()
    with open_catalog(str(lake.uri), spark=spark, scratch=folder / "cleaned", driver_files=0) as other:
        read = other.table("sales.old").read
        assert [ids(read(version=version)) for version in (1, 2, 4)] == [[0], [0, 1], [0, 1, 2, 3]]
        assert len(folders(other)) == 1  # for version 1 alone


def test_with_absolute_paths_the_same_is_read(lake: Catalog, orders: Table, folder: Path, spark: SparkSession) -> None:
    before = links(spark)
    with open_catalog(str(lake.uri), spark=spark, scratch=folder / "absolute", mount="absolute") as other:
        table = other.table("sales.orders")
        frame = table.read(version=3)
        assert ids(frame) == IDS
        assert {row.file.split("/")[0] for row in frame.selectExpr("_metadata.file_path AS file").collect()} == {
            "file:"
        }
        assert links(spark) == before
        assert ids(table.read(where="p = 'o/dd' AND id < 8")) == [1, 5, 7]
        mine, theirs = table.changes(from_version=1, to_version=3), orders.changes(from_version=1, to_version=3)
        assert sorted(map(str, mine.collect())) == sorted(map(str, theirs.collect()))
        assert not list(Path(orders.location).glob("mainstem-*"))


def test_with_absolute_paths_what_is_written_is_the_tables_own_and_the_log_that_it_took_is_gone(
    lake: Catalog, orders: Table, folder: Path, spark: SparkSession
) -> None:
    root, version = Path(orders.location), orders.version
    with open_catalog(str(lake.uri), spark=spark, scratch=folder / "absolute", mount="absolute") as other:
        table = other.table("sales.orders")
        with other.transaction() as transaction:
            changed = transaction.table("sales.orders").delete("id IN (1, 4)")
            transaction.sql("INSERT INTO {t} VALUES (100L, 'new ü')", t="sales.orders")
            assert len(list(root.glob("mainstem-*/_delta_log"))) == 1
            assert ids(changed.read()) == [*(each for each in IDS if each not in (1, 4)), 100]
            found = transaction.sql("SELECT count(*) AS n FROM {t}", t="sales.orders")
            assert found is not None
            assert found.collect()[0].n == len(IDS) - 1
        assert not list(root.glob("mainstem-*/_delta_log"))
        with other.transaction() as transaction:
            transaction.table("sales.orders").read().count()
        with pytest.raises(ZeroDivisionError), other.transaction() as transaction:
            transaction.table("sales.orders").append(spark.range(1).selectExpr("id", "'x' AS p"))
            _ = 1 // 0
        assert len(folders(other)) == 0
        expected = [*(each for each in IDS if each not in (1, 4)), 100]
        assert ids(table.read()) == ids(orders.read()) == expected
        assert ids(spark.read.format("delta").load(orders.location)) == expected
        paths = orders.snapshot().to_arrow()["path"].to_pylist()
        assert not any(path.startswith(("/", "file:")) for path in paths)
        table.restore(version=version)
        # What the transaction that failed has written is no more than any file that belongs to no version.
        orphans = table.vacuum(retention_hours=0, short_retention="allow", dry_run=True).paths
        assert any(path.startswith("mainstem-") for path in orphans)


def test_a_log_inside_of_a_table_that_a_dead_process_has_left_is_swept_and_its_data_stays(
    lake: Catalog, orders: Table
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    inside = Path(orders.location) / "mainstem-dead"
    (inside / "_delta_log").mkdir(parents=True)
    (inside / "part-0.parquet").touch()
    left = home_of(lake) / "left inside"
    left.mkdir(parents=True)
    (left / "owner").write_text(f"{dead.pid} 12345 {scratch._machine()}")
    (left / "elsewhere").write_text(f"{inside}/_delta_log")
    assert sweep(lake.settings) == 1
    assert [path.name for path in inside.iterdir()] == ["part-0.parquet"]
    assert not left.exists()
    drop_folder(Folder(inside))


def test_an_append_through_a_mount_is_one_job_and_a_read_no_more_than_plain_deltas(
    lake: Catalog, folder: Path, spark: SparkSession
) -> None:
    table = lake.create_table("sales.jobs", location=str(folder / "jobs"), schema="id BIGINT")
    context = spark.sparkContext

    def jobs(name: str, act: Callable[[], object]) -> int:
        context.setJobGroup(name, name)
        try:
            act()
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        return len(context.statusTracker().getJobIdsForGroup(name))

    rows = spark.range(0, 10, 1, 1)
    assert jobs("append", lambda: table.append(rows)) == 1  # that of the append itself
    mine, plain = table.read(where="id < 5"), spark.read.format("delta").load(table.location).where("id < 5")
    assert jobs("read", mine.collect) <= jobs("plain read", plain.collect)


def test_a_new_process_sweeps_what_dead_ones_have_left_and_nothing_else(
    lake: Catalog, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.read()
    home = home_of(lake)
    mine = folders(lake)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()

    def left(name: str, owner: str | None) -> Path:
        (home / name / "table").mkdir(parents=True)
        if owner is not None:
            (home / name / "owner").write_text(owner)
        return home / name

    here = scratch._machine()
    gone = left("dead", f"{dead.pid} 12345 {here}")
    reused = left("reused", f"{os.getpid()} 12345 {here}")  # its process id is another process by now
    kept = {
        left("elsewhere", f"{dead.pid} 12345 another-machine"),
        left("alive", f"{os.getppid()} {scratch._started(os.getppid())} {here}"),
        left("just being made", None),
        left("not ours", "hello"),
    }
    monkeypatch.setattr(scratch, "_swept", set())
    orders.read(where="id = 0 OR id = 12345")  # the first mount of a process
    assert mine | kept <= folders(lake)
    assert not gone.exists()
    assert not reused.exists()
    left("dead", f"{dead.pid} 12345 {here}")
    orders.read(where="id = 0 OR id = 123456")  # not the first any more
    assert gone.exists()
    assert sweep(lake.settings) == 1
    for path in kept:
        drop_folder(Folder(path))


def test_a_scratch_folder_that_cannot_be_used_is_told_and_so_is_one_that_executors_do_not_see(
    lake: Catalog, orders: Table, folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").write_text("no folder")
    with (
        open_catalog(str(lake.uri), spark=spark, scratch=folder / "file" / "x") as other,
        pytest.raises(UsageError, match=r"scratch folder .* cannot be used: Not a directory"),
    ):
        other.table("sales.orders").read()
    with (
        open_catalog(str(lake.uri), spark=spark, scratch=folder / "a b") as other,
        pytest.raises(UsageError, match="a path with ' '"),
    ):
        other.table("sales.orders").read()
    spark.conf.set("spark.mainstem.scratch", str(folder / "by_spark"))
    with open_catalog(str(lake.uri), spark=spark) as other:
        assert ids(other.table("sales.orders").read(where="id < 2")) == [0, 1]
        assert [path.parent.parent for path in folders(other)] == [folder / "by_spark"]
    spark.conf.unset("spark.mainstem.scratch")

    class OnACluster:
        """The session, as it would answer if it ran elsewhere."""

        conf: Any = type("Conf", (), {"get": staticmethod(lambda key, default=None: "spark://host:7077")})
        read = spark.read

    elsewhere: Any = OnACluster()
    with open_catalog(str(lake.uri), spark=spark) as other, pytest.raises(UsageError, match="on a cluster"):
        scratch.new_folder(other.settings, elsewhere)
    with open_catalog(str(lake.uri), spark=spark, scratch=folder / "shared") as other:
        drop_folder(scratch.new_folder(other.settings, elsewhere))
        monkeypatch.setattr(scratch, "_swept", set())
        monkeypatch.setattr(Folder, "write", lambda self, name, text: None)  # what we write, nobody else sees
        with pytest.raises(UsageError, match=r"scratch folder .* does not see what this process writes") as caught:
            scratch.new_folder(other.settings, elsewhere)
        assert "spark.mainstem.scratch" in str(caught.value)
        assert folders(other) == set()


def test_mounts_that_were_used_lately_stay_however_many_and_older_ones_go(
    lake: Catalog, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.close()
    now = [0.0]
    monkeypatch.setattr(lake._reader, "_clock", lambda: now[0])
    monkeypatch.setattr(reading, "_KEPT", 1)
    first = orders.read()
    orders.read(where="id < 4")
    assert len(folders(lake)) == 2
    assert ids(first) == IDS
    now[0] += 3601
    orders.read(where="id < 5")
    assert len(folders(lake)) == 1


def test_a_table_with_a_feature_that_the_reader_does_not_know_is_refused_by_name(
    lake: Catalog, orders: Table, folder: Path
) -> None:
    table = lake.create_table("sales.odd", location=str(folder / "odd"), schema="id BIGINT")
    change(
        lake,
        "UPDATE dl_protocol_updates SET min_reader_version = 3, min_writer_version = 7, reader_features = :reader, "
        "writer_features = :reader WHERE table_id = :table_id",
        reader=json.dumps(["timeMachine"]),
        table_id=table.info().table_id,
    )
    for read in (table.read, lambda: table.changes(from_version=0), lambda: table.delete("id = 1")):
        with pytest.raises(UnsupportedFeature, match="timeMachine"):
            read()


def test_views_show_all_tables_at_one_moment(lake: Catalog, orders: Table, folder: Path, spark: SparkSession) -> None:
    items = lake.create_table("sales.items", location=str(folder / "items"), schema="id BIGINT, name STRING")
    items.append(spark.range(2).selectExpr("id", "concat('n', id) AS name"))
    assert lake.views(prefix="lake_", tables=["sales.orders", "sales.items"]) == {
        "sales.orders": "lake_sales_orders",
        "sales.items": "lake_sales_items",
    }
    query = "SELECT name FROM lake_sales_items JOIN lake_sales_orders USING (id) ORDER BY id"
    items.append(spark.range(2, 3).selectExpr("id", "'late' AS name"))
    assert [row.name for row in spark.sql(query).collect()] == ["n0", "n1"]
    lake.views(prefix="lake_", tables=["sales.items"])
    assert [row.name for row in spark.sql(query).collect()] == ["n0", "n1", "late"]
    lake.create_table("sales_items", location=str(folder / "items2"), schema="id BIGINT")
    with pytest.raises(UsageError, match="would both be the view sales_items"):
        lake.views(tables=["sales.items", "sales_items"])


def test_a_table_that_was_replaced_under_its_version_is_read_anew(
    lake: Catalog, folder: Path, spark: SparkSession
) -> None:
    for name, first in (("was", 0), ("is", 10)):
        spark.range(first, first + 2, 1, 1).write.format("delta").save(str(folder / name))
    lake.import_table(str(folder / "was"), name="replaced")
    table = lake.table("replaced")
    assert ids(table.read()) == [0, 1]
    lake.import_table(str(folder / "is"), name="replaced", force=True)
    assert (table.version, ids(table.read())) == (0, [10, 11])
    assert ids(spark.table(lake.views(tables=["replaced"])["replaced"])) == [10, 11]


def test_what_is_staged_and_what_is_read_is_leased_until_it_is_done(
    lake: Catalog, folder: Path, spark: SparkSession
) -> None:
    table = lake.create_table("sales.leased", location=str(folder / "leased"), schema="id BIGINT")
    table.append(spark.range(2).coalesce(1))

    def leases() -> list[tuple[str, int]]:
        found = ask(lake, "SELECT purpose, version FROM dl_leases WHERE table_id = :id", id=table.info().table_id)
        return sorted((str(purpose), int(version)) for purpose, version in found)

    with lake.transaction() as transaction:
        transaction.table("sales.leased").append(spark.range(2, 4).coalesce(1))
        assert leases() == [("stage", 1)]
        assert table.vacuum(retention_hours=0, short_retention="allow").files == 0
    assert leases() == []
    with open_catalog(str(lake.uri), spark=spark) as other:
        assert ids(other.table("sales.leased").read()) == [0, 1, 2, 3]
        assert leases() == [("read", 2)]
        with pytest.raises(UsageError, match="holds version 2"):
            table.append(spark.range(1).coalesce(1))
            table.expire(before_version=3)
    assert leases() == []
    with pytest.raises(ZeroDivisionError), lake.transaction() as transaction:
        transaction.table("sales.leased").append(spark.range(1).coalesce(1))
        _ = 1 // 0
    assert leases() == []
