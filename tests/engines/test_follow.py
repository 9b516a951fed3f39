"""A follower brings in what the log has beyond the head: each version whole, however often, whoever else does it."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from catalogs import ask, change, commit_files, paths, replayed, row_counts, state
from deltalake import DeltaTable
from logs import Log, add, domain, info, lines, metadata, protocol, remove, stats, txn, vector

from mainstem import Catalog, open_catalog
from mainstem.errors import (
    ConflictError,
    CorruptLog,
    ForeignCommit,
    TableNotFound,
    UnsupportedFeature,
    UsageError,
    VersionNotFound,
)


@pytest.fixture
def log(tmp_path: Path, catalog: Catalog) -> Log:
    """A log whose first two versions the catalog has as `t`."""
    log = Log.begin(tmp_path / "t", add("a"), add("b", stats=stats(3)))
    log.commit(add("c", deletionVector=vector("one")), txn("app", 1), domain("d", "1"))
    catalog.import_table(log.location, name="t")
    return log


def grow(log: Log) -> None:
    """Three versions more: a new deletion vector, a removal, a description that changes."""
    log.commit(remove("c", deletionVector=vector("one")), add("c", deletionVector=vector("two")), txn("app", 2))
    log.commit(remove("a"), add("d"), domain("d", removed=True))
    log.commit(metadata(configuration={"k": "v"}), protocol(writer=("appendOnly",)), domain("e", "2"))


def test_what_came_since_is_brought_in_version_by_version(catalog: Catalog, log: Log) -> None:
    grow(log)
    seen: list[tuple[int, int]] = []
    table = catalog.table("t")
    done = table.follow(progress=lambda *step: seen.append(step))
    assert (done.from_version, done.version, done.versions) == (1, 4, 3)
    assert seen == [(2, 4), (3, 4), (4, 4)]
    assert [paths(table.snapshot(version=version)) for version in range(5)] == [
        {"a", "b"},
        {"a", "b", "c"},
        {"a", "b", "c"},
        {"b", "c", "d"},
        {"b", "c", "d"},
    ]
    assert [dict(table.snapshot(version=version).app_transactions) for version in (0, 1, 2)] == [
        {}, {"app": 1}, {"app": 2},
    ]  # fmt: skip
    assert [dict(table.snapshot(version=version).domains) for version in (1, 3, 4)] == [{"d": "1"}, {}, {"e": "2"}]
    assert table.snapshot().properties == {"k": "v"}
    assert table.info().published_version == 4
    assert ask(catalog, "SELECT protocol_min_writer, properties FROM dl_tables") == [(7, '{"k":"v"}')]


def test_following_equals_importing_it_all_at_once(catalog: Catalog, log: Log) -> None:
    grow(log)
    catalog.table("t").follow()
    catalog.import_table(log.location, name="whole")
    assert commit_files(catalog, "t") == commit_files(catalog, "whole")
    for version in range(5):
        followed = catalog.table("t").snapshot(version=version)
        whole = catalog.table("whole").snapshot(version=version)
        assert state(followed) == state(whole) == replayed(catalog, "t", version)
        assert (followed.timestamp, followed.content_sha256) == (whole.timestamp, whole.content_sha256)
        assert (followed.domains, followed.app_transactions) == (whole.domains, whole.app_transactions)


def test_following_again_changes_nothing(catalog: Catalog, log: Log) -> None:
    grow(log)
    catalog.table("t").follow()
    before = row_counts(catalog)
    done = catalog.table("t").follow()
    assert (done.from_version, done.version, done.versions) == (4, 4, 0)
    assert row_counts(catalog) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "torn write"),
        (lines(info(), add("x")) + b'{"add":{"path"', "line 3"),
        (lines(info(), add("x"), add("y", size=-1)), "line 3"),
    ],
)
def test_a_torn_version_is_refused_and_nothing_of_it_is_written(
    catalog: Catalog, log: Log, content: bytes, words: str
) -> None:
    grow(log)
    torn = log.path(3)
    whole = torn.read_bytes()
    torn.write_bytes(content)
    table = catalog.table("t")
    with pytest.raises(CorruptLog, match=words) as caught:
        table.follow()
    assert caught.value.details["file"] == torn.name
    assert (table.version, paths(table.snapshot())) == (2, {"a", "b", "c"}), "the versions before it are in"
    assert ask(catalog, "SELECT count(*) FROM dl_add_files WHERE version > 2") == [(0,)]
    torn.write_bytes(whole)
    assert table.follow().version == 4
    assert paths(table.snapshot()) == {"b", "c", "d"}


def test_a_version_that_asks_for_an_unknown_reader_is_refused_by_name(catalog: Catalog, log: Log) -> None:
    log.commit(add("d"))
    log.commit(add("e"), protocol("timeTravelV9"))
    with pytest.raises(UnsupportedFeature, match="timeTravelV9"):
        catalog.table("t").follow()
    assert catalog.table("t").version == 2
    assert "e" not in paths(catalog.table("t").snapshot())


def test_a_time_that_is_no_date_is_refused_and_nothing_is_written(catalog: Catalog, log: Log) -> None:
    enabled = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "2"}
    log.commit(info(inCommitTimestamp=2**62), metadata(configuration=enabled))
    before = row_counts(catalog)
    with pytest.raises(CorruptLog, match="time of version 2"):
        catalog.table("t").follow()
    assert row_counts(catalog) == before


def test_threads_that_follow_at_once_bring_every_version_in_once(catalog: Catalog, log: Log) -> None:
    for number in range(8):
        log.commit(add(f"f{number}"), remove(f"f{number - 1}"))
    barrier = threading.Barrier(3)

    def follow(_: int) -> int:
        with open_catalog(catalog.settings.catalog) as mine:
            table = mine.table("t")
            barrier.wait(30)
            return table.follow().version

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(follow, range(3))) == [9, 9, 9]
    _require_followed(catalog, log)


FOLLOWER = """
import sys
from mainstem import open_catalog

