"""Who leads: the catalog only when it equals the log, each change as one step, and back again without a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tables import add, create, everything, log_files, paths, require_spans_equal_replay, rows, run_sql

from mainstem import Catalog, ForeignCommit, Table, UsageError, ValidationFailed, authority, open_catalog
from mainstem.conflicts.features import features
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.protocol import FENCE, writer_features

LEGACY = [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 5), (2, 6)]


def plain_table(folder: Path, *, reader: int = 1, writer: int = 2) -> Path:
    """A table that an engine of the time before table features has written: one version, one file."""
    root = folder / f"r{reader}w{writer}"
    write_deltalake(root, pa.table({"id": [1, 2]}))
    file = root / "_delta_log" / commit_name(0)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": reader, "minWriterVersion": writer}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root


def imported(catalog: Catalog, folder: Path, **versions: int) -> Table:
    root = plain_table(folder, **versions)
    catalog.import_table(str(root), name="t")
    return catalog.table("t")


def append_by_deltars(table: Table, *ids: int) -> None:
    write_deltalake(table.location, pa.table({"id": list(ids)}), mode="append")


def file_of(table: Table, version: int) -> Path:
    return Path(table.location) / "_delta_log" / commit_name(version)


def unpartitioned(name: str) -> dict[str, Any]:
    return add(name, path=f"{name}.parquet", partitionValues={})


def test_a_cutover_follows_the_log_and_then_leads_with_an_entry_in_both(catalog: Catalog, tmp_path: Path) -> None:
    table = imported(catalog, tmp_path)
    append_by_deltars(table, 3)
    done = table.cutover(committer="ann")
    assert (done.version, done.published, done.repeated) == (2, True, False)
    assert (table.authority, table.version, table.info().published_version) == ("catalog", 2, 2)
    [entry] = table.history(limit=1)
    assert (entry.operation, entry.committer, entry.operation_params) == ("MAINSTEM CUTOVER", "ann", {"fence": False})
    assert rows(catalog, "SELECT version, status FROM dl_mirror_status") == [(2, "COMPLETE")]
    # In-commit timestamps are on from here, and the log says since when.
    told = json.loads(file_of(table, 2).read_text().splitlines()[0])["commitInfo"]
    properties = table.snapshot().properties
    assert properties["delta.inCommitTimestampEnablementVersion"] == "2"
    assert properties["delta.inCommitTimestampEnablementTimestamp"] == str(told["inCommitTimestamp"])
    assert writer_features(table.snapshot().protocol) == ("appendOnly", "inCommitTimestamp", "invariants")
    table.commit([unpartitioned("ours")], operation="WRITE")
    require_spans_equal_replay(table)
    theirs = DeltaTable(table.location)
    assert (theirs.version(), len(theirs.file_uris())) == (3, 3)
    with pytest.raises(UsageError, match="the catalog leads t already"):
        table.cutover()
    with pytest.raises(UsageError, match="there is nothing to follow"):
        table.follow()


def test_a_cutover_without_in_commit_timestamps_changes_neither_protocol_nor_metadata(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = imported(catalog, tmp_path)
    table.cutover(in_commit_timestamps=False)
    assert [list(json.loads(line)) for line in file_of(table, 1).read_text().splitlines()] == [["commitInfo"]]
    # delta-rs can write such a table: a foreign commit, as any other.
    append_by_deltars(table, 3)
    done = table.commit([unpartitioned("ours")], operation="WRITE")
    assert (done.version, done.published) == (2, False)
    assert table.resolve(adopt_foreign=True).renumbered == ((2, 3),)


@pytest.mark.parametrize(("reader", "writer"), LEGACY)
def test_every_protocol_of_old_keeps_its_readers_and_gets_its_writers_back(
    tmp_path: Path, reader: int, writer: int
) -> None:
    catalog = open_catalog(f"sqlite:///{tmp_path}/lake.db")
    catalog.migrate()
    table = imported(catalog, tmp_path, reader=reader, writer=writer)
    before = table.snapshot()
    table.cutover(fence=True)
    led = table.snapshot().protocol
    assert (led.min_reader_version, led.min_writer_version, led.reader_features) == (reader, 7, None)
    assert features(led) == features(before.protocol) | {"inCommitTimestamp", FENCE}
    assert DeltaTable(table.location).to_pyarrow_table().num_rows == 2
    table.rollback()
    after = table.snapshot()
    assert features(after.protocol) == features(before.protocol)
    # Reader 1 and writer 5 say no more than reader 1 and writer 4, which is what it becomes.
    assert (after.protocol.min_reader_version, after.protocol.min_writer_version) == (
        reader,
        4 if (reader, writer) == (1, 5) else writer,
    )
    assert after.protocol.writer_features is None
    assert after.properties == before.properties
    assert DeltaTable(table.location).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("difference", ["commit", "file", "schema", "behind"])
def test_a_catalog_that_differs_from_the_log_does_not_lead(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, difference: str
) -> None:
    table = imported(catalog, tmp_path)
    append_by_deltars(table, 3)
    table.follow()
    if difference == "commit":
        file_of(table, 0).write_bytes(file_of(table, 0).read_bytes().replace(b'"size":', b'"size": '))
        words = "commit_bytes at version 0"
    elif difference == "file":
        run_sql(catalog, "UPDATE dl_add_files SET removed_version = 1 WHERE version = 0")
        words = "spans_equal_replay"
    elif difference == "schema":
        run_sql(catalog, 'UPDATE dl_metadata_updates SET table_properties = \'{"delta.appendOnly":"true"}\'')
        words = "another table_properties"
    else:
        monkeypatch.setattr(authority, "follow", lambda store, name: append_by_deltars(table, 4))
        words = "the log is at version 2, the catalog at 1.*mainstem follow t"
    before = everything(catalog)
    with pytest.raises(ValidationFailed, match=words) as caught:
        table.cutover()
    assert caught.value.exit_code == 4
    assert everything(catalog) == before
    assert table.authority == "log"


@pytest.mark.parametrize("step", ["cutover", "rollback"])
def test_an_outside_commit_just_before_the_step_makes_it_fail_with_nothing_changed(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    table = imported(catalog, tmp_path)
    if step == "rollback":
        table.cutover(in_commit_timestamps=False)
    before, put, told = everything(catalog), authority.put_commit, []

    def outside_first(*arguments: Any) -> str:
        append_by_deltars(table, 3)
        told.append(put(*arguments))
        return told[-1]

    with monkeypatch.context() as patched, pytest.raises(ForeignCommit, match="an outside engine has just written"):
        patched.setattr(authority, "put_commit", outside_first)
        getattr(table, step)()
    assert told == ["foreign"]
    assert everything(catalog) == before
    if step == "rollback":
        table.resolve(adopt_foreign=True)
    getattr(table, step)()
    assert table.authority == ("catalog" if step == "cutover" else "log")
    assert table.snapshot().size().files == 2


@pytest.mark.parametrize("step", ["cutover", "rollback"])
def test_a_step_killed_after_its_file_was_written_can_be_repeated(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    table = imported(catalog, tmp_path)
    if step == "rollback":
        table.cutover(fence=True)
    before, put = everything(catalog), authority.put_commit

    def killed(*arguments: Any) -> str:
        put(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(authority, "put_commit", killed)
        table.cutover(fence=True) if step == "cutover" else table.rollback()
    assert everything(catalog) == before
    if step == "cutover":
        # The fence stands in the log; either way on is open.
        table.follow()
        assert FENCE in writer_features(table.snapshot().protocol)
        table.rollback()
        assert writer_features(table.snapshot().protocol) == ()
        table.cutover(fence=True)
        assert (table.authority, FENCE in writer_features(table.snapshot().protocol)) == ("catalog", True)
    else:
        with pytest.raises(ForeignCommit, match="mainstem resolve t"):
            table.rollback()
        assert [each.operation for each in table.resolve(adopt_foreign=True).foreign] == ["MAINSTEM ROLLBACK"]
        table.rollback()
        assert table.authority == "log"


def test_a_rollback_publishes_everything_and_the_log_leads_again(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    table = imported(catalog, tmp_path)
    table.cutover(fence=True)
    with open_catalog(catalog_uri, publish_on_commit=False) as opened:
        opened.table("t").commit([unpartitioned("ours")], operation="WRITE")
    assert log_files(table) == [0, 1]
    done = table.rollback(committer="bob")
    assert (done.version, done.published) == (3, True)
    assert log_files(table) == [0, 1, 2, 3]
    assert (table.authority, table.info().published_version) == ("log", 3)
    [entry] = table.history(limit=1)
    assert (entry.operation, entry.committer) == ("MAINSTEM ROLLBACK", "bob")
    with pytest.raises(UsageError, match="its log leads"):
        table.commit([unpartitioned("late")], operation="WRITE")
    with pytest.raises(UsageError, match="the log of t leads already"):
        table.rollback()
    # delta-rs, which knows neither the fence nor in-commit timestamps, writes again and is followed.
    append_by_deltars(table, 3)
    assert table.follow().version == 4
    assert table.snapshot().size().files == 3
    assert table.cutover().version == 5
    require_spans_equal_replay(table)


def test_in_commit_timestamps_that_were_on_before_stay_after_a_rollback(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    table.rollback()
    assert table.snapshot().properties["delta.enableInCommitTimestamps"] == "true"
    assert "inCommitTimestamp" in writer_features(table.snapshot().protocol)
    table.cutover()
    assert table.commit([add("a")], operation="WRITE").published


def test_a_rollback_with_a_foreign_commit_in_its_way_says_what_to_do(catalog: Catalog, tmp_path: Path) -> None:
    table = imported(catalog, tmp_path)
    table.cutover(in_commit_timestamps=False)
    append_by_deltars(table, 3)
    table.commit([unpartitioned("ours")], operation="WRITE")
    before = everything(catalog)
    with pytest.raises(ForeignCommit, match="mainstem resolve t"):
        table.rollback()
    assert table.authority == "catalog"
    assert {name: found for name, found in everything(catalog).items() if name != "dl_mirror_status"} == {
        name: found for name, found in before.items() if name != "dl_mirror_status"
    }


def test_a_forced_import_of_a_table_that_the_catalog_leads_lets_its_log_lead(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    table = imported(catalog, tmp_path)
    table.cutover(fence=True)
    with open_catalog(catalog_uri, publish_on_commit=False) as opened:
        opened.table("t").commit([unpartitioned("ours")], operation="WRITE")
    with pytest.raises(UsageError, match=r"1 commits that are not published.*mainstem publish t"):
        catalog.import_table(table.location, name="t", force=True)
    table.publish()
    catalog.import_table(table.location, name="t", force=True)
    assert (table.authority, table.version, table.info().published_version) == ("log", 2, 2)
    assert rows(catalog, "SELECT count(*) FROM dl_mirror_status") == [(0,)]
    with pytest.raises(UsageError, match="its log leads"):
        table.commit([unpartitioned("more")], operation="WRITE")
    # The fence came with the log; whoever leads, rollback takes it down.
    assert table.rollback().version == 3
    append_by_deltars(table, 3)
    assert table.follow().version == 4
    assert paths(table) >= {"ours"}
