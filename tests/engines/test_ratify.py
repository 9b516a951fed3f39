"""What a commit may follow, and what is known of one that comes again."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tables import SCHEMA, add, create, paths, remove

from mainstem import Catalog, ConflictError, UsageError
from mainstem.creation import first_actions
from mainstem.tablestate import new_table


def test_a_commit_cannot_follow_versions_that_have_expired(catalog: Catalog, tmp_path: Path) -> None:
    """What the winners did is forgotten with them, so that nothing would conflict any more."""
    table = create(catalog, tmp_path)
    table.commit([add("h1")], operation="WRITE")
    for read, expired in ((1, 2), (3, 5)):
        with pytest.raises(ConflictError, match=r"have expired.*Read the table again"), catalog.transaction() as tx:
            tx.table(table.name).stage([add("mine")], operation="WRITE", read_where="TRUE")
            table.commit([remove(f"h{read}"), add(f"h{read + 2}")], operation="UPDATE")
            table.commit([add(f"other{read}")], operation="WRITE")
            table.expire(before_version=expired)
    assert paths(table) == {"h5", "other1", "other3"}


def test_a_commit_follows_others_if_only_what_was_before_its_own_version_has_expired(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    table.commit([add("a")], operation="WRITE")
    with catalog.transaction() as tx:
        tx.table(table.name).stage([add("mine")], operation="WRITE")
        table.commit([add("theirs")], operation="WRITE")
        table.expire(before_version=1)
    assert paths(table) == {"a", "theirs", "mine"}
    # At the head nothing has to be checked.
    with catalog.transaction() as tx:
        tx.table(table.name).stage([remove("mine")], operation="DELETE", read_where="TRUE")
        table.expire(before_version=3)
    assert table.version == 4


def test_an_application_transaction_commits_once_also_after_its_version_has_expired(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    first = table.commit([add("a")], operation="WRITE", txn=("stream", 7))
    table.commit([add("b")], operation="WRITE")
    table.expire(before_version=2)
    again = table.commit([add("a")], operation="WRITE", txn=("stream", 7))
    assert (again.version, again.repeated) == (first.version, True)
    assert table.version == 2


def txn(app_id: str, version: int) -> dict[str, object]:
    return {"txn": {"appId": app_id, "version": version}}


def test_a_commit_of_several_applications_is_repeated_only_if_all_are_known(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    first = table.commit([txn("a", 5), txn("b", 1), add("x")], operation="WRITE")
    with pytest.raises(ConflictError, match="transaction of 'a' already, and not that of 'b', 'c'") as caught:
        table.commit([txn("a", 5), txn("b", 2), txn("c", 1), add("y")], operation="WRITE")
    assert caught.value.details["rule"] == "ConcurrentTransaction"
    assert table.version == first.version
    again = table.commit([txn("a", 4), txn("b", 1), add("y")], operation="WRITE")
    assert (again.version, again.repeated) == (first.version, True)
    assert table.commit([txn("a", 6), txn("b", 2), add("y")], operation="WRITE").version == first.version + 1


def test_a_repeated_transaction_of_several_commits_gives_the_last_version_again(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    done = []
    for _ in range(2):
        with catalog.transaction(txn_id="job-7") as tx:
            for name in "abc":
                tx.table(table.name).stage([add(name)], operation="WRITE")
        done.append(tx.committed[table.name])
        if len(done) == 1:
            table.commit([add("later")], operation="WRITE")
    assert [(each.version, each.repeated) for each in done] == [(3, False), (3, True)]
    assert done[0].committed_at == done[1].committed_at
    assert table.version == 4


def test_a_repeated_transaction_of_several_commits_is_known_while_its_last_version_is_left(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    for repeated in (False, True):
        with catalog.transaction(txn_id="job-7") as tx:
            for name in "abc":
                tx.table(table.name).stage([add(name)], operation="WRITE")
        done = tx.committed[table.name]
        assert (done.version, done.repeated) == (3, repeated)
        table.expire(before_version=3)
    assert table.version == 3


def test_no_token_that_a_user_gives_is_that_of_another_transactions_commit(catalog: Catalog, tmp_path: Path) -> None:
    tables = [create(catalog, tmp_path, name=name) for name in ("sales.orders", "sales.items")]
    for table, first in ((tables[0], True), (tables[1], False)):
        for several in (first, not first):
            if several:
                with catalog.transaction(txn_id="job") as tx:
                    for name in "ab":
                        tx.table(table.name).stage([add(name)], operation="WRITE")
                assert not tx.committed[table.name].repeated
            else:
                assert not table.commit([add("c")], operation="WRITE", txn_id="job/1").repeated
        assert (table.version, paths(table)) == (3, {"a", "b", "c"})


@pytest.mark.parametrize("token", ["job\x1f1", "a\nb", "\0", "\x9f", "\ud800"])
def test_a_token_with_a_control_character_is_refused_in_words(catalog: Catalog, tmp_path: Path, token: str) -> None:
    table = create(catalog, tmp_path)
    with pytest.raises(UsageError, match=r"txn_id .*control character.*Nothing was written"):
        table.commit([add("a")], operation="WRITE", txn_id=token)
    assert table.version == 0
    odd = "'; drop table x;-- \N{SNOWMAN}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER} /1"
    assert table.commit([add("a")], operation="WRITE", txn_id=odd).txn_id == odd


@pytest.mark.parametrize("terms", [{"txn_id": "job-7"}, {"txn": ("nightly", 7)}], ids=["token", "application"])
@pytest.mark.parametrize("names", [["sales.orders"], ["sales.orders", "sales.items"]], ids=["one table", "two tables"])
@pytest.mark.parametrize("commits", [1, 2])
def test_a_repeated_transaction_is_told_what_the_first_one_was(
    catalog: Catalog, tmp_path: Path, terms: dict[str, Any], names: list[str], commits: int
) -> None:
    for name in names:
        create(catalog, tmp_path, name=name)
    done = []
    for _ in range(2):
        with catalog.transaction(**terms) as tx:
            for name in names:
                for number in range(commits):
                    tx.table(name).stage([add(f"f{number}")], operation="WRITE")
        done.append(tx.committed)
        catalog.table(names[0]).commit([add(f"later{len(done)}")], operation="WRITE")
    first, again = done
    assert all(each.repeated for each in again.values())
    assert {name: replace(each, repeated=False) for name, each in again.items()} == first
    assert {each.version for each in first.values()} == {commits}
    assert len({each.txn_id for each in first.values()}) == 1
    groups = {each.group_id for each in first.values()}
    assert (len(groups), None in groups) == (1, len(names) == 1)


def test_a_table_whose_name_is_taken_meanwhile_is_refused_and_leaves_nothing(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already has a table items"), catalog.transaction() as tx:
        state = new_table(catalog.store, "items", str(tmp_path / "mine"))
        first = first_actions(SCHEMA, partition_by=["day"], properties={}, now_ms=1)
        tx.create(state).stage(first, operation="CREATE TABLE")
        create(catalog, tmp_path, name="items")
    assert [info.location for info in catalog.tables()] == [str(tmp_path / "items")]
    assert not (tmp_path / "mine" / "_delta_log").exists()


def test_staged_actions_of_a_user_define_no_other_table(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    found = table.snapshot()
    other = {"metaData": {"id": "other", "format": {"provider": "parquet"}, "schemaString": SCHEMA,
             "partitionColumns": ["day"], "configuration": dict(found.properties)}}  # fmt: skip
    for action, words in (
        (other, "the id 'other'"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, "no longer has inCommitTimestamp"),
        ({"commitInfo": {"operationMetrics": "many"}}, "'operationMetrics' must be an object of texts"),
    ):
        with pytest.raises(UsageError, match=words):
            table.commit([action], operation="WRITE")
    assert table.version == 0


def test_an_application_transaction_says_when_it_was(catalog: Catalog, tmp_path: Path) -> None:
    """Otherwise a table that forgets old applications takes it for one of them, and it happens again."""
    table = create(catalog, tmp_path)
    before = time.time()
    table.commit([add("a")], operation="WRITE", txn=("stream", 7))
    lines = (tmp_path / table.name / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
    [found] = [json.loads(line)["txn"] for line in lines if line.startswith('{"txn"')]
    assert before - 1 <= found["lastUpdated"] / 1000 <= time.time() + 1