with open_catalog(sys.argv[1]) as catalog:
    table = catalog.table("t")
    catalog.close()
    print("ready", flush=True)
    sys.stdin.readline()
    print(table.follow().version, flush=True)
"""


def _process(script: str, catalog: Catalog) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", script, catalog.settings.catalog], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_processes_that_follow_at_once_bring_every_version_in_once(catalog: Catalog, log: Log) -> None:
    for number in range(8):
        log.commit(add(f"f{number}"), remove(f"f{number - 1}"))
    catalog.close()
    processes = [_process(FOLLOWER, catalog) for _ in range(2)]
    try:
        assert [_line(process) for process in processes] == [b"ready"] * 2
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        assert [_line(process) for process in processes] == [b"9"] * 2
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    _require_followed(catalog, log)


def _require_followed(catalog: Catalog, log: Log) -> None:
    """The table `t` is what an import of its whole log makes of it."""
    catalog.import_table(log.location, name="whole")
    assert commit_files(catalog, "t") == commit_files(catalog, "whole")
    for version in range(catalog.table("t").version + 1):
        assert state(catalog.table("t").snapshot(version=version)) == replayed(catalog, "whole", version)


# Stops in the middle of a transaction, after the rows of version 3 were written and before its head was moved.
KILLED_INSIDE = """
import sys
from mainstem import open_catalog
from mainstem.versions import VersionRows

written = VersionRows.append

def stop(rows, queries, version):
    written(rows, queries, version)
    if version.version == 3:
        print("inside", flush=True)
        sys.stdin.read()

VersionRows.append = stop
open_catalog(sys.argv[1]).table("t").follow()
"""
KILLED_BETWEEN = """
import sys
from mainstem import open_catalog

def stop(version, newest):
    if version == 2:
        print("between", flush=True)
        sys.stdin.read()

