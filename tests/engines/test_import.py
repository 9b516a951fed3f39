"""An import brings the whole readable history in, or nothing and no row."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from catalogs import ask, change, commit_files, paths, replayed, row_counts, state
from logs import Log, add, domain, info, lines, metadata, protocol, remove, stats, txn, vector

from mainstem import Catalog, driverload, importer, open_catalog
from mainstem.errors import (
    CorruptLog,
    MainstemError,
    TableNotFound,
    UnsupportedFeature,
    UsageError,
    VersionNotFound,
)
from mainstem.importer import Imported
from mainstem.store import Queries

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(millis: int) -> datetime:
    return EPOCH + timedelta(milliseconds=millis)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Four versions: two files, one more, one less, and a description of the table that changes."""
    log = Log.begin(tmp_path / "orders", add("a", stats=stats(3)), add("b"))
    log.commit(add("c"), txn("app", 7))
    log.commit(remove("a"), metadata(configuration={"k": "v"}))
    log.commit(info(operation="SET"), domain("d", "x"))
    return log


def test_an_import_brings_every_version_with_its_files(catalog: Catalog, log: Log) -> None:
    done = catalog.import_table(log.location, name="sales.orders")
    table = catalog.table("sales.orders")
    assert (done.first_version, done.version, done.files, done.dry_run) == (0, 3, 2, False)
    assert (table.version, table.authority, table.location) == (3, "log", log.location)
    assert [paths(table.snapshot(version=version)) for version in range(4)] == [
        {"a", "b"},
        {"a", "b", "c"},
        {"b", "c"},
        {"b", "c"},
    ]
    assert table.info().published_version == 3


def test_an_import_may_be_named_by_any_spelling_of_its_folder(catalog: Catalog, log: Log) -> None:
    catalog.import_table(f"file://{log.location}/", name="t")
    assert catalog.table("t").location == log.location


def test_a_check_that_refuses_leaves_no_row(catalog: Catalog, log: Log) -> None:
    before = row_counts(catalog)

    def refuse(imported: Imported, queries: Queries) -> None:
        assert queries.row("head_row", table_id=imported.table_id) is not None, "it looks before the commit"
        raise CorruptLog("no")

    with pytest.raises(CorruptLog, match="no"):
        importer.import_table(catalog.store, log.location, name="t", check=refuse)
    assert row_counts(catalog) == before
    catalog.import_table(log.location, name="t")


def test_a_log_that_breaks_late_leaves_no_row_of_its_beginning(
    catalog: Catalog, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driverload, "BATCH", 2)  # so that rows were written before the bad line is read
    log.write(lines(add("d"), add("e")) + b'{"add":{"path":"f"')
    before = row_counts(catalog)
    with pytest.raises(CorruptLog) as caught:
        catalog.import_table(log.location, name="t")
    assert (caught.value.details["file"], caught.value.details["line"]) == (log.path(4).name, 3)
    assert row_counts(catalog) == before


KILLED = """
import sys
from mainstem import importer, open_catalog

def stop(imported, queries):
    rows = queries.rows("live_paths", table_id=imported.table_id)
    print(len(rows), flush=True)
    sys.stdin.read()

importer.import_table(open_catalog(sys.argv[1]).store, sys.argv[2], name="t", check=stop)
"""


def test_a_kill_half_way_leaves_no_row_and_the_next_import_works(catalog: Catalog, log: Log) -> None:
    before = row_counts(catalog)
    catalog.close()
    uri = catalog.settings.catalog
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, uri, log.location], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"2", "all rows were written, and not committed"
    finally:
        process.kill()
        process.communicate()
    assert row_counts(catalog) == before
    assert catalog.import_table(log.location, name="t").version == 3


def test_a_dry_run_reads_everything_and_writes_nothing(catalog: Catalog, log: Log) -> None:
    before = row_counts(catalog)
    seen: list[tuple[int, int]] = []
    done = catalog.import_table(log.location, name="t", dry_run=True, progress=lambda *step: seen.append(step))
    assert (done.first_version, done.version, done.files, done.dry_run) == (0, 3, 2, True)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert row_counts(catalog) == before
    real = catalog.import_table(log.location, name="t")
    assert (real.actions, real.files) == (done.actions, done.files)


