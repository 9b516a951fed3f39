"""Expiry and vacuum: what nobody needs goes, what anybody needs stays."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from tables import add, create, paths, remove

from mainstem import Catalog, Table, UsageError, VersionNotFound

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC).timestamp()


def put(folder: Path, name: str, *, age: float = LONG_AGO) -> Path:
    """A data file on disk, old unless said otherwise."""
    file = folder / "sales.orders" / "day=2026-11-18" / f"{name}.parquet"
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
    with catalog.store.writing() as queries:
        now = queries.now()
        columns = ("lease_id", "table_id", "version", "purpose", "holder", "created_at", "expires_at")
        lease = (str(uuid4()), table.info().table_id, 2, "read", "ann", now, now + timedelta(hours=1))
        queries.copy("dl_leases", columns, [lease])
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


def test_vacuum_is_refused_where_the_log_leads(table: Table) -> None:
    table.rollback()
    with pytest.raises(UsageError, match=r"the log of sales\.orders leads"):
        table.vacuum()