open_catalog(sys.argv[1]).table("t").follow(progress=stop)
"""


@pytest.mark.parametrize("script", [KILLED_INSIDE, KILLED_BETWEEN], ids=["inside", "between"])
def test_a_kill_leaves_whole_versions_and_the_next_follower_goes_on(catalog: Catalog, log: Log, script: str) -> None:
    grow(log)
    catalog.close()
    process = _process(script, catalog)
    try:
        assert _line(process) in (b"inside", b"between")
    finally:
        process.kill()
        process.communicate()
    table = catalog.table("t")
    assert (table.version, paths(table.snapshot())) == (2, {"a", "b", "c"})
    assert state(table.snapshot()) == replayed(catalog, "t", 2)
    done = table.follow()
    assert (done.from_version, done.version) == (2, 4)
    _require_followed(catalog, log)


def test_a_clean_up_that_took_unseen_commits_is_bridged_by_the_checkpoint(catalog: Catalog, log: Log) -> None:
    grow(log)
    # As Delta writes it: dataChange is false, an application that was long silent and a removed domain are gone.
    log.checkpoint(
        4, protocol(writer=("appendOnly",)), metadata(configuration={"k": "v"}), domain("e", "2"),
        add("b", stats='{"numRecords": 3}', dataChange=False), add("d", dataChange=False),
        add("c", deletionVector=vector("two"), dataChange=False),
        remove("a"), remove("c", deletionVector=vector("one")), remove("never seen"),
    )  # fmt: skip
    log.clean_up(before=4)
    log.commit(add("f"), remove("d"))
    table = catalog.table("t")
    done = table.follow()
    assert (done.from_version, done.version) == (1, 5)
    assert {path: row["version"] for (path, _), row in state(table.snapshot()).items()} == {"b": 0, "c": 4, "f": 5}
    assert [(entry.version, entry.kind) for entry in table.history()] == [
        (5, "commit"), (4, "checkpoint"), (1, "commit"), (0, "commit"),
    ]  # fmt: skip
    bridged = table.snapshot(version=4)
    assert (dict(bridged.domains), dict(bridged.app_transactions), bridged.properties) == ({"e": "2"}, {}, {"k": "v"})
    assert paths(bridged) == {"b", "c", "d"}
    assert dict(table.snapshot(version=1).domains) == {"d": "1"}, "what was there before is as it was"
    assert [version for (version,) in ask(catalog, "SELECT version FROM dl_add_files WHERE path = 'b'")] == [0]
    removed = ask(catalog, "SELECT path FROM dl_remove_files WHERE version = 4 ORDER BY path")
    assert removed == [("a",), ("c",), ("never seen",)]
    for version in (0, 1, 4, 5):
        assert state(table.snapshot(version=version)) == replayed(catalog, "t", version)


@pytest.mark.parametrize("version", [2, 3])
def test_versions_that_a_checkpoint_bridged_are_not_found(catalog: Catalog, log: Log, version: int) -> None:
    grow(log)
    state_then = (protocol(), metadata(), add("b", dataChange=False))
    log.checkpoint(4, *state_then)
    log.clean_up(before=4)
    table = catalog.table("t")
    table.follow()
    with pytest.raises(VersionNotFound, match="versions 0 to 4"):
        table.snapshot(version=version)
    before, after = table.snapshot(version=1).timestamp, table.snapshot(version=4).timestamp
    with pytest.raises(VersionNotFound):
        table.snapshot(timestamp=before + (after - before) / 2)
    assert table.snapshot(timestamp=after).version == 4


def test_a_checkpoint_of_another_writer_bridges_too(catalog: Catalog, log: Log) -> None:
    grow(log)
    catalog.import_table(log.location, name="whole")
    DeltaTable(log.location).create_checkpoint()
    log.clean_up(before=4)
    table = catalog.table("t")
    table.follow()
    whole = catalog.table("whole").snapshot()
    bridged = table.snapshot()
    assert {known: row["stats"] for known, row in state(bridged).items()} == {
        known: row["stats"] for known, row in state(whole).items()
    }
    assert (bridged.metadata.table_properties, dict(bridged.domains), dict(bridged.app_transactions)) == (
        whole.metadata.table_properties, dict(whole.domains), dict(whole.app_transactions),
    )  # fmt: skip
    assert ask(catalog, "SELECT count(*) FROM dl_add_files AS a JOIN dl_tables AS t ON t.table_id = a.table_id "
        "WHERE t.name = 't' AND path = 'b'") == [(1,)]  # fmt: skip


def test_commits_that_the_catalog_has_may_be_cleaned_up(catalog: Catalog, log: Log) -> None:
    grow(log)
    log.checkpoint(1, protocol(), metadata(), add("a"), add("b"))
    log.clean_up(before=2)
    assert catalog.table("t").follow().version == 4
    assert [entry.kind for entry in catalog.table("t").history()] == ["commit"] * 5


def test_a_gap_without_a_checkpoint_is_named_and_what_is_before_it_is_brought_in(catalog: Catalog, log: Log) -> None:
    grow(log)
    log.path(3).unlink()
    with pytest.raises(CorruptLog, match="version 3 is missing"):
        catalog.table("t").follow()
    assert catalog.table("t").version == 2


@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_table_that_was_dropped_and_made_anew_is_another_table(catalog: Catalog, log: Log, commits: int) -> None:
    for file in log.folder.iterdir():
        file.unlink()
    anew = Log.begin(log.root, add("x"))
    for number in range(commits):
        anew.commit(add(f"y{number}"))
    before = row_counts(catalog)
    with pytest.raises(ForeignCommit) as caught:
        catalog.table("t").follow()
    assert "--force" in str(caught.value)
    assert row_counts(catalog) == before
    catalog.import_table(log.location, name="t", force=True)
    assert "x" in paths(catalog.table("t").snapshot())


def test_a_log_that_is_gone_says_so(catalog: Catalog, log: Log) -> None:
    log.folder.rename(log.root / "gone")
    with pytest.raises(UsageError, match="not a Delta table"):
        catalog.table("t").follow()
    assert catalog.table("t").version == 1


def test_a_table_that_the_catalog_leads_is_not_followed(catalog: Catalog, log: Log) -> None:
    grow(log)
    change(catalog, "UPDATE dl_tables SET authority = 'catalog'")
    with pytest.raises(UsageError, match="the catalog leads t"):
        catalog.table("t").follow()
    assert catalog.table("t").version == 1


@pytest.mark.parametrize(
    ("meanwhile", "error"),
    [
        ({"force": True, "up_to_version": 0}, ConflictError),
        ({"force": True, "other": True}, ConflictError),
        ({"authority": "catalog"}, UsageError),
    ],
)
def test_a_table_that_became_another_one_meanwhile_is_left_alone(
    catalog: Catalog, log: Log, tmp_path: Path, meanwhile: dict[str, Any], error: type[Exception]
) -> None:
    grow(log)
    other = Log.begin(tmp_path / "other", add("x"))

    def interfere(version: int, newest: int) -> None:
        if "authority" in meanwhile:
            change(catalog, "UPDATE dl_tables SET authority = 'catalog'")
        else:
            location = other.location if "other" in meanwhile else log.location
            catalog.import_table(location, name="t", force=True, up_to_version=meanwhile.get("up_to_version"))

    with pytest.raises(error):
        catalog.table("t").follow(progress=interfere)
    table = catalog.table("t")
    expected = {"authority": (2, {"a", "b", "c"}), "other": (0, {"x"}), "up_to_version": (0, {"a", "b"})}
    assert (table.version, paths(table.snapshot())) == next(expected[key] for key in expected if key in meanwhile)
    assert state(table.snapshot()) == replayed(catalog, "t", table.version)


def test_a_table_that_is_not_there_is_not_found(catalog: Catalog) -> None:
    with pytest.raises(TableNotFound):
        catalog.table("t")