def test_a_dry_run_finds_what_a_real_one_would(catalog: Catalog, log: Log) -> None:
    log.write(b"")
    with pytest.raises(CorruptLog, match="torn write"):
        catalog.import_table(log.location, name="t", dry_run=True)


def test_a_name_that_is_taken_is_refused_and_says_what_to_do(catalog: Catalog, log: Log) -> None:
    catalog.import_table(log.location, name="t")
    for dry_run in (False, True):
        with pytest.raises(UsageError, match="already has a table t") as caught:
            catalog.import_table(log.location, name="t", dry_run=dry_run)
    assert "mainstem follow t" in str(caught.value)


def test_force_replaces_a_table_and_leaves_nothing_of_the_old_one(catalog: Catalog, log: Log, tmp_path: Path) -> None:
    catalog.import_table(log.location, name="t")
    catalog.import_table(log.location, name="other")
    kept = catalog.table("t").info().table_id
    other = Log.begin(tmp_path / "other", add("x"))
    catalog.import_table(other.location, name="t", force=True)
    table = catalog.table("t")
    assert (table.version, table.location, table.info().table_id) == (0, other.location, kept)
    assert paths(table.snapshot()) == {"x"}
    assert table.snapshot().properties == {}
    assert (dict(table.snapshot().app_transactions), dict(table.snapshot().domains)) == ({}, {})
    with pytest.raises(VersionNotFound):
        table.snapshot(version=1)
    assert paths(catalog.table("other").snapshot()) == {"b", "c"}, "another table is not touched"


def test_force_that_fails_leaves_the_old_table_as_it_was(catalog: Catalog, log: Log, tmp_path: Path) -> None:
    catalog.import_table(log.location, name="t")
    before = row_counts(catalog)
    other = Log.begin(tmp_path / "other", add("x"))
    other.write(b"{")
    with pytest.raises(CorruptLog):
        catalog.import_table(other.location, name="t", force=True)
    assert row_counts(catalog) == before
    assert paths(catalog.table("t").snapshot()) == {"b", "c"}


def test_force_never_lets_a_tag_name_something_else(catalog: Catalog, log: Log, tmp_path: Path) -> None:
    catalog.import_table(log.location, name="t")
    catalog.tag("eod")
    before = row_counts(catalog)
    shorter = Log.begin(tmp_path / "shorter", add("x"))
    with pytest.raises(UsageError, match=r"the tag 'eod' names version 3 of t, which would be gone.*tag eod --delete"):
        catalog.import_table(shorter.location, name="t", force=True)
    other = Log.begin(tmp_path / "other", add("x"))
    for name in "yzw":
        other.commit(add(name))
    with pytest.raises(UsageError, match="which would have another content"):
        catalog.import_table(other.location, name="t", force=True)
    assert row_counts(catalog) == before
    assert paths(catalog.table("t").snapshot(tag="eod")) == {"b", "c"}
    log.commit(add("d"))
    catalog.import_table(log.location, name="t", force=True)
    assert paths(catalog.table("t").snapshot(tag="eod")) == {"b", "c"}
    catalog.untag("eod")
    catalog.import_table(other.location, name="t", force=True)


def test_force_is_refused_while_the_catalog_leads_with_commits_that_are_nowhere_else(
    catalog: Catalog, log: Log
) -> None:
    catalog.import_table(log.location, name="t")
    change(catalog, "UPDATE dl_tables SET authority = 'catalog'", "UPDATE dl_table_heads SET published_version = 1")
    for dry_run in (False, True):
        with pytest.raises(UsageError, match="2 commits that are not published") as caught:
            catalog.import_table(log.location, name="t", force=True, dry_run=dry_run)
    assert "mainstem publish t" in str(caught.value)
    change(catalog, "UPDATE dl_table_heads SET published_version = 3")
    catalog.import_table(log.location, name="t", force=True)
    assert catalog.table("t").authority == "log", "an imported table is led by its log"


