"""Publishing: in order, never over another file, recorded where it fails, and taken up again until it converges."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from deltalake import DeltaTable
from tables import add, create, log_files, paths, rows, run_sql
from telemetry import Telemetry

from mainstem import Catalog, CorruptCatalog, ForeignCommit, Table, open_catalog
from mainstem import publish as publishing
from mainstem.deltalog.location import Location
from mainstem.deltalog.names import commit_name
from mainstem.errors import LogNotWritten
from mainstem.publish import Lag, lags, publish
from mainstem.reconcile import patience, reconcile

FOREIGN = b'{"commitInfo":{"operation":"WRITE","engineInfo":"another engine"}}\n'


@pytest.fixture
def later(catalog: Catalog, catalog_uri: str, tmp_path: Path) -> Iterator[Table]:
    """A table at version 0 whose commits wait for somebody to publish them. A refused file is not tried again."""
    create(catalog, tmp_path)
    with open_catalog(catalog_uri, publish_on_commit=False, publish_attempts=1, publish_backoff=600) as opened:
        yield opened.table("sales.orders")


def log_of(table: Table) -> Path:
    return Path(table.location) / "_delta_log"


def statuses(catalog: Catalog) -> list[tuple[Any, ...]]:
    """Version, status, attempts and whether there is an error, of all but the first version."""
    found = "SELECT version, status, attempts, last_error IS NOT NULL FROM dl_mirror_status WHERE version > 0"
    return [(*row[:3], bool(row[3])) for row in rows(catalog, f"{found} ORDER BY version")]


def commit(table: Table, *names: str) -> None:
    for name in names:
        table.commit([add(name)], operation="WRITE")


def test_what_waits_is_published_in_order_with_the_bytes_that_were_ratified(
    catalog: Catalog, later: Table, tmp_path: Path
) -> None:
    commit(later, "a", "b", "c")
    assert statuses(catalog) == [(version, "PENDING", 0, False) for version in (1, 2, 3)]
    assert log_files(later) == [0]
    done = later.publish()
    assert (done.from_version, done.version, done.written) == (0, 3, 3)
    assert statuses(catalog) == [(version, "COMPLETE", 1, False) for version in (1, 2, 3)]
    known = [row[0] for row in rows(catalog, "SELECT content_sha256 FROM dl_table_versions ORDER BY version")]
    assert known == [sha256((log_of(later) / commit_name(version)).read_bytes()).hexdigest() for version in range(4)]
    assert len(DeltaTable(later.location).file_uris()) == 3
    again = later.publish()
    assert (again.from_version, again.version, again.written) == (3, 3, 0)


def test_large_versions_are_read_a_few_at_a_time_and_at_least_one(
    later: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read at once is in memory at once."""
    for sizes in ((1, 1, 1), (9,), (2, 2)):
        for size in sizes:
            later.commit([add(f"f{later.version}-{number}") for number in range(size)], operation="WRITE")
    monkeypatch.setattr(publishing, "_MOST_ACTIONS", 3)
    steps: list[int] = []
    done = later.publish(progress=lambda so_far, total: steps.append(so_far))
    assert (steps, done.version, done.written) == ([3, 4, 5, 6], 6, 6)


def test_a_file_that_is_there_with_our_bytes_is_done(catalog: Catalog, later: Table) -> None:
    commit(later, "a", "b")
    later.publish()
    # As if the publisher had been killed after writing, before it could say so.
    run_sql(catalog, "UPDATE dl_table_heads SET published_version = 0")
    run_sql(catalog, "UPDATE dl_mirror_status SET status = 'IN_FLIGHT' WHERE version > 0")
    times = [(log_of(later) / commit_name(version)).stat().st_mtime_ns for version in (1, 2)]
    assert later.publish().written == 0
    assert later.info().published_version == 2
    assert [row[1] for row in statuses(catalog)] == ["COMPLETE", "COMPLETE"]
    assert times == [(log_of(later) / commit_name(version)).stat().st_mtime_ns for version in (1, 2)]


def test_a_file_with_other_bytes_is_a_foreign_commit_and_closes_the_table(catalog: Catalog, later: Table) -> None:
    commit(later, "a", "b", "c")
    theirs = log_of(later) / commit_name(2)
    theirs.write_bytes(FOREIGN)
    with pytest.raises(ForeignCommit, match=r"version 2 of sales\.orders.*mainstem resolve sales\.orders") as caught:
        later.publish()
    assert caught.value.details["version"] == 2
    assert theirs.read_bytes() == FOREIGN
    assert log_files(later) == [0, 1, 2]
    assert later.info().published_version == 1
    assert statuses(catalog) == [(1, "COMPLETE", 1, False), (2, "FAILED", 1, True), (3, "PENDING", 1, False)]
    with pytest.raises(ForeignCommit, match=r"takes no commit.*version 2.*mainstem resolve"):
        commit(later, "d")
    with pytest.raises(ForeignCommit):
        later.publish()
    assert [lag.foreign_version for lag in lags(catalog.store)] == [2]
    # The outside commit is taken back by its author: nothing stands in the way any more.
    theirs.unlink()
    assert later.publish().version == 3
    commit(later, "d")
    assert paths(later) == {"a", "b", "c", "d"}


