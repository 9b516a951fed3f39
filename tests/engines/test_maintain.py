"""Expiry and vacuum: what nobody needs goes, what anybody needs stays."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from catalogs import change
from tables import add, create, paths, remove, rows, run_sql
from telemetry import Telemetry

from mainstem import Catalog, ForeignCommit, Table, UsageError, VersionNotFound
from mainstem.datafiles import delete_files
from mainstem.leases import Leases

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC).timestamp()


def put(folder: Path, name: str, *, age: float = LONG_AGO, table: str = "sales.orders") -> Path:
    """A data file on disk, old unless said otherwise."""
    file = folder / table / "day=2026-11-18" / f"{name}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * 100)
    os.utime(file, (age, age))
    return file


@pytest.fixture
def table(catalog: Catalog, tmp_path: Path) -> Table:
    """Version 1 adds a and b, version 2 puts c in the place of a, version 3 puts d in the place of c."""
    table = create(catalog, tmp_path)
    for name in "abcd":
        put(tmp_path, name)
    table.commit([add("a"), add("b")], operation="WRITE")
    table.commit([remove("a"), add("c")], operation="UPDATE")
    table.commit([remove("c"), add("d")], operation="UPDATE")
    return table


def lease(catalog: Catalog, table: Table, version: int, purpose: str, *, ends_in_hours: int = 1) -> None:
    """A lease that began half an hour ago."""
    with catalog.store.writing() as queries:
        now = queries.now()
        columns = ("lease_id", "table_id", "version", "purpose", "holder", "created_at", "expires_at")
        times = (now - timedelta(minutes=30), now + timedelta(hours=ends_in_hours))
        queries.copy("dl_leases", columns, [(str(uuid4()), table.info().table_id, version, purpose, "ann", *times)])


def on_disk(folder: Path) -> set[str]:
    return {file.stem for file in (folder / "sales.orders").rglob("*.parquet") if "_delta_log" not in file.parts}


def test_expired_versions_cannot_be_read_and_the_others_are_as_before(table: Table) -> None:
    done = table.expire(before_version=2)
    assert (done.from_version, done.min_readable_version) == (0, 2)
    assert done.rows > 0
    assert paths(table, version=2) == {"b", "c"}
    assert paths(table) == {"b", "d"}
    with pytest.raises(VersionNotFound, match="versions 2 to 3"):
        table.snapshot(version=1)
    assert table.snapshot().partition_columns == ["day"]
    table.commit([remove("b")], operation="DELETE")
    assert paths(table) == {"d"}
    assert table.expire(before_version=1).rows == 0


def test_a_tag_and_a_lease_hold_versions(catalog: Catalog, table: Table) -> None:
    catalog.tag("eod")
    table.commit([add("e")], operation="WRITE")
    with pytest.raises(UsageError, match="tag 'eod' holds version 3"):
        table.expire(before_version=4)
    catalog.untag("eod")
    lease(catalog, table, 2, "read")
    with pytest.raises(UsageError, match="lease 'ann' holds version 2"):
        table.expire(before_version=3)
    assert table.expire(before_version=2).min_readable_version == 2


def test_what_is_not_published_cannot_be_forgotten(table: Table) -> None:
    with pytest.raises(UsageError, match="up to 3, the newest that is published"):
        table.expire(before_version=4)


def test_vacuum_deletes_what_was_removed_long_ago_and_what_nobody_ever_added(table: Table, tmp_path: Path) -> None:
    put(tmp_path, "left over by a crash")
    put(tmp_path, "just being written", age=datetime.now(UTC).timestamp())
    found = table.vacuum(dry_run=True)
    assert {Path(path).stem for path in found.paths} == {"a", "c", "left over by a crash"}
    assert on_disk(tmp_path) == {"a", "b", "c", "d", "left over by a crash", "just being written"}
    done = table.vacuum()
    assert (done.files, done.size_bytes) == (3, 300)
    assert on_disk(tmp_path) == {"b", "d", "just being written"}
    assert table.vacuum().files == 0
    assert (tmp_path / "sales.orders" / "_delta_log" / f"{1:020d}.json").exists()


def test_vacuum_keeps_what_a_tag_needs_and_what_was_removed_a_short_while_ago(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    catalog.tag("eod")
    now = int(datetime.now(UTC).timestamp() * 1000)
    table.commit([remove("d", deletionTimestamp=now - 1000)], operation="DELETE")
    table.vacuum()
    assert on_disk(tmp_path) == {"b", "d"}
    table.vacuum(retention_hours=0, short_retention="allow")
    assert on_disk(tmp_path) == {"b", "d"}
    catalog.untag("eod")
    table.vacuum(retention_hours=0, short_retention="allow")
    assert on_disk(tmp_path) == {"b"}


def test_a_retention_below_the_tables_own_is_refused_unless_allowed(table: Table) -> None:
    with pytest.raises(UsageError, match="1 hours is shorter than the 168 hours"):
        table.vacuum(retention_hours=1)


def test_vacuum_follows_no_link_and_deletes_nothing_outside(table: Table, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"x")
    os.utime(outside / "precious.parquet", (LONG_AGO, LONG_AGO))
    (tmp_path / "sales.orders" / "link").symlink_to(outside)
    elsewhere = f"file:{outside}/precious.parquet"
    table.commit([add("e", path=elsewhere)], operation="CLONE")
    table.commit([remove("e", path=elsewhere)], operation="DELETE")
    table.vacuum()
    assert (outside / "precious.parquet").exists()


def test_vacuum_keeps_live_files_however_their_paths_are_spelled(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path, delta__enableDeletionVectors="true")
    (tmp_path / "alias").symlink_to(tmp_path / "sales.orders")
    for name in ("one", "two", "three", "four", "five", "six", "marked", "gone"):
        put(tmp_path, name)
    (tmp_path / "sales.orders" / "short").symlink_to("day=2026-11-18")
    vector = tmp_path / "sales.orders" / "ab" / "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    vector.parent.mkdir()
    vector.write_bytes(b"x")
    os.utime(vector, (LONG_AGO, LONG_AGO))
    absolute = {"storageType": "p", "pathOrInlineDv": f"file:{tmp_path}/alias/day=2026-11-18/marked.parquet"}
    beside = {"storageType": "u", "pathOrInlineDv": "./ab/.^-aqEH.-t@S}K{vb[*k^"}
    counted = {"offset": 1, "sizeInBytes": 34, "cardinality": 1}
    folder = "day=2026-11-18"
    spelled = [
        add("one", path=f"./{folder}/one.parquet", deletionVector={**absolute, **counted}),
        add("two", path=f"{folder}//two.parquet", deletionVector={**beside, **counted}),
        add("three", path=f"sub/../{folder}/three.parquet"),
        add("four", path=f"{folder}/%2E/four.parquet"),
        add("five", path=f"file:{tmp_path}/alias/{folder}/five.parquet"),
        add("six", path="short/six.parquet"),
    ]
    table.commit(spelled, operation="CLONE")
    table.vacuum()
    assert on_disk(tmp_path) == {"one", "two", "three", "four", "five", "six", "marked"}
    assert vector.exists()


def test_vacuum_keeps_what_a_restore_brings_back_after_it_has_looked(
    catalog: Catalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.maintain.refuse_outside_commits", lambda *_: table.restore(version=1))
    assert {Path(path).stem for path in table.vacuum().paths} == {"c"}
    assert on_disk(tmp_path) == {"a", "b", "d"}
    assert paths(table) == {"a", "b"}
    restoring = catalog.transaction()
    monkeypatch.setattr(
        "mainstem.maintain.refuse_outside_commits", lambda *_: restoring.table("sales.orders").restore(version=3)
    )
    table.vacuum(retention_hours=0, short_retention="allow")  # whose lease is there, and whose commit is not
    restoring.commit()
    assert paths(table) == {"b", "d"} <= on_disk(tmp_path)


def test_a_restore_that_comes_while_files_are_deleted_waits_and_finds_them_gone(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def restore() -> None:
        try:
            said.append(f"restored as {table.restore(version=1).version}")
        except VersionNotFound as error:
            said.append(error.message)

    other = threading.Thread(target=restore)

    def deleting(*given: Any) -> int:
        other.start()
        other.join(timeout=0.5)  # so long a restore that did not wait would have had for its look and its commit
        return delete_files(*given)

    monkeypatch.setattr("mainstem.maintain.delete_files", deleting)
    table.vacuum()
    other.join()
    assert len(said) == 1
    assert "files are gone" in said[0]
    assert paths(table) == {"b", "d"} <= on_disk(tmp_path)


def test_a_restore_looks_for_files_of_the_table_by_any_spelling(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    spelled = {
        "a": f"file:{tmp_path}/sales.orders/day=2026-11-18/a.parquet",
        "b": "./day=2026-11-18//b.parquet",
        "c": f"file:{tmp_path}/elsewhere.parquet",
    }
    table.commit([add(name, path=path) for name, path in spelled.items()], operation="CLONE")
    table.commit([remove(name, path=path) for name, path in spelled.items()], operation="DELETE")
    put(tmp_path, "b")
    with pytest.raises(VersionNotFound, match=r"1 of its files are gone, file:.*/a\.parquet"):
        table.restore(version=1)
    put(tmp_path, "a")
    assert table.restore(version=1).version == 3


def test_vacuum_looks_again_before_each_few_files(
    catalog: Catalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = create(catalog, tmp_path, name="clone")
    monkeypatch.setattr("mainstem.maintain._BATCH", 1)
    first: list[str] = []

    def naming_the_rest(seconds: float) -> None:
        """Between two batches a table of the catalog takes the files that are still there."""
        left = {"a", "c"} & on_disk(tmp_path)
        if not first:
            first.extend(left)
            root = (tmp_path / "sales.orders").as_uri()
            clone.commit([add(name, path=f"{root}/day=2026-11-18/{name}.parquet") for name in left], operation="CLONE")

    monkeypatch.setattr("mainstem.maintain.time", SimpleNamespace(monotonic=time.monotonic, sleep=naming_the_rest))
    assert table.vacuum().files == 1
    assert on_disk(tmp_path) == {"b", "d", *first}
    assert len(first) == 1


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def test_a_longer_retention_is_kept_after_versions_have_expired_or_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    for name in ("old", "lately", "live"):
        put(tmp_path, name)
    table.commit([add("old"), add("lately"), add("live")], operation="WRITE")
    for name, days in (("old", 40), ("lately", 10)):
        at = int(days_ago(days).timestamp() * 1000)
        table.commit([remove(name, deletionTimestamp=at)], operation="DELETE", read_version=table.version)
    change(catalog, "UPDATE dl_tables SET created_at = :at", at=days_ago(100))
    table.expire(before_version=3)
    assert [path for (path,) in rows(catalog, "SELECT path FROM dl_remove_files WHERE version < 3")] == []
    table.commit([add("more")], operation="WRITE")
    table.expire(before_version=4)
    table.vacuum(retention_hours=20 * 24)
    assert on_disk(tmp_path) == {"lately", "live"}
    with pytest.raises(UsageError, match="the catalog surely knows the last 720 hours"):
        table.vacuum(retention_hours=50 * 24)
    change(catalog, "UPDATE dl_table_versions SET committed_at = :at WHERE version = 4", at=days_ago(60))
    table.vacuum(retention_hours=50 * 24)  # all that was removed since is in versions that are there
    assert on_disk(tmp_path) == {"lately", "live"}
    table.vacuum()
    assert on_disk(tmp_path) == {"live"}


def test_of_the_time_before_an_import_the_tables_own_retention_is_known(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    put(tmp_path, "unknown")
    for name in "ab":
        table.commit([add(name)], operation="WRITE")
    table.expire(before_version=2)
    with pytest.raises(UsageError, match="the catalog surely knows the last 168 hours"):
        table.vacuum(retention_hours=20 * 24)
    assert on_disk(tmp_path) == {"unknown"}
    table.vacuum(retention_hours=20 * 24, short_retention="allow")
    assert on_disk(tmp_path) == set()


def test_a_retention_that_was_raised_after_versions_had_expired_is_not_taken_for_covered(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    put(tmp_path, "unknown")
    for name in "ab":
        table.commit([add(name)], operation="WRITE")
    table.expire(before_version=2)
    change(catalog, "UPDATE dl_tables SET created_at = :at", at=days_ago(1000))
    body = json.loads((Path(table.location) / "_delta_log" / f"{0:020d}.json").read_text().splitlines()[2])
    assert list(body) == ["metaData"]
    body["metaData"]["configuration"] |= {"delta.deletedFileRetentionDuration": "interval 90 days"}
    table.commit([body], operation="SET TBLPROPERTIES")
    for hours in (None, 80 * 24):
        with pytest.raises(UsageError, match=r"2160 hours reaches back|shorter than the 2160 hours"):
            table.vacuum(retention_hours=hours)
    change(catalog, "UPDATE dl_table_versions SET committed_at = :at WHERE version = 2", at=days_ago(91))
    assert table.vacuum().files == 1


def test_vacuum_is_refused_where_the_log_leads(table: Table) -> None:
    table.rollback()
    with pytest.raises(UsageError, match=r"the log of sales\.orders leads"):
        table.vacuum()


def write_outside(table: Table, version: int, *actions: dict[str, Any]) -> Path:
    """A commit of some engine that knows nothing of us."""
    file = Path(table.location) / "_delta_log" / f"{version:020d}.json"
    now = int(datetime.now(UTC).timestamp() * 1000)
    info = {"commitInfo": {"timestamp": now, "inCommitTimestamp": now, "operation": "OTHER"}}
    file.write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))
    return file


def test_vacuum_deletes_nothing_while_the_log_has_a_commit_of_an_outside_engine(table: Table, tmp_path: Path) -> None:
    put(tmp_path, "outside")
    write_outside(table, 4, add("outside"))
    with pytest.raises(ForeignCommit, match="written version 4 into the log"):
        table.vacuum()
    table.commit([add("e")], operation="WRITE")  # is ratified, and cannot be published: now the catalog has seen it
    with pytest.raises(ForeignCommit, match="written version 4 into the log"):
        table.vacuum(dry_run=True)
    assert on_disk(tmp_path) == {"a", "b", "c", "d", "outside"}
    table.resolve(adopt_foreign=True)
    table.vacuum()
    assert on_disk(tmp_path) == {"b", "d", "outside"}


def test_vacuum_goes_on_where_a_publisher_has_written_and_was_killed(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    run_sql(catalog, "UPDATE dl_table_heads SET published_version = 2")
    table.vacuum()
    assert on_disk(tmp_path) == {"b", "c", "d"}


def test_vacuum_leaves_other_tables_in_the_folder_alone(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    inner = create(catalog, tmp_path, name="sales.orders/inner")
    put(tmp_path, "live", table="sales.orders/inner")
    inner.commit([add("live")], operation="WRITE")
    put(tmp_path, "unknown", table="sales.orders/of somebody")
    (tmp_path / "sales.orders" / "of somebody" / "_delta_log").mkdir()
    shutil.rmtree(tmp_path / "sales.orders" / "inner" / "_delta_log")  # its rows say that it is a table
    table.vacuum()
    assert on_disk(tmp_path) == {"b", "d", "live", "unknown"}


def test_vacuum_keeps_what_another_table_names_by_an_absolute_path(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    clone = create(catalog, tmp_path, name="clone", delta__enableDeletionVectors="true")
    root = (tmp_path / "sales.orders").as_uri()
    vector = put(tmp_path, "vector").with_suffix(".parquet").as_uri()
    marked = {"storageType": "p", "pathOrInlineDv": vector, "offset": 1, "sizeInBytes": 34, "cardinality": 1}
    clone.commit([add("a", path=f"{root}/day=2026-11-18/a.parquet")], operation="CLONE")
    clone.commit([add("own", deletionVector=marked)], operation="DELETE", info={"by": "hand"})
    table.vacuum()
    assert on_disk(tmp_path) == {"a", "b", "d", "vector"}


def test_a_table_that_the_catalog_leads_has_one_name(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(table.location)
    for place in (table.location, tmp_path / "link"):
        with pytest.raises(UsageError, match=r"has the table at .* already, as sales\.orders"):
            catalog.import_table(str(place), name="second")
    table.rollback()
    catalog.import_table(table.location, name="second")
    with pytest.raises(UsageError, match="already, as second"):
        table.cutover()
    shutil.rmtree(Path(table.location) / "_delta_log")
    with pytest.raises(UsageError, match="already, as s"):
        create(catalog, tmp_path, name="third/../sales.orders")
    assert [info.authority for info in catalog.tables()] == ["log", "log"]


def test_vacuum_keeps_what_an_open_transaction_may_have_written(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    with catalog.transaction() as transaction:
        staged = transaction.table("sales.orders")
        transaction.hold(staged.state)
        put(tmp_path, "e", age=datetime.now(UTC).timestamp())
        table.vacuum(retention_hours=0, short_retention="allow")
        assert on_disk(tmp_path) == {"b", "d", "e"}
        staged.stage([add("e")], operation="WRITE")
        with pytest.raises(UsageError, match=r"process .* holds version 3"):
            other_commits_and_expires(table)
    assert on_disk(tmp_path) == {"b", "d", "e"}
    assert rows(catalog, "SELECT * FROM dl_leases") == []


def other_commits_and_expires(table: Table) -> None:
    table.commit([add("f")], operation="WRITE")
    table.expire(before_version=4)


def test_a_transaction_that_fails_gives_its_leases_back(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), catalog.transaction() as transaction:
        for _ in range(2):
            transaction.hold(transaction.table("sales.orders").state)
        transaction.hold(transaction.table("sales.orders").state, version=1)
        assert len(rows(catalog, "SELECT * FROM dl_leases")) == 2
        _ = 1 // 0
    assert rows(catalog, "SELECT * FROM dl_leases") == []


def test_ready_actions_take_no_lease(catalog: Catalog, table: Table, telemetry: Telemetry) -> None:
    def asked() -> set[str]:
        return {name for name in telemetry.names() if "lease" in name}

    table.commit([add("e")], operation="WRITE")
    assert telemetry.spans
    assert asked() == set()
    with catalog.transaction() as transaction:
        transaction.hold(transaction.table("sales.orders").state)
    assert asked() == {"sql.lease_insert", "sql.lease_drop", "sql.leases_over"}


def test_a_lease_that_nobody_gave_back_ends_by_its_time(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    young = (datetime.now(UTC) - timedelta(minutes=10)).timestamp()
    put(tmp_path, "of a killed writer", age=young)
    lease(catalog, table, 3, "stage")
    table.vacuum(retention_hours=0, short_retention="allow")
    assert "of a killed writer" in on_disk(tmp_path)
    run_sql(catalog, "UPDATE dl_leases SET expires_at = created_at")
    with catalog.transaction() as transaction:
        transaction.hold(transaction.table("sales.orders").state)  # takes away what is over
        assert len(rows(catalog, "SELECT * FROM dl_leases")) == 1
    table.vacuum(retention_hours=0, short_retention="allow")
    assert on_disk(tmp_path) == {"b", "d"}


def test_a_reader_holds_its_version_and_a_lease_is_renewed_with_its_beginning(catalog: Catalog, table: Table) -> None:
    seconds = [0.0]
    leases = Leases("read", lasting=timedelta(hours=1), clock=lambda: seconds[0])
    for moment in (0, 60, 2000):
        seconds[0] = moment
        leases.hold(catalog.store, table.info().table_id, 2)
    if not catalog.engine.capabilities.many_processes:
        assert rows(catalog, "SELECT * FROM dl_leases") == []
        return
    [(version, longer)] = rows(
        catalog, "SELECT version, CASE WHEN expires_at > created_at THEN 1 ELSE 0 END FROM dl_leases"
    )
    assert (version, longer) == (2, 1)
    with pytest.raises(UsageError, match="holds version 2"):
        table.expire(before_version=3)
    leases.drop()
    assert table.expire(before_version=3).min_readable_version == 3