def test_an_import_up_to_a_version_ends_there_and_follow_brings_the_rest(catalog: Catalog, log: Log) -> None:
    done = catalog.import_table(log.location, name="t", up_to_version=1)
    assert (done.version, done.files) == (1, 3)
    table = catalog.table("t")
    assert table.snapshot().properties == {}
    assert table.follow().version == 3
    assert paths(table.snapshot()) == {"b", "c"}
    assert table.snapshot().properties == {"k": "v"}


@pytest.mark.parametrize("version", [-1, 4, 10**30])
def test_an_import_up_to_a_version_that_is_not_there_names_the_range(catalog: Catalog, log: Log, version: int) -> None:
    with pytest.raises(VersionNotFound, match="from 0 to 3"):
        catalog.import_table(log.location, name="t", up_to_version=version)
    assert catalog.tables() == []


@pytest.fixture
def cleaned(log: Log) -> Log:
    """The same table after its first commits were cleaned up: a checkpoint of version 2 stands for them."""
    expired = remove("a", deletionTimestamp=1)
    log.checkpoint(
        2, protocol(), metadata(configuration={"k": "v"}), txn("app", 7), add("b"), add("c"), expired
    )  # fmt: skip
    log.clean_up(before=2)
    return log


def test_a_cleaned_up_log_starts_at_its_checkpoint(catalog: Catalog, cleaned: Log) -> None:
    done = catalog.import_table(cleaned.location, name="t")
    table = catalog.table("t")
    assert (done.first_version, done.version) == (2, 3)
    assert table.info().min_readable_version == 2
    assert [paths(table.snapshot(version=version)) for version in (2, 3)] == [{"b", "c"}] * 2
    first, last = table.snapshot(version=2), table.snapshot()
    assert (first.properties, dict(first.app_transactions), dict(first.domains)) == ({"k": "v"}, {"app": 7}, {})
    assert dict(last.domains) == {"d": "x"}
    assert [(entry.version, entry.kind) for entry in table.history()] == [(3, "commit"), (2, "checkpoint")]


@pytest.mark.parametrize("wanted", [{"version": 1}, {"timestamp": "2001-01-01"}])
def test_what_was_cleaned_up_is_not_found_and_the_range_is_told(
    catalog: Catalog, cleaned: Log, wanted: dict[str, Any]
) -> None:
    catalog.import_table(cleaned.location, name="t")
    with pytest.raises(VersionNotFound, match="versions 2 to 3"):
        catalog.table("t").snapshot(**wanted)


def test_a_log_without_the_commit_of_its_checkpoint_is_read_too(catalog: Catalog, cleaned: Log) -> None:
    cleaned.path(2).unlink()
    catalog.import_table(cleaned.location, name="t")
    assert paths(catalog.table("t").snapshot(version=2)) == {"b", "c"}


def test_a_checkpoint_that_contradicts_the_commits_is_refused(catalog: Catalog, log: Log) -> None:
    log.checkpoint(2, protocol(), metadata(), add("b"), add("never seen"))
    before = row_counts(catalog)
    with pytest.raises(CorruptLog, match="contradicts the commits") as caught:
        catalog.import_table(log.location, name="t")
    assert "never seen" in caught.value.message
    assert row_counts(catalog) == before


def test_times_of_files_grow_strictly(catalog: Catalog, tmp_path: Path) -> None:
    log = Log(tmp_path / "t")
    times = [1_000, 900, 900, 5_000]
    log.commit(info(), protocol(), metadata(), at_ms=times[0])
    for time in times[1:]:
        log.commit(add(f"f{time}"), at_ms=time)
    catalog.import_table(log.location, name="t")
    found = [entry.committed_at for entry in reversed(catalog.table("t").history())]
    assert found == [moment(millis) for millis in (1_000, 1_001, 1_002, 5_000)]


def test_a_commit_says_its_own_time_where_in_commit_timestamps_are_enabled(catalog: Catalog, tmp_path: Path) -> None:
    enabled = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "1"}
    log = Log(tmp_path / "t")
    log.commit(info(), protocol(), metadata(), at_ms=1_000)
    log.commit(info(inCommitTimestamp=2_000), metadata(configuration=enabled), at_ms=90_000)
    log.commit(info(inCommitTimestamp=3_000), add("a"), at_ms=10)
    catalog.import_table(log.location, name="t", up_to_version=2)
    log.commit(info(inCommitTimestamp=4_000), add("b"), at_ms=20)
    table = catalog.table("t")
    table.follow()
    assert [entry.committed_at for entry in reversed(table.history())] == [
        moment(millis) for millis in (1_000, 2_000, 3_000, 4_000)
    ]


