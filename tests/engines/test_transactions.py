"""Several tables in one transaction: all of them, or none; and again after a conflict."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tables import add, create, paths, remove

from mainstem import Catalog, ConflictError, GateFailed, UsageError, committing
from mainstem.engines import EngineError, Outcome
from mainstem.errors import EngineBusy, MainstemError
from mainstem.gate import GateResult
from mainstem.operations import DataTransaction
from mainstem.operations.gates import Gate, require_unmoved
from mainstem.ratified import Ratified
from mainstem.store import Queries


@pytest.fixture
def two(catalog: Catalog, tmp_path: Path) -> Catalog:
    """Two tables with one file each."""
    for name in ("orders", "items"):
        create(catalog, tmp_path, name=name).commit([add("a")], operation="WRITE")
    return catalog


def heads(catalog: Catalog) -> dict[str, int]:
    return {table.name: table.version for table in catalog.tables()}


def test_both_tables_move_and_carry_one_group(two: Catalog, tmp_path: Path) -> None:
    with two.transaction(committer="ann", info={"userMetadata": "nightly"}) as tx:
        tx.table("orders").stage([add("b")], operation="WRITE")
        tx.table("items").stage([remove("a")], operation="DELETE")
    assert heads(two) == {"orders": 2, "items": 2}
    assert (paths(two.table("orders")), paths(two.table("items"))) == ({"a", "b"}, set())
    [group] = {done.group_id for done in tx.committed.values()}
    for name in ("orders", "items"):
        [entry] = two.table(name).history(limit=1)
        assert (str(entry.group_id), entry.committer) == (group, "ann")
        line = (tmp_path / name / "_delta_log" / f"{2:020d}.json").read_text().splitlines()[0]
        info = json.loads(line)["commitInfo"]
        assert (info["groupId"], info["userMetadata"]) == (group, "nightly")


def test_a_conflict_in_one_table_names_it_and_moves_neither(two: Catalog) -> None:
    with pytest.raises(ConflictError, match="items") as caught, two.transaction() as tx:
        tx.table("orders").stage([add("b")], operation="WRITE")
        tx.table("items").stage([remove("a"), add("mine")], operation="UPDATE")
        two.table("items").commit([remove("a"), add("theirs")], operation="UPDATE")
    assert caught.value.details["table"] == "items"
    assert heads(two) == {"orders": 1, "items": 2}


def test_a_refused_change_of_the_second_table_leaves_the_first_alone(two: Catalog) -> None:
    with pytest.raises(UsageError, match="not live"), two.transaction() as tx:
        tx.table("orders").stage([add("b")], operation="WRITE")
        tx.table("items").stage([remove("nobody")], operation="DELETE")
    with pytest.raises(ZeroDivisionError), two.transaction() as tx:
        tx.table("orders").stage([add("b")], operation="WRITE")
        raise ZeroDivisionError
    with pytest.raises(UsageError, match="has ended"):
        tx.table("orders")
    assert heads(two) == {"orders": 1, "items": 1}


def test_several_commits_to_one_table_are_consecutive_versions(two: Catalog) -> None:
    with two.transaction() as tx:
        table = tx.table("orders")
        table.stage([add("b")], operation="WRITE")
        table.stage([remove("b"), add("c")], operation="UPDATE")
        tx.table("items").stage([add("b")], operation="WRITE")
    assert heads(two) == {"orders": 3, "items": 2}
    assert paths(two.table("orders"), version=2) == {"a", "b"}
    assert paths(two.table("orders")) == {"a", "c"}


def test_an_application_transaction_covers_all_tables_once(two: Catalog) -> None:
    for _ in range(2):
        with two.transaction(txn=("nightly", 7)) as tx:
            for name in ("orders", "items"):
                tx.table(name).stage([add("b")], operation="WRITE")
    assert all(done.repeated for done in tx.committed.values())
    assert heads(two) == {"orders": 2, "items": 2}
    with pytest.raises(ConflictError, match="a part of this transaction"), two.transaction(txn=("nightly", 7)) as tx:
        tx.table("orders").stage([add("c")], operation="WRITE")
        create_third(two, tx)
    assert heads(two) == {"orders": 2, "items": 2, "third": 0}


def test_what_is_staged_after_a_gate_has_to_pass_it_too(two: Catalog) -> None:
    with pytest.raises(GateFailed, match="20 rows, not 1 to 10"), two.transaction() as tx:
        tx.table("orders").stage([add("b")], operation="WRITE")
        tx.require_stats("orders", rows=(1, 10))
        tx.table("orders").stage([add("c")], operation="WRITE")
    assert heads(two) == {"orders": 1, "items": 1}
    with two.transaction() as tx:
        tx.table("orders").stage([add("b")], operation="WRITE")
        tx.require_stats("orders", rows=(1, 20))
        tx.table("orders").stage([add("c")], operation="WRITE")
    assert heads(two) == {"orders": 3, "items": 1}


def test_a_gate_that_was_not_passed_stands_until_the_rows_are_right(two: Catalog) -> None:
    for mended in (False, True):
        tx = two.transaction()
        tx.table("orders").stage([add("b")], operation="WRITE")
        with pytest.raises(GateFailed):
            tx.require_stats("orders", rows=(11, 20))
        if not mended:
            with pytest.raises(GateFailed):
                tx.commit()
            assert heads(two) == {"orders": 1, "items": 1}
    tx.table("orders").stage([add("c")], operation="WRITE")
    tx.commit()
    assert heads(two) == {"orders": 3, "items": 1}


def test_an_append_beneath_a_table_that_was_looked_at_as_a_whole_is_a_conflict(two: Catalog) -> None:
    with pytest.raises(ConflictError, match="ConcurrentAppend") as caught, two.transaction() as tx:
        tx.table("orders").stage([add("b")], operation="WRITE")
        tx.table("orders").was_read_whole()
        two.table("orders").commit([add("theirs")], operation="WRITE")
    assert caught.value.details["table"] == "orders"
    assert heads(two) == {"orders": 2, "items": 1}


def test_a_table_that_a_gate_has_only_looked_at_must_not_have_moved(two: Catalog) -> None:
    def change(tx: DataTransaction, *, meanwhile: bool) -> None:
        looked_at = tx.table("items").state
        tx.table("orders").stage([add(f"b{meanwhile}")], operation="WRITE")
        if meanwhile:
            two.table("items").commit([add("theirs")], operation="WRITE")

        def also(queries: Queries, done: Sequence[Ratified]) -> Sequence[Ratified]:
            require_unmoved(queries, [looked_at])
            return done

        tx.commit(alongside=also)

    change(two.transaction(), meanwhile=False)
    with pytest.raises(ConflictError, match="looked at version 1, and the table is at 2"):
        change(two.transaction(), meanwhile=True)
    assert heads(two) == {"orders": 2, "items": 2}


def test_a_table_that_a_gate_has_looked_at_must_have_what_it_had(two: Catalog, tmp_path: Path) -> None:
    tx = two.transaction()
    tx.table("orders").stage([add("b")], operation="WRITE")
    tx._pass(gate_on("items", tx))
    write_deltalake(tmp_path / "other", pa.table({"id": [1]}))
    two.import_table(str(tmp_path / "other"), name="items", force=True)
    two.table("items").cutover()
    with pytest.raises(ConflictError, match="looked at version 1, and the table is at 1, with another"):
        tx.commit()
    assert heads(two) == {"orders": 1, "items": 1}


def gate_on(name: str, tx: DataTransaction) -> Gate:
    """A gate that looks at all rows of a table, and likes them."""
    now = datetime.now(UTC)
    return Gate({name: tx.table(name)}, lambda: GateResult(name, "all is well", now, now, checked=1), whole=True)


def test_a_gate_and_a_commit_to_the_same_tables_never_wait_for_each_other_in_a_circle(
    two: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One looks at the first table and changes the second, the other one changes both."""
    first, second = sorted(heads(two), key=lambda name: two.table(name).info().table_id)

    def both() -> None:
        with two.transaction() as other:
            for name in (first, second):
                other.table(name).stage([add("theirs")], operation="WRITE")

    def in_the_middle(*args: Any) -> Any:
        monkeypatch.undo()
        begun.append(pool.submit(both))
        while not somebody_waits_for_a_lock(two):
            time.sleep(0.01)
        return ratify(*args)

    ratify, begun = committing.ratify, []  # type: ignore[var-annotated]
    with ThreadPoolExecutor(1) as pool:
        with two.transaction() as tx:
            tx.table(second).stage([add("mine")], operation="WRITE")
            tx._pass(gate_on(first, tx))
            monkeypatch.setattr(committing, "ratify", in_the_middle)
        begun[0].result()
    assert heads(two) == {first: 2, second: 3}


