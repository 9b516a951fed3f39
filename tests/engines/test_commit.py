"""Commits of ready actions: what they become, what they are refused for, and that they happen once."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tables import SCHEMA, add, create, paths, remove

from mainstem import Catalog, ConflictError, UsageError, VersionNotFound, open_catalog
from mainstem.errors import EngineBusy, TableNotFound


def commit_file(folder: Path, version: int, name: str = "sales.orders") -> bytes:
    return (folder / name / "_delta_log" / f"{version:020d}.json").read_bytes()


def rows(catalog: Catalog, sql: str) -> list[tuple[Any, ...]]:
    with catalog.engine.reading() as connection:
        return [tuple(row) for row in connection.execute(sql).fetchall()]


def test_a_commit_is_a_version_in_the_catalog_and_in_the_log(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    done = table.commit([add("a"), add("b")], operation="WRITE", committer="ann")
    assert (done.version, done.published, done.repeated, done.attempts) == (1, True, False, 1)
    assert paths(table) == {"a", "b"}
    [latest] = table.history(limit=1)
    assert (latest.operation, latest.committer, latest.txn_id) == ("WRITE", "ann", done.txn_id)
    assert (table.info().version, table.info().published_version) == (1, 1)
    theirs = DeltaTable(tmp_path / "sales.orders")
    assert theirs.version() == 1
    assert len(theirs.file_uris()) == 2


def test_the_published_file_has_the_bytes_whose_sha256_the_catalog_keeps(catalog: Catalog, tmp_path: Path) -> None:
    create(catalog, tmp_path).commit([add("a")], operation="WRITE")
    found = rows(catalog, "SELECT version, content_sha256 FROM dl_table_versions ORDER BY version")
    assert [sha for _, sha in found] == [sha256(commit_file(tmp_path, version)).hexdigest() for version, _ in found]


def test_large_commits_are_written_in_their_order_and_end_what_they_remove_and_add_again(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    first = [add(f"f{number}") for number in range(6000)]  # so many that their text is made beside their rows
    table.commit(first, operation="WRITE")
    lines = commit_file(tmp_path, 1).splitlines()
    assert [json.loads(line)["add"]["path"] for line in lines[1:]] == [each["add"]["path"] for each in first]
    again = [add(f"f{number}", tags={"again": "yes"}) for number in range(600, 1200)]
    table.commit([*(remove(f"f{number}") for number in range(600)), *again], operation="WRITE")
    assert paths(table) == {f"f{number}" for number in range(600, 6000)}
    assert paths(table, version=1) == {f"f{number}" for number in range(6000)}
    with pytest.raises(UsageError, match="removes 1 files that are not live"):
        table.commit([remove(f"f{number}") for number in range(599, 1300)], operation="DELETE")
    kept = rows(catalog, "SELECT version, content_sha256 FROM dl_table_versions ORDER BY version")
    assert [sha for _, sha in kept] == [sha256(commit_file(tmp_path, version)).hexdigest() for version in range(3)]
    assert {found.check for found in table.validate(engine="driver").findings} == {"data_file_missing"}


def test_a_transaction_of_two_large_commits_ends_in_the_second_what_the_first_has_added(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    with catalog.transaction() as tx:
        staged = tx.table(table.name)
        staged.stage([add(f"f{number}") for number in range(600)], operation="WRITE")
        staged.stage([remove(f"f{number}") for number in range(550)], operation="DELETE")
    assert paths(table) == {f"f{number}" for number in range(550, 600)}
    assert len(paths(table, version=1)) == 600


def test_a_removed_file_is_gone_from_that_version_on(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    table.commit([add("a"), add("b")], operation="WRITE")
    table.commit([remove("a"), add("c")], operation="DELETE")
    assert paths(table) == {"b", "c"}
    assert paths(table, version=1) == {"a", "b"}


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([add("a", size=-1)], "action 1 .* size is negative"),
        ([add("b"), {"add": {"path": "x"}}], "action 2 "),
        ([add("a", size=2**63)], "64 bits"),
        ([add("b"), add("b")], "adds the file .* twice"),
        ([remove("a"), remove("a")], "removes the file .* twice"),
        ([remove("a"), add("a")], "adds and removes"),
        ([remove("nobody")], "not live at version 1: 'day=2026-11-18/nobody.parquet'"),
        ([add("b", partitionValues={})], "partitioned by \\['day'\\]"),
        ([add("b", partitionValues={"day": "yesterday"})], "'yesterday' of 'day' is no date"),
        ([add("b", path="../b.parquet")], "leads out of the table"),
        ([], "has no action"),
        ([{"add": {"path": object()}}], "action 1"),
        ([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 9}}], "writer version 9"),
        (
            [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["timeTravelToMars"]}}],
            "timeTravelToMars",
        ),
        (
            [{"txn": {"appId": "x", "version": 1}}, {"txn": {"appId": "x", "version": 2}}],
            "two actions of one application",
        ),
    ],
)
def test_a_commit_that_no_log_could_hold_is_refused_and_writes_nothing(
    catalog: Catalog, tmp_path: Path, actions: list[dict[str, Any]], words: str
) -> None:
    table = create(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")
    with pytest.raises(Exception, match=words) as caught:
        table.commit(actions, operation="WRITE")
    assert type(caught.value).__name__ in ("UsageError", "UnsupportedFeature")
    assert "sales.orders" in str(caught.value)
    assert table.version == 1
    assert paths(table) == {"a"}
    assert not (tmp_path / "sales.orders" / "_delta_log" / f"{2:020d}.json").exists()


def test_an_append_only_table_takes_no_remove(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path, delta__appendOnly="true")
    table.commit([add("a")], operation="WRITE")
    with pytest.raises(UsageError, match=r"appends only"):
        table.commit([remove("a")], operation="DELETE")
    table.commit([remove("a", dataChange=False), add("ab", dataChange=False)], operation="OPTIMIZE")


def test_a_commit_to_a_table_whose_log_leads_is_refused_with_the_next_step(catalog: Catalog, tmp_path: Path) -> None:
    other = open_catalog(f"sqlite:///{tmp_path}/other.db")
    other.migrate()
    create(other, tmp_path)
    catalog.import_table(str(tmp_path / "sales.orders"), name="sales.orders")
    with pytest.raises(UsageError, match=r"its log leads.*mainstem cutover sales.orders"):
        catalog.table("sales.orders").commit([add("a")], operation="WRITE")


def test_the_same_token_commits_once_and_gives_the_first_result(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    first = table.commit([add("a")], operation="WRITE", txn_id="job-7")
    table.commit([add("b")], operation="WRITE")
    again = table.commit([add("a")], operation="WRITE", txn_id="job-7")
    assert (again.version, again.repeated, first.repeated) == (first.version, True, False)
    assert again.committed_at == first.committed_at
    assert table.version == 2


def test_an_application_transaction_commits_once(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    first = table.commit([add("a")], operation="STREAMING UPDATE", txn=("stream", 7))
    for number in (7, 6):
        again = table.commit([add("other")], operation="STREAMING UPDATE", txn=("stream", number))
        assert (again.version, again.repeated) == (first.version, True)
    assert table.commit([add("b")], operation="STREAMING UPDATE", txn=("stream", 8)).version == 2
    assert table.snapshot().app_transactions == {"stream": 8}
    assert paths(table) == {"a", "b"}


def test_a_proposal_made_from_an_older_version_follows_what_does_not_concern_it(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")
    done = table.commit([add("b")], operation="WRITE", read_version=0)
    assert done.version == 2
    with pytest.raises(VersionNotFound, match="versions 0 to 2"):
        table.commit([add("c")], operation="WRITE", read_version=3)


def test_a_conflict_names_table_rule_versions_and_files_and_writes_nothing(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")
    table.commit([remove("a"), add("a2")], operation="DELETE", committer="ann")
    with pytest.raises(ConflictError) as caught:
        table.commit([remove("a"), add("a3")], operation="UPDATE", read_version=1)
    told = str(caught.value)
    for word in ("sales.orders", "version 2", "DELETE", "ann", "a.parquet", "othing was written"):
        assert word in told, told
    assert caught.value.exit_code == 3
    assert paths(table) == {"a2"}
    assert table.version == 2


def test_a_read_predicate_conflicts_only_with_its_partitions(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    table.commit([add("a"), add("m", day="2026-11-17")], operation="WRITE")
    table.commit([remove("m", day="2026-11-17"), add("m2", day="2026-11-17")], operation="MERGE")
    other = [remove("a"), add("a2")]
    done = table.commit(other, operation="UPDATE", read_version=1, read_where="day = '2026-11-18'")
    assert done.version == 3
    table.commit([remove("a2"), add("a3")], operation="MERGE", read_version=3)
    with pytest.raises(ConflictError, match=r"ConcurrentAppend|ConcurrentDelete"):
        table.commit([add("b")], operation="WRITE", read_version=3, read_where="day = '2026-11-18'")


def test_times_grow_strictly_and_are_those_of_the_log(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    for number in range(5):
        table.commit([add(f"f{number}")], operation="WRITE")
    times = [entry.committed_at for entry in reversed(table.history())]
    assert all(before < after for before, after in pairwise(times))
    own = [json.loads(commit_file(tmp_path, version).splitlines()[0])["commitInfo"] for version in range(6)]
    assert [info["inCommitTimestamp"] for info in own] == [int(time.timestamp() * 1000) for time in times]


def test_too_many_unpublished_versions_hold_further_commits_back(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    create(catalog, tmp_path)
    with open_catalog(catalog_uri, publish_on_commit=False, max_unpublished=2) as slow:
        table = slow.table("sales.orders")
        table.commit([add("a")], operation="WRITE")
        table.commit([add("b")], operation="WRITE")
        with pytest.raises(EngineBusy, match=r"2 versions that are not published.*mainstem publish sales.orders"):
            table.commit([add("c")], operation="WRITE")
        assert table.publish().version == 2
        table.commit([add("c")], operation="WRITE")


def test_row_ids_are_assigned_and_go_on_where_the_last_commit_ended(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path, delta__enableRowTracking="true")
    table.commit([add("a"), add("b")], operation="WRITE")
    table.commit([add("c")], operation="WRITE", read_version=0)
    found = table.snapshot().to_arrow(columns=["path", "base_row_id", "default_row_commit_version"]).to_pylist()
    ids = {Path(row["path"]).stem: (row["base_row_id"], row["default_row_commit_version"]) for row in found}
    assert ids == {"a": (0, 1), "b": (10, 1), "c": (20, 2)}
    assert json.loads(table.snapshot().domains["delta.rowTracking"])["rowIdHighWaterMark"] == 29
    with pytest.raises(UsageError, match=r"numRecords|records"):
        table.commit([add("d", stats=None)], operation="WRITE")


def test_row_ids_of_several_commits_that_were_overtaken_never_meet(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path, delta__enableRowTracking="true")
    with catalog.transaction() as tx:
        staged = tx.table("sales.orders")
        staged.stage([add("a")], operation="WRITE", read_version=0)
        staged.stage([add("b"), add("c")], operation="WRITE")
        table.commit([add("winner")], operation="WRITE")
    found = table.snapshot().to_arrow(columns=["path", "base_row_id", "default_row_commit_version"]).to_pylist()
    ids = {Path(row["path"]).stem: (row["base_row_id"], row["default_row_commit_version"]) for row in found}
    assert ids == {"winner": (0, 1), "a": (10, 2), "b": (20, 3), "c": (30, 3)}
    assert json.loads(table.snapshot().domains["delta.rowTracking"])["rowIdHighWaterMark"] == 39
    # A winner that concerns no rule, since it numbered nothing, has overtaken them all the same.
    with catalog.transaction() as tx:
        staged = tx.table("sales.orders")
        staged.stage([add("d")], operation="WRITE")
        staged.stage([add("e")], operation="WRITE")
        table.commit([remove("winner")], operation="DELETE")
    found = table.snapshot().to_arrow(columns=["path", "base_row_id"]).to_pylist()
    ids = {Path(row["path"]).stem: row["base_row_id"] for row in found}
    assert (ids["d"], ids["e"]) == (40, 50)


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("overtaken", [False, True])
def test_a_staged_high_water_mark_gives_no_row_id_twice(
    catalog: Catalog, tmp_path: Path, removed: bool, overtaken: bool
) -> None:
    table = create(catalog, tmp_path, delta__enableRowTracking="true")
    table.commit([add("a")], operation="WRITE")
    lower = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":0}', "removed": removed}
    with catalog.transaction() as tx:
        tx.table(table.name).stage([{"domainMetadata": lower}], operation="WRITE")
        if overtaken:
            table.commit([add("winner")], operation="WRITE")
    table.commit([add("b")], operation="WRITE")
    found = table.snapshot().to_arrow(columns=["path", "base_row_id"]).to_pylist()
    ids = {Path(row["path"]).stem: row["base_row_id"] for row in found}
    assert ids == ({"a": 0, "winner": 10, "b": 20} if overtaken else {"a": 0, "b": 10})
    last = max(ids.values()) + 9
    assert json.loads(table.snapshot().domains["delta.rowTracking"])["rowIdHighWaterMark"] == last


def deletion_vector(name: str) -> dict[str, Any]:
    return {"deletionVector": {"storageType": "i", "pathOrInlineDv": name, "sizeInBytes": 36, "cardinality": 1}}


def test_a_live_path_is_not_added_beside_itself_with_another_deletion_vector(catalog: Catalog, tmp_path: Path) -> None:
    """Its rows would be there twice, and those that were deleted would be back."""
    table = create(catalog, tmp_path, delta__enableDeletionVectors="true")
    one, other = deletion_vector("one"), deletion_vector("other")
    table.commit([add("a"), add("b", **one)], operation="WRITE")
    for action in (add("a", **one), add("b", **other)):
        name = action["add"]["path"]
        with pytest.raises(UsageError, match=rf"sales\.orders.*live already, with another .*'{name}'.*Nothing was"):
            table.commit([action, add("new")], operation="UPDATE")
    with pytest.raises(UsageError, match="live already"), catalog.transaction() as tx:
        tx.table(table.name).stage([add("c")], operation="WRITE")
        tx.table(table.name).stage([add("c", **one)], operation="UPDATE")
    assert table.version == 1
    table.commit([remove("a"), add("a", **one)], operation="DELETE")
    with pytest.raises(UsageError, match="live already"):
        table.commit([add("new"), add("a")], operation="WRITE")
    table.commit([remove("a", **one), remove("b", **one), add("a", **other)], operation="DELETE")
    table.commit([add("b", **one), add("a", **other, tags={"x": "y"})], operation="RESTORE")
    assert table.snapshot().to_arrow(columns=["path"]).num_rows == 2


def test_an_operation_that_changes_data_is_checked_as_such_whatever_its_files_say(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")
    table.commit([add("new", dataChange=False)], operation="OPTIMIZE", read_where="TRUE")
    same = {"read_version": 1, "read_where": "TRUE"}
    table.commit([add("compacted", dataChange=False)], operation="OPTIMIZE", **same)
    with pytest.raises(ConflictError, match="ConcurrentAppend"):
        table.commit([add("written", dataChange=False)], operation="WRITE", **same)
    levels = [json.loads(commit_file(tmp_path, at).splitlines()[0])["commitInfo"]["isolationLevel"] for at in (1, 2)]
    assert levels == ["WriteSerializable", "SnapshotIsolation"]


def test_a_table_is_created_once_and_only_where_no_log_is(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    assert (table.version, table.authority) == (0, "catalog")
    assert table.snapshot().partition_columns == ["day"]
    with pytest.raises(UsageError, match=r"already has a table sales.orders"):
        create(catalog, tmp_path)
    with pytest.raises(UsageError, match=r"_delta_log already.*mainstem import"):
        catalog.create_table("again", location=str(tmp_path / "sales.orders"), schema=SCHEMA)
    with pytest.raises(UsageError, match="no column 'hour'"):
        catalog.create_table("c", location=str(tmp_path / "c"), schema=SCHEMA, partition_by=["hour"])
    with pytest.raises(TableNotFound):
        catalog.table("c")
    assert len(catalog.tables()) == 1


def test_a_checkpoint_is_written_when_it_is_due_and_the_log_opens_from_it(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path, delta__checkpointInterval="3")
    for number in range(1, 8):
        table.commit([add(f"f{number}")], operation="WRITE")
    log = tmp_path / "sales.orders" / "_delta_log"
    assert [int(file.name[:20]) for file in sorted(log.glob("*.checkpoint.parquet"))] == [3, 6]
    assert json.loads((log / "_last_checkpoint").read_bytes())["version"] == 6
    for version in range(6):
        (log / f"{version:020d}.json").unlink()
    assert len(DeltaTable(tmp_path / "sales.orders").file_uris()) == 7


def test_info_may_say_anything_but_what_delta_reads_itself(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    for info in ({"job": 7}, {"tags": {}}, {"isBlindAppend": False}, {"userMetadata": {"a": 1}}):
        with pytest.raises(UsageError, match=f"info names '{next(iter(info))}'"):
            table.commit([add("a")], operation="WRITE", info=info)
    done = table.commit([add("a")], operation="WRITE", info={"run": {"id": 7}, "userMetadata": "nightly"})
    [entry] = table.history(limit=1)
    assert entry.version == done.version == 1
    assert '"run":{"id":7}' in (entry.commit_info or "")


@pytest.mark.parametrize("count", [5, 17, 700])
def test_a_commit_of_many_files_is_live_from_its_version_on_and_can_be_replaced_as_a_whole(
    catalog: Catalog, tmp_path: Path, count: int
) -> None:
    table = create(catalog, tmp_path)
    old, new = [f"a{number}" for number in range(count)], [f"b{number}" for number in range(count)]
    table.commit([add(name) for name in old], operation="WRITE")
    assert paths(table) == set(old)
    table.commit([*(remove(name) for name in old), *(add(name) for name in new)], operation="UPDATE")
    assert paths(table) == set(new)
    assert paths(table, version=1) == set(old)
    table.commit([add(name, stats='{"numRecords":11}') for name in new], operation="COMPUTE STATS")
    assert table.snapshot().size().records == 11 * count