def test_a_copied_log_keeps_the_times_that_its_commits_say_themselves(catalog: Catalog, tmp_path: Path) -> None:
    """A copy makes the files younger than the commits: the times of files give way, as they do for Delta."""
    enabled = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "2"}
    log = Log(tmp_path / "t")
    log.commit(info(), protocol(), metadata(), at_ms=500_000)
    log.commit(add("a"), at_ms=500_000)
    log.commit(info(inCommitTimestamp=2_000), metadata(configuration=enabled), at_ms=500_000)
    log.commit(info(inCommitTimestamp=3_000), add("b"), at_ms=500_000)
    catalog.import_table(log.location, name="t")
    found = [entry.committed_at for entry in reversed(catalog.table("t").history())]
    assert found == [moment(millis) for millis in (1_998, 1_999, 2_000, 3_000)]
    assert catalog.table("t").snapshot(timestamp=moment(2_500)).version == 2


@pytest.mark.parametrize(
    "name",
    [
        "sales.orders",
        'a"; drop table dl_tables;--',
        "' OR 1=1 --",
        "\U0001f600 naïve \u202e %s :id $1 {x} \\",
        "x" * 1000,
        "deltasql:/not a URI",
    ],
)
def test_a_name_is_a_literal(catalog: Catalog, log: Log, name: str) -> None:
    done = catalog.import_table(log.location, name=name)
    assert (done.name, [table.name for table in catalog.tables()]) == (name, [name])
    assert paths(catalog.table(name).snapshot()) == {"b", "c"}
    assert catalog.table(name).follow().version == 3