def somebody_waits_for_a_lock(catalog: Catalog) -> bool:
    """Where tables are locked one by one, whether somebody waits for one; elsewhere it does not matter."""
    if not catalog.engine.capabilities.row_locks:
        return True
    with catalog.engine.reading() as connection:
        return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)").fetchone()[0])


def create_third(catalog: Catalog, tx: DataTransaction) -> None:
    create(catalog, Path(catalog.table("orders").location).parent, name="third")
    tx.table("third").stage([add("c")], operation="WRITE")


def test_a_change_is_made_again_on_the_new_head_after_a_conflict(two: Catalog) -> None:
    seen: list[set[str]] = []

    def change(tx: DataTransaction) -> str:
        live = paths(two.table("items"))
        seen.append(live)
        [name] = live
        tx.table("items").stage([remove(name), add(f"{name}x")], operation="UPDATE")
        if len(seen) == 1:
            two.table("items").commit([remove("a"), add("b")], operation="UPDATE")
        return name

    assert two.run(change, retries=3) == "b"
    assert seen == [{"a"}, {"b"}]
    assert paths(two.table("items")) == {"bx"}


@pytest.mark.parametrize(("outcome", "attempts"), [(Outcome.BUSY, 2), (Outcome.UNKNOWN, 1), (Outcome.FATAL, 1)])
def test_a_change_that_lost_a_lock_is_made_again_and_one_that_the_database_cannot_take_is_not(
    two: Catalog, outcome: Outcome, attempts: int
) -> None:
    seen: list[int] = []

    def change(tx: DataTransaction) -> None:
        tx.table("orders").stage([add("b")], operation="WRITE")
        seen.append(tx.table("orders").state.read_version)
        if len(seen) == 1:
            two.table("orders").commit([add("theirs")], operation="WRITE")
            with two.store.writing():
                raise EngineError("deadlock detected", outcome=outcome)

    with nullcontext() if attempts == 2 else pytest.raises(MainstemError, match="deadlock"):
        two.run(change, retries=3)
    assert (seen, heads(two)["orders"]) == ([1, 2][:attempts], attempts + 1)


def test_what_has_committed_already_is_not_made_again(two: Catalog) -> None:
    def change(tx: DataTransaction) -> None:
        tx.table("orders").stage([add("b")], operation="WRITE")
        tx.commit()
        with two.store.writing():
            raise EngineError("deadlock detected", outcome=Outcome.BUSY)

    with pytest.raises(EngineBusy):
        two.run(change, retries=3)
    assert heads(two)["orders"] == 2


def test_the_last_conflict_is_raised_when_the_retries_are_used_up(two: Catalog) -> None:
    def change(tx: DataTransaction) -> None:
        [name] = paths(two.table("items"))
        tx.table("items").stage([remove(name), add(f"{name}m")], operation="UPDATE")
        two.table("items").commit([remove(name), add(f"{name}t")], operation="UPDATE")

    with pytest.raises(ConflictError):
        two.run(change, retries=1)
    assert heads(two)["items"] == 3
