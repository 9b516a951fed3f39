"""Commits of outside engines beside ours: reported, adopted under their own versions, or refused with the conflict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tables import add, create, everything, log_files, paths, remove, require_spans_equal_replay, rows, run_sql

from mainstem import Catalog, ConflictError, CorruptLog, ForeignCommit, Table, UsageError, foreign, open_catalog
from mainstem.deltalog.names import commit_name
from mainstem.store import Row, Store

DAY = date(2026, 11, 18)


@contextmanager
def unpublished(uri: str, name: str = "sales.orders") -> Iterator[Table]:
    """The table, whose commits wait in the catalog."""
    with open_catalog(uri, publish_on_commit=False) as opened:
        yield opened.table(name)


def plain(catalog: Catalog, folder: Path, *, name: str = "sales.orders") -> Table:
    """A table that delta-rs can write: it knows no in-commit timestamps."""
    return create(catalog, folder, name=name, delta__enableInCommitTimestamps="false")


def append_by_deltars(table: Table, *ids: int) -> None:
    write_deltalake(table.location, pa.table({"id": list(ids), "day": [DAY] * len(ids)}), mode="append")


def write_foreign(table: Table, version: int, *actions: dict[str, Any]) -> Path:
    """A commit of some engine that knows nothing of us."""
    file = Path(table.location) / "_delta_log" / commit_name(version)
    info = {"commitInfo": {"timestamp": 1, "operation": "OTHER", "userName": "outsider", "isBlindAppend": False}}
    file.write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))
    return file


def require_log_has_what_the_catalog_has(catalog: Catalog, table: Table) -> None:
    known = rows(catalog, f"SELECT version, content_sha256 FROM dl_table_versions WHERE table_id = '{id_of(table)}'")
    log = Path(table.location) / "_delta_log"
    assert dict(known) == {
        version: sha256((log / commit_name(version)).read_bytes()).hexdigest() for version in log_files(table)
    }


def id_of(table: Table) -> str:
    return table.info().table_id


def test_a_report_names_both_sides_and_changes_nothing(catalog: Catalog, catalog_uri: str, tmp_path: Path) -> None:
    table = plain(catalog, tmp_path)
    with unpublished(catalog_uri) as waiting:
        waiting.commit([add("a")], operation="WRITE")
        append_by_deltars(table, 1)
        append_by_deltars(table, 2)
        before = everything(catalog)
        found = waiting.resolve()
        assert [(each.version, each.operation) for each in found.foreign] == [(1, "WRITE"), (2, "WRITE")]
        assert "delta-rs" in (found.foreign[0].committer or "")
        assert (found.unpublished, found.adopted, found.renumbered) == ((1,), False, ())
        assert everything(catalog) == before
        assert log_files(table) == [0, 1, 2]
        assert [finding.version for finding in waiting.validate().findings if finding.check == "foreign_commit"] == [
            1,
            2,
        ]


def test_an_adopted_commit_keeps_its_version_and_ours_follow_it(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    table, other = plain(catalog, tmp_path), plain(catalog, tmp_path, name="other")
    table.commit([add("old"), add("kept", day="2026-11-17")], operation="WRITE")
    with open_catalog(catalog_uri, publish_on_commit=False) as opened:
        first = opened.table("sales.orders").commit(
            [add("a")], operation="WRITE", txn=("stream", 1), info={"note": "x"}
        )
        with opened.transaction() as transaction:
            transaction.table("sales.orders").stage([add("b")], operation="WRITE")
            transaction.table("other").stage([add("o")], operation="WRITE")
    second = transaction.committed["sales.orders"]
    append_by_deltars(table, 1, 2)
    with pytest.raises(ForeignCommit):
        table.publish()
    done = table.resolve(adopt_foreign=True)
    assert ([each.version for each in done.foreign], done.renumbered) == ([2], ((2, 3), (3, 4)))
    assert (done.adopted, done.publish_error) == (True, None)
    history = {entry.version: entry for entry in table.history()}
    assert {version: entry.txn_id for version, entry in history.items() if version > 2} == {
        3: first.txn_id,
        4: second.txn_id,
    }
    assert history[4].group_id == second.group_id == other.history(limit=1)[0].group_id
    told = json.loads(history[3].commit_info or "{}")
    assert (told["txnId"], told["note"], told["isBlindAppend"], told["readVersion"]) == (first.txn_id, "x", True, 1)
    times = [history[version].committed_at for version in sorted(history)]
    assert all(before < after for before, after in pairwise(times))
    assert {"old", "kept", "a", "b"} < paths(table)
    assert len(paths(table)) == 5
    assert paths(table, version=2) & {"a", "b"} == set()
    assert table.snapshot().app_transactions == {"stream": 1}
    require_spans_equal_replay(table)
    require_log_has_what_the_catalog_has(catalog, table)
    # The table is open again, the same call is still known, and everybody sees all of it.
    assert table.commit([add("c")], operation="WRITE").published
    again = table.commit([add("a")], operation="WRITE", txn=("stream", 1))
    assert (again.version, again.repeated) == (3, True)
    theirs = DeltaTable(table.location)
    assert (theirs.version(), len(theirs.file_uris())) == (5, 6)


def test_a_foreign_commit_with_nothing_of_ours_in_its_way_is_brought_in(catalog: Catalog, tmp_path: Path) -> None:
    table = plain(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")
    append_by_deltars(table, 1)
    assert table.resolve(adopt_foreign=True).renumbered == ()
    assert (table.version, table.info().published_version, len(paths(table))) == (2, 2, 2)
    assert table.commit([add("b")], operation="WRITE").version == 3
    nothing = table.resolve(adopt_foreign=True)
    assert (nothing.foreign, nothing.unpublished, nothing.renumbered) == ((), (), ())


CHANGED_SCHEMA = {
    "type": "struct",
    "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}}
               for name, kind in (("id", "long"), ("day", "date"), ("more", "string"))],
}  # fmt: skip


@pytest.mark.parametrize("case", ["same file", "schema", "protocol"])
def test_what_cannot_follow_the_foreign_commit_is_refused_and_nothing_changes(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, case: str
) -> None:
    table = plain(catalog, tmp_path)
    table.commit([add("old"), add("kept", day="2026-11-17")], operation="WRITE")
    metadata = table.snapshot().metadata
    with unpublished(catalog_uri) as waiting:
        waiting.commit([add("new")], operation="WRITE")
        waiting.commit([remove("old")], operation="DELETE")
    changed = {
        "id": metadata.metadata_id, "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["day"],
        "schemaString": json.dumps(CHANGED_SCHEMA), "configuration": {},
    }  # fmt: skip
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["timeTravelToMars"]}
    rule = {"same file": "ConcurrentDelete", "schema": "MetadataChanged", "protocol": "ProtocolChanged"}[case]
    if case == "same file":
        DeltaTable(table.location).delete("day = '2026-11-18'")
    else:
        write_foreign(table, 2, {"metaData": changed} if case == "schema" else {"protocol": features})
    before = everything(catalog)
    with pytest.raises(ConflictError, match=rf"sales\.orders.*{rule}.*version 2.*mainstem publish") as caught:
        table.resolve(adopt_foreign=True)
    assert not isinstance(caught.value, ForeignCommit)
    assert everything(catalog) == before
    assert log_files(table) == [0, 1, 2]
    # The way out that the error names: without the outside commit, ours are published as they are.
    (Path(table.location) / "_delta_log" / commit_name(2)).rename(tmp_path / "taken-back.json")
    assert table.publish().version == 3
    require_log_has_what_the_catalog_has(catalog, table)


def test_a_crash_in_the_middle_changes_nothing(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = plain(catalog, tmp_path)
    with unpublished(catalog_uri) as waiting:
        waiting.commit([add("a")], operation="WRITE")
    append_by_deltars(table, 1)
    before = everything(catalog)
    written = foreign._write_again

    def killed(*arguments: Any) -> Any:
        written(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(foreign, "_write_again", killed)
        table.resolve(adopt_foreign=True)
    assert everything(catalog) == before
    assert log_files(table) == [0, 1]
    assert table.resolve(adopt_foreign=True).renumbered == ((1, 2),)


def test_what_a_killed_publisher_wrote_is_ours_and_what_a_tag_names_keeps_its_number(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    table = plain(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")
    run_sql(catalog, "UPDATE dl_table_heads SET published_version = 0")
    run_sql(catalog, "UPDATE dl_mirror_status SET status = 'IN_FLIGHT' WHERE version = 1")
    with unpublished(catalog_uri) as waiting:
        waiting.commit([add("b")], operation="WRITE")
        waiting.commit([add("c")], operation="WRITE")
    append_by_deltars(table, 1)
    catalog.tag("eod")
    before = everything(catalog)
    with pytest.raises(UsageError, match=r"'eod' names version 3.*mainstem tag eod --delete"):
        table.resolve(adopt_foreign=True)
    assert everything(catalog) == before
    catalog.untag("eod")
    assert table.resolve().unpublished == (2, 3)
    assert table.resolve(adopt_foreign=True).renumbered == ((2, 3), (3, 4))
    assert {row[0] for row in rows(catalog, "SELECT status FROM dl_mirror_status")} == {"COMPLETE"}
    require_spans_equal_replay(table)
    require_log_has_what_the_catalog_has(catalog, table)


def test_a_commit_of_ours_that_came_after_the_look_is_not_taken_for_a_foreign_one(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file may be in the log before anybody has noted that it is published."""
    table = plain(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")

    def beside(store: Store, row: Row) -> object:
        table.commit([add("b")], operation="WRITE")
        run_sql(catalog, "UPDATE dl_table_heads SET published_version = 1")
        return look(store, row)

    look = foreign._look
    with monkeypatch.context() as patched, pytest.raises(ForeignCommit, match=r"meanwhile.*Do it again"):
        patched.setattr(foreign, "_look", beside)
        table.resolve(adopt_foreign=True)
    assert table.version == 2
    assert paths(table) == {"a", "b"}
    done = table.resolve(adopt_foreign=True)
    assert (done.foreign, done.publish_error) == ((), None)
    assert (table.version, table.info().published_version) == (2, 2)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("tracked", [False, True])
def test_a_transaction_on_a_version_that_got_another_number_is_a_conflict(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, behind: bool, tracked: bool
) -> None:
    """Its own number is a foreign commit's by now, and no winner has that: nothing else would find it."""
    more = {"delta__enableRowTracking": "true"} if tracked else {}
    table = create(catalog, tmp_path, delta__enableInCommitTimestamps="false", **more)
    table.commit([add("old")], operation="WRITE")
    with unpublished(catalog_uri) as waiting:
        waiting.commit([add("a")], operation="WRITE")
        if behind:
            waiting.commit([add("b")], operation="WRITE")
    ids = {"baseRowId": 10, "defaultRowCommitVersion": 2} if tracked else {}
    mark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":19}', "removed": False}
    tx = catalog.transaction()
    staged = [remove("a", **ids), add("mine", **ids)]
    tx.table(table.name).stage(staged, operation="UPDATE", read_version=2, read_where="TRUE")
    write_foreign(table, 2, remove("old"), add("theirs", **ids), *([{"domainMetadata": mark}] if tracked else []))
    done = table.resolve(adopt_foreign=True)
    assert done.renumbered == (((2, 3), (3, 4)) if behind else ((2, 3),))
    with pytest.raises(ConflictError, match=r"version 2, which.* another content by now.*Nothing was") as caught:
        tx.commit()
    assert not isinstance(caught.value, ForeignCommit)
    assert (table.version, paths(table)) == ((4, {"theirs", "a", "b"}) if behind else (3, {"theirs", "a"}))


@pytest.mark.parametrize(("commits", "words"), [(1, "another content by now"), (3, "is gone")])
def test_a_transaction_on_a_table_that_was_imported_anew_is_a_conflict(
    catalog: Catalog, tmp_path: Path, commits: int, words: str
) -> None:
    table = plain(catalog, tmp_path)
    for number in range(commits):
        table.commit([add(f"f{number}")], operation="WRITE")
    write_deltalake(tmp_path / "other", pa.table({"id": [1], "day": [DAY]}), partition_by=["day"])
    with pytest.raises(ConflictError, match=rf"version {commits}, which.*{words}"), catalog.transaction() as tx:
        tx.table(table.name).stage([add("mine")], operation="WRITE")
        catalog.import_table(str(tmp_path / "other"), name=table.name, force=True)
        table.cutover()
    assert table.version == 1


def test_what_cannot_be_resolved_says_why(catalog: Catalog, catalog_uri: str, tmp_path: Path) -> None:
    table = plain(catalog, tmp_path)
    write_foreign(table, 2)
    with pytest.raises(CorruptLog, match=r"gap after version 0.*\[2\]"):
        table.resolve(adopt_foreign=True)
    with open_catalog(catalog_uri, publish_on_commit=False) as opened:
        new = plain(opened, tmp_path, name="new")
        assert new.resolve().foreign == ()
        write_deltalake(new.location, pa.table({"id": [1]}))
        with pytest.raises(UsageError, match="another location"):
            new.resolve(adopt_foreign=True)
    write_deltalake(tmp_path / "followed", pa.table({"id": [1]}))
    catalog.import_table(str(tmp_path / "followed"), name="followed")
    with pytest.raises(UsageError, match="mainstem follow followed"):
        catalog.table("followed").resolve()


@pytest.mark.spark
def test_row_ids_and_in_commit_timestamps_move_on_behind_a_commit_of_delta_spark(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, spark: SparkSession
) -> None:
    table = create(catalog, tmp_path, delta__enableRowTracking="true")
    table.commit([real_file(table, "a", 1, 2)], operation="WRITE")
    with unpublished(catalog_uri) as waiting:
        waiting.commit([real_file(table, "b", 3, 4)], operation="WRITE")
        waiting.commit([real_file(table, "c", 5)], operation="WRITE")
    theirs = spark.createDataFrame([(6, DAY), (7, DAY)], "id long, day date").coalesce(1)
    theirs.write.format("delta").mode("append").save(table.location)
    assert table.resolve(adopt_foreign=True).renumbered == ((2, 3), (3, 4))
    require_log_has_what_the_catalog_has(catalog, table)
    require_spans_equal_replay(table)
    infos = [json.loads(entry.commit_info or "{}") for entry in reversed(table.history())]
    stamps = [info["inCommitTimestamp"] for info in infos]
    assert all(before < after for before, after in pairwise(stamps))
    assert stamps == [int(entry.committed_at.timestamp() * 1000) for entry in reversed(table.history())]
    found = (
        spark.read.format("delta")
        .load(table.location)
        .selectExpr("id", "_metadata.row_id AS row_id", "_metadata.row_commit_version AS since")
    )
    assert {row.id: (row.row_id, row.since) for row in found.collect()} == {
        1: (0, 1), 2: (1, 1), 6: (2, 2), 7: (3, 2), 3: (4, 3), 4: (5, 3), 5: (6, 4),
    }  # fmt: skip
    assert json.loads(table.snapshot().domains["delta.rowTracking"])["rowIdHighWaterMark"] == 6


def real_file(table: Table, name: str, *ids: int) -> dict[str, Any]:
    """A data file with these rows, and its add."""
    folder = Path(table.location) / "day=2026-11-18"
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), folder / f"{name}.parquet")
    size = (folder / f"{name}.parquet").stat().st_size
    return add(name, size=size, stats=json.dumps({"numRecords": len(ids)}))