@pytest.mark.parametrize(
    "name",
    ["", " ", " t", "t\n", "two\nlines", "a\0b", "\x1f", "\ud800", "x" * 1001, "deltasql://sqlite//x.db?table=t"],
)
def test_a_name_that_no_catalog_could_show_is_a_usage_error(catalog: Catalog, log: Log, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        catalog.import_table(log.location, name=name)
    assert catalog.tables() == []


def test_a_name_of_a_thousand_characters_is_kept_or_refused_whatever_they_are(catalog: Catalog, log: Log) -> None:
    """A B-tree of Postgres holds keys of up to 2,704 bytes, after it has tried to compress them."""
    letters = random.Random(7)
    name = "".join(chr(letters.randrange(0x4E00, 0x9FA5)) for _ in range(1000))
    with pytest.raises(UsageError, match="cannot be called"):
        catalog.import_table(log.location, name=name)
    catalog.import_table(log.location, name=name[:800])
    assert catalog.table(name[:800]).version == 3


@pytest.mark.parametrize("name", ["nothing", "' OR 1=1 --", "a\0b", "\ud800", ""])
def test_a_table_that_is_not_there_is_not_found_whatever_it_is_called(catalog: Catalog, name: str) -> None:
    with pytest.raises((TableNotFound, UsageError)):
        catalog.table(name)


def at_once(catalog: Catalog, calls: list[Callable[[Catalog], Any]]) -> list[Any]:
    """Each call in a thread with a catalog of its own, begun together; what each returned or raised."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[Catalog], Any]) -> Any:
        with open_catalog(catalog.settings.catalog) as mine:
            mine.tables()
            barrier.wait(30)
            try:
                return call(mine)
            except MainstemError as error:
                return error

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def test_of_two_imports_of_one_name_one_wins_and_the_other_says_so(catalog: Catalog, log: Log) -> None:
    for number in range(4):
        name = f"t{number}"
        found = at_once(catalog, [lambda mine, name=name: mine.import_table(log.location, name=name)] * 2)
        [won] = [each for each in found if isinstance(each, Imported)]
        [lost] = [each for each in found if isinstance(each, UsageError)]
        assert (won.version, catalog.table(name).version) == (3, 3)
        assert name in lost.message
    assert row_counts(catalog)["dl_add_files"] == 4 * 3


def test_two_forced_imports_at_once_leave_one_of_the_two_and_no_mixture(
    catalog: Catalog, log: Log, tmp_path: Path
) -> None:
    later = Log(tmp_path / "later")
    later.checkpoint(10, protocol(), metadata(), *(add(f"later-{number}") for number in range(50)))
    later.write(lines(info(), add("newest")), version=11)
    catalog.import_table(log.location, name="t")
    for _ in range(4):
        found = at_once(
            catalog,
            [
                lambda mine: mine.import_table(log.location, name="t", force=True),
                lambda mine: mine.import_table(later.location, name="t", force=True),
            ],
        )
        assert all(isinstance(each, Imported) for each in found), found
        info_now = catalog.table("t").info()
        expected = (3, log.location, 3) if info_now.version == 3 else (11, later.location, 51)
        adds = row_counts(catalog)["dl_add_files"]
        assert (info_now.version, info_now.location, adds) == expected
        assert len(catalog.table("t").history()) == (4 if info_now.version == 3 else 2)


def test_what_is_odd_and_legal_comes_back_field_for_field(catalog: Catalog, tmp_path: Path) -> None:
    odd = "' OR 1=1 -- \u0001 \U0001f600 \\ \" %s :id $1 {x}"
    log = Log.begin(
        tmp_path / "t",
        add("p" * 3000, partitionValues={"part": odd}, tags={odd: odd}),
        add("file:/etc/passwd"),
        add("s3://other/bucket/x", deletionVector=vector("a"), baseRowId=2**63 - 1, defaultRowCommitVersion=0),
        add("n", partitionValues={"part": None}, stats='{"numRecords":1e400,"minValues":{"id":-0.0,"part":NaN}}'),
        add("u", partitionValues={"part": "\0\ud800"}, tags={"t": "\udfff"}),
        add("size", size=2**63 - 1, modificationTime=-1, clusteringProvider="liquid", future={"a": [1, None]}),
        add("size2", size=2**63 - 1, stats=stats(2**62)),
        add("size3", size=2**63 - 1, stats=stats(2**62)),
        {"future": {"anything": [1, {"x": None}]}},
        txn(odd, 2**63 - 1, lastUpdated=None),
        domain(odd, odd),
        {"cdc": {"path": "_change_data/x", "partitionValues": {}, "size": 1, "dataChange": False}},
        table=metadata(configuration={odd: odd, "half": "\ud800", "zero": "\0"}, name=odd, description=odd),
        needs=protocol(writer=("somethingNew", "appendOnly")),
    )
    log.commit(info(operation=odd, userName=odd, operationParameters={odd: "\ud800", "big": 10**30}), remove("n"))
    log.write(b'{"commitInfo":{"operationParameters":{"a":1e400,"b":' + b"9" * 5000 + b'},"timestamp":1e999}}\n')
    catalog.import_table(log.location, name="t")
    for version, written in commit_files(catalog, "t").items():
        read = log.path(version).read_bytes().splitlines()
        # Python reads no number of 5,000 digits, so numbers are compared by their texts.
        assert [json.loads(line, parse_int=str, parse_float=str) for line in written.splitlines()] == [
            json.loads(line, parse_int=str, parse_float=str) for line in read
        ]
    table = catalog.table("t")
    snapshot = table.snapshot()
    assert snapshot.properties[odd] == odd
    assert (dict(snapshot.app_transactions), dict(snapshot.domains)) == ({odd: 2**63 - 1}, {odd: odd})
    assert state(snapshot) == replayed(catalog, "t", 2)
    assert len(list(snapshot.iter_files())) == 7
    assert snapshot.size().size_bytes == 3 * (2**63 - 1) + 4
    newest, odd_commit, _ = table.history()
    assert (odd_commit.operation, odd_commit.committer) == (odd, odd)
    assert odd_commit.operation_params is not None
    assert odd_commit.operation_params[odd] == "\ud800"
    assert newest.operation_params is not None


def test_a_partition_value_that_looks_like_sql_is_found_by_its_value(catalog: Catalog, tmp_path: Path) -> None:
    odd = "' OR 1=1 --"
    log = Log.begin(
        tmp_path / "t",
        add("odd", partitionValues={"part": odd}),
        add("plain", partitionValues={"part": "x"}),
        table=metadata(partitionColumns=["part"]),
    )
    catalog.import_table(log.location, name="t")
    quoted = odd.replace("'", "''")
    found = catalog.table("t").snapshot().to_arrow(where=f"part = '{quoted}'")
    assert found.column("path").to_pylist() == ["odd"]


def test_a_broken_hint_is_ignored_with_a_warning(catalog: Catalog, log: Log, caplog: pytest.LogCaptureFixture) -> None:
    (log.folder / "_last_checkpoint").write_text(f'{{"version":{10**18}}}')
    catalog.import_table(log.location, name="t")
    assert "last_checkpoint.ignored" in caplog.text


def put(content: bytes, *, version: int = 4) -> Callable[[Log], None]:
    def spoil(log: Log) -> None:
        log.write(content, version=version)

    return spoil


def commit(*actions: dict[str, Any]) -> Callable[[Log], None]:
    def spoil(log: Log) -> None:
        log.commit(*actions)

    return spoil


def only(*actions: dict[str, Any]) -> Callable[[Log], None]:
    """A log of one version."""

    def spoil(log: Log) -> None:
        empty(log)
        log.commit(*actions)

    return spoil


def empty(log: Log) -> None:
    for file in log.folder.iterdir():
        file.unlink()


def sidecar(path: str) -> Callable[[Log], None]:
    def spoil(log: Log) -> None:
        empty(log)
        side = {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}
        log.checkpoint(3, protocol("v2Checkpoint"), metadata(), side)

    return spoil


def gap(log: Log) -> None:
    log.path(2).unlink()


def beyond(log: Log) -> None:
    (log.folder / f"{2**63:020d}.json").write_bytes(b"{}")


def gone(log: Log) -> None:
    log.folder.rename(log.root / "gone")


def linked(log: Log) -> None:
    log.folder.symlink_to(log.folder.rename(log.root / "elsewhere"))


ICT = {"delta.enableInCommitTimestamps": "true"}
NESTED = b'{"future":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
UTF8 = lines(add("x")) + b'{"add":{"path":"\xff"}}'

# What is done to a log of four good versions, how it is refused, and the line of version 4 that is named.
HOSTILE: dict[str, tuple[Callable[[Log], None], type[MainstemError], str, int | None]] = {
    "an empty commit": (put(b""), CorruptLog, "torn write", 1),
    "half a line": (put(lines(add("x"))[:40]), CorruptLog, "column", 1),
    "two objects on a line": (put(lines(add("x"))[:-1] + lines(add("y"))), CorruptLog, "after the object", 1),
    "pretty JSON": (put(json.dumps(add("x"), indent=1).encode()), CorruptLog, "expect", 1),
    "a byte order mark": (put(b"\xef\xbb\xbf" + lines(add("x"))), CorruptLog, "byte order mark", 1),
    "invalid UTF-8": (put(UTF8), CorruptLog, f"invalid UTF-8 at byte {len(UTF8) - 4}", 2),
    "a key twice": (put(b'{"txn":{"appId":"a","appId":"b","version":1}}'), CorruptLog, "twice", 1),
    "a size beyond 64 bits": (commit(add("x", size=2**63)), CorruptLog, "size does not fit 64 bits", 2),
    "a negative size": (commit(add("x", size=-1)), CorruptLog, "size is negative", 2),
    "a time beyond 64 bits": (commit(add("x", modificationTime=2**70)), CorruptLog, "does not fit 64 bits", 2),
    "a transaction beyond 64 bits": (commit(txn("a", 2**63)), CorruptLog, "version does not fit 64 bits", 2),
    "nesting without end": (put(NESTED), CorruptLog, "nested", 1),
    "a zero in a path": (commit(add("a\0b")), CorruptLog, r"path contains U\+0000", 2),
    "half a pair in a path": (commit(add("a\ud800")), CorruptLog, "surrogate", 2),
    "an escape": (commit(add("../../etc/x")), CorruptLog, "leads out", 2),
    "an escape in disguise": (commit(add("%2e%2E/x")), CorruptLog, "leads out", 2),
    "an escape of a remove": (commit(remove("a/../../x")), CorruptLog, "leads out", 2),
    "an escape of a deletion vector": (
        commit(add("x", deletionVector={**vector("a"), "pathOrInlineDv": "../" + "a" * 20})), CorruptLog, "leads out", 2
    ),
    "a sidecar that escapes": (sidecar("../x.parquet"), CorruptLog, "is not a file of", None),
    "a sidecar elsewhere": (sidecar("s3://other/x.parquet"), CorruptLog, "is not a file of", None),
    "a gap": (gap, CorruptLog, "version 2 is missing", None),
    "no protocol": (only(metadata(), add("a")), CorruptLog, "no protocol", None),
    "no metadata": (only(protocol(), add("a")), CorruptLog, "no metaData", None),
    "an unknown reader feature": (commit(protocol("timeTravelV9")), UnsupportedFeature, "timeTravelV9", None),
    "a reader version to come": (
        commit({"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}), UnsupportedFeature, "version 99", None
    ),
    "another catalog's table": (commit(protocol("catalogManaged")), UnsupportedFeature, "catalogManaged", None),
    "no in-commit timestamp": (commit(metadata(configuration=ICT)), CorruptLog, "no in-commit timestamp", None),
    "an in-commit timestamp that is no date": (
        only(info(inCommitTimestamp=2**62), protocol(), metadata(configuration=ICT)), CorruptLog, "no date", None
    ),
    "a version beyond 64 bits": (beyond, CorruptLog, "64 bits", None),
    "a log behind a link": (linked, UsageError, "symbolic link", None),
    "no log": (gone, UsageError, "not a Delta table", None),
    "an empty log": (empty, CorruptLog, "no commit", None),
}  # fmt: skip


def test_hostile_logs_are_refused_by_name_and_leave_no_row(catalog: Catalog, tmp_path: Path) -> None:
    before = row_counts(catalog)
    for number, (what, (spoil, kind, words, line)) in enumerate(HOSTILE.items()):
        log = Log.begin(tmp_path / f"t{number}", add("a"))
        log.commit(add("b"))
        log.commit(remove("a"), metadata())
        log.commit(add("c"))
        spoil(log)
        with pytest.raises(MainstemError, match=words) as caught:
            catalog.import_table(log.location, name="t")
        assert type(caught.value) is kind, what
        assert caught.value.hint, what
        if line is not None:
            assert (caught.value.details["file"], caught.value.details["line"]) == (log.path(4).name, line), what
        assert row_counts(catalog) == before, what


def test_rows_may_be_written_in_any_number_of_batches(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans end rows of their own batch, of an earlier one, and of their own version."""
    chance = random.Random(11)
    log = Log.begin(tmp_path / "t")
    for _ in range(8):
        actions = []
        for _ in range(chance.randrange(1, 9)):
            fields = {"deletionVector": vector(chance.choice("xy"))} if chance.random() < 0.5 else {}
            actions.append((add if chance.random() < 0.6 else remove)(chance.choice("abc"), **fields))
        log.commit(*actions, txn(chance.choice("pq"), chance.randrange(9)), domain(chance.choice("de")))
    found = []
    for batch in (1, 3, 1000):
        monkeypatch.setattr(driverload, "BATCH", batch)
        name = f"by {batch}"
        catalog.import_table(log.location, name=name)
        opened = [catalog.table(name).snapshot(version=version) for version in range(9)]
        for snapshot in opened:
            assert state(snapshot) == replayed(catalog, name, snapshot.version), (batch, snapshot.version)
        found.append([(state(each), each.app_transactions, each.domains) for each in opened])
    catalog.import_table(log.location, name="followed", up_to_version=0)
    catalog.table("followed").follow()
    opened = [catalog.table("followed").snapshot(version=version) for version in range(9)]
    found.append([(state(each), each.app_transactions, each.domains) for each in opened])
    assert all(each == found[0] for each in found)
    assert ask(catalog, "SELECT count(*) FROM dl_add_files WHERE removed_version < version") == [(0,)]