def test_a_commit_whose_file_cannot_be_written_is_durable_says_so_and_is_published_later(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    create(catalog, tmp_path)
    folder = tmp_path / "sales.orders"
    folder.rename(tmp_path / "away")
    with open_catalog(catalog_uri, publish_attempts=1) as opened:
        table = opened.table("sales.orders")
        done = table.commit([add("a")], operation="WRITE")
        assert (done.version, done.published) == (1, False)
        assert "no folder" in (done.publish_error or "")
        assert statuses(catalog) == [(1, "FAILED", 1, True)]
        # The next one waits behind it: publishing is in order.
        assert not table.commit([add("b")], operation="WRITE").published
        assert statuses(catalog) == [(1, "FAILED", 2, True), (2, "PENDING", 1, False)]
        (tmp_path / "away").rename(folder)
        assert table.publish().version == 2
    assert statuses(catalog) == [(1, "COMPLETE", 3, False), (2, "COMPLETE", 2, False)]
    assert len(DeltaTable(folder).file_uris()) == 2


def test_a_store_that_refuses_a_file_is_asked_as_often_as_the_settings_say(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    # A file in the place of the folder refuses every user; permissions would not refuse root.
    table = create(catalog, tmp_path)
    log = log_of(table)
    log.rename(tmp_path / "log")
    log.write_text("a file where the folder of the log should be")
    with open_catalog(catalog_uri, publish_attempts=2) as opened:
        done = opened.table("sales.orders").commit([add("a")], operation="WRITE")
        assert not done.published
        with pytest.raises(LogNotWritten, match=commit_name(1)):
            opened.table("sales.orders").publish()
    assert statuses(catalog) == [(1, "FAILED", 2, True)]
    log.unlink()
    (tmp_path / "log").rename(log)
    assert table.publish().written == 1
    assert statuses(catalog) == [(1, "COMPLETE", 3, False)]


def test_publishers_at_once_write_each_file_once(catalog: Catalog, later: Table) -> None:
    commit(later, *"abcdefgh")
    start = threading.Barrier(4)

    def one() -> int:
        start.wait()
        return publish(later._store, later.name).written

    with ThreadPoolExecutor(4) as pool:
        written = [future.result() for future in [pool.submit(one) for _ in range(4)]]
    assert sum(written) == 8
    assert {row[1] for row in statuses(catalog)} == {"COMPLETE"}
    assert later.info().published_version == 8


def test_rows_that_are_not_those_that_were_committed_are_not_published(catalog: Catalog, later: Table) -> None:
    commit(later, "a", "b", "c")
    run_sql(catalog, "UPDATE dl_add_files SET size_bytes = 101 WHERE version = 2")
    with pytest.raises(CorruptCatalog, match=r"version 2 of sales\.orders.*sha256") as caught:
        later.publish()
    assert caught.value.exit_code == 8
    assert log_files(later) == [0, 1]
    assert statuses(catalog) == [(1, "COMPLETE", 1, False), (2, "FAILED", 1, True), (3, "PENDING", 1, False)]
    run_sql(catalog, "UPDATE dl_add_files SET size_bytes = 100 WHERE version = 2")
    run_sql(catalog, "DELETE FROM dl_table_versions WHERE version = 3")
    with pytest.raises(CorruptCatalog, match="lacks some of the versions 2 to 3"):
        later.publish()
    assert log_files(later) == [0, 1]


def test_the_reconciler_repairs_what_it_can_and_reports_the_rest(
    catalog: Catalog, later: Table, catalog_uri: str, tmp_path: Path
) -> None:
    commit(later, "a", "b")
    with open_catalog(catalog_uri, publish_on_commit=False, publish_attempts=1) as opened:
        for name in ("gone", "foreign"):
            create(catalog, tmp_path, name=name)
            commit(opened.table(name), "a")
        (tmp_path / "gone").rename(tmp_path / "away")
        (tmp_path / "foreign" / "_delta_log" / commit_name(1)).write_bytes(FOREIGN)
        first = {each.name: each for each in reconcile(opened.store)}
        assert {name: (each.outcome, each.exit_code) for name, each in first.items()} == {
            "sales.orders": ("published", 0),
            "gone": ("failed", 2),
            "foreign": ("failed", 3),
        }
        assert (first["sales.orders"].versions, first["sales.orders"].version) == (2, 2)
        assert "mainstem resolve foreign" in (first["foreign"].hint or "")
        (tmp_path / "away").rename(tmp_path / "gone")
        # Both have just failed: they are left alone, and that is said.
        second = {each.name: each for each in reconcile(opened.store)}
        assert {name: (each.outcome, each.exit_code) for name, each in second.items()} == {
            "gone": ("postponed", 75),
            "foreign": ("postponed", 3),
        }
        assert 0 < second["gone"].wait <= 5
        assert "no folder" in (second["gone"].error or "")
        run_sql(catalog, "UPDATE dl_mirror_status SET updated_at = '2026-01-01 00:00:00+00:00' WHERE status = 'FAILED'")
        third = {each.name: each.outcome for each in reconcile(opened.store)}
        assert third == {"gone": "published", "foreign": "failed"}


def test_a_checkpoint_that_fails_in_any_way_fails_no_commit(catalog: Catalog, catalog_uri: str, tmp_path: Path) -> None:
    for name in ("first", "second"):
        create(catalog, tmp_path, name=name, delta__checkpointInterval="1")
    with open_catalog(catalog_uri, scratch=str(tmp_path / "nowhere" / "deeper")) as opened:
        with opened.transaction() as tx:
            for name in ("first", "second"):
                tx.table(name).stage([add("a")], operation="WRITE")
        assert {(done.published, done.publish_error) for done in tx.committed.values()} == {(True, None)}
    assert [table.published_version for table in catalog.tables()] == [1, 1]


def test_publishing_that_fails_in_any_way_fails_neither_the_commit_nor_the_other_tables(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        create(catalog, tmp_path, name=name)
    put = publishing.put_commit

    def broken(place: Location, version: int, data: bytes) -> object:
        if place.uri.endswith("first"):
            raise OSError(28, "No space left on device")
        return put(place, version, data)

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "put_commit", broken)
        with catalog.transaction() as tx:
            for name in ("first", "second"):
                tx.table(name).stage([add("a")], operation="WRITE")
        again = catalog.publish()
    told = {name: (done.published, done.publish_error) for name, done in tx.committed.items()}
    assert told == {"first": (False, "OSError: [Errno 28] No space left on device"), "second": (True, None)}
    assert [(each.name, each.outcome, each.exit_code) for each in again] == [("first", "failed", 1)]
    assert [each.outcome for each in catalog.publish()] == ["published"]


def test_reconcilers_at_once_are_safe(catalog: Catalog, later: Table, catalog_uri: str, tmp_path: Path) -> None:
    commit(later, "a", "b", "c")
    create(catalog, tmp_path, name="other")
    with open_catalog(catalog_uri, publish_on_commit=False) as opened:
        commit(opened.table("other"), "a", "b")
    start = threading.Barrier(3)

    def one() -> list[int]:
        start.wait()
        return [each.exit_code for each in reconcile(later._store)]

    with ThreadPoolExecutor(3) as pool:
        codes = [future.result() for future in [pool.submit(one) for _ in range(3)]]
    assert {code for each in codes for code in each} == {0}
    assert lags(catalog.store) == []
    assert [later.info().published_version, catalog.table("other").info().published_version] == [3, 2]


def test_the_wait_after_a_failure_doubles_with_each_attempt_up_to_the_setting() -> None:
    def lag(attempts: int, idle: float = 0.0, status: str = "FAILED") -> Lag:
        return Lag("t", 1, 9.0, status, attempts, idle, "refused", None)

    assert [patience(lag(attempts), longest=600) for attempts in (1, 2, 3, 8, 10_000)] == [5, 10, 20, 600, 600]
    assert patience(lag(3, idle=15.0), longest=600) == 5
    assert patience(lag(3, idle=21.0), longest=600) == 0
    assert [patience(lag(9, status=status), longest=600) for status in ("PENDING", "IN_FLIGHT")] == [0, 0]
    assert patience(lag(9), longest=0) == 0


def test_commits_and_publishing_are_measured(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, telemetry: Telemetry
) -> None:
    name = f"t{uuid4().hex}"  # of its own, since measurements add up over the run
    create(catalog, tmp_path, name=name)

    def recorded(metric: str, **attributes: object) -> int:
        points = (point for point in telemetry.points(metric) if attributes.items() <= dict(point.attributes).items())
        return sum(point.count for point in points)

    commits = recorded("commit_latency_ms", tables=1)
    with open_catalog(catalog_uri, publish_on_commit=False, publish_attempts=1) as opened:
        table = opened.table(name)
        commit(table, "a", "b")
        table.publish()
        commit(table, "c")
        (log_of(table) / commit_name(3)).write_bytes(FOREIGN)
        with pytest.raises(ForeignCommit):
            table.publish()
    assert recorded("commit_latency_ms", tables=1) - commits == 3
    assert telemetry.counted("versions_committed_total", "table")[name] == 4
    assert telemetry.counted("mirror_failures_total", "table")[name] == 1
    assert recorded("mirror_latency_ms", table=name) == 3
    # The first version, the two after it together, and the one that failed.
    assert recorded("mirror_lag_seconds", table=name) == 3
