"""kill -9 in the middle of a commit: after a restart nothing acknowledged is lost, and nothing is there twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tables import add, create, paths
from victim import IN_PUBLISHING, POINTS, Victims

from mainstem import Catalog, Table, open_catalog
from mainstem.recorded import recorded

# How often at each point, on each of three engines: in every run, and in the slow one.
ROUNDS = pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])
BOTH = ("sales.orders", "sales.items")


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    victims = Victims(ready=2)
    yield victims
    victims.dismiss()


def log_of(folder: Path, table: Table) -> dict[str, bytes]:
    files = (folder / table.name / "_delta_log").glob("*.json")
    return {file.name: file.read_bytes() for file in sorted(files)}


def rows_of(catalog: Catalog, table: Table) -> dict[str, bytes]:
    """The commit files as the catalog has them."""
    info = table.info()
    with catalog.store.reading() as queries:
        found = recorded(queries, info.table_id, first=0, last=info.version)
    return {f"{each.version:020d}.json": each.commit_file(table=table.name) for each in found}


def state(catalog: Catalog, folder: Path, table: Table) -> Any:
    """All that a repair could change."""
    info = table.info()
    with catalog.store.reading() as queries:
        mirror = queries.rows("mirror_rows", table_id=info.table_id, first=0, last=info.version)
    files = {path.name: path.stat().st_mtime_ns for path in (folder / table.name / "_delta_log").iterdir()}
    return info, mirror, files


def require_prefix(catalog: Catalog, folder: Path, table: Table) -> None:
    """Every file of the log is one of the catalog's, byte for byte, and none is missing before the last."""
    written, known = log_of(folder, table), rows_of(catalog, table)
    assert list(written) == list(known)[: len(written)]
    assert written == {name: known[name] for name in written}


def require_repair(catalog: Catalog, folder: Path, table: Table) -> None:
    """Publishing brings the log to the catalog's state, and a second time changes nothing."""
    require_prefix(catalog, folder, table)
    table.publish()
    assert log_of(folder, table) == rows_of(catalog, table)
    info, mirror, _ = before = state(catalog, folder, table)
    assert info.published_version == info.version
    assert {row["status"] for row in mirror} == {"COMPLETE"}
    assert table.publish().written == 0
    assert state(catalog, folder, table) == before


@ROUNDS
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_commit_is_there_once_or_not_at_all(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, victims: Victims, point: str, rounds: int
) -> None:
    table = create(catalog, tmp_path)
    acknowledged: dict[str, int] = {}
    for number in range(rounds):
        file, token, before = f"k{number}", f"token-{number}", table.version
        catalog.close()
        assert victims.kill(catalog_uri, [table.name], file, token, point) == -signal.SIGKILL
        assert table.version == before + (point != POINTS[0])
        require_repair(catalog, tmp_path, table)
        again = table.commit([add(file)], operation="WRITE", txn_id=token)
        assert (again.version, again.repeated) == (before + 1, point != POINTS[0])
        acknowledged[file] = again.version
        done = table.commit([add(f"a{number}")], operation="WRITE")
        acknowledged[f"a{number}"] = done.version
        assert done.version == again.version + 1
        assert done.published
    assert sorted(acknowledged.values()) == list(range(1, 2 * rounds + 1))
    assert paths(table) == set(acknowledged)
    require_repair(catalog, tmp_path, table)


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", IN_PUBLISHING)
def test_a_killed_publisher_leaves_a_prefix_that_the_next_one_completes(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, victims: Victims, point: str, rounds: int
) -> None:
    """A publisher with several versions before it, and a checkpoint behind them: killed at the second, or in it."""
    table = create(catalog, tmp_path)
    files: set[str] = set()
    for number in range(rounds):
        with open_catalog(catalog_uri, publish_on_commit=False) as quiet:
            for place in range(3):
                files.add(f"n{number}p{place}")
                quiet.table(table.name).commit([add(f"n{number}p{place}")], operation="WRITE")
        before = table.info()
        catalog.close()
        assert victims.kill_publisher(catalog_uri, table.name, point) == -signal.SIGKILL
        after = table.info()
        assert after.version == before.version == 3 * (number + 1)
        written = list(log_of(tmp_path, table))
        there = 3 * number + 1 + {"before the file": 1, "half-way through the file": 1}.get(point, 3)
        assert len(written) == there
        assert after.published_version == (after.version if point == POINTS[-1] else before.published_version)
        require_repair(catalog, tmp_path, table)
        assert paths(table) == files


@pytest.mark.parametrize("point", POINTS[:-1])
def test_a_killed_transaction_changes_both_tables_or_neither(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, victims: Victims, point: str
) -> None:
    tables = [create(catalog, tmp_path, name=name) for name in BOTH]
    for number in range(2):
        before = [table.version for table in tables]
        catalog.close()
        assert victims.kill(catalog_uri, BOTH, f"k{number}", f"token-{number}", point) == -signal.SIGKILL
        committed = point != POINTS[0]
        assert [table.version for table in tables] == [version + committed for version in before]
        for table in tables:
            require_repair(catalog, tmp_path, table)
        with catalog.transaction(txn_id=f"token-{number}") as transaction:
            for table in tables:
                transaction.table(table.name).stage([add(f"k{number}")], operation="WRITE")
        assert {each.repeated for each in transaction.committed.values()} == {committed}
        assert [table.version for table in tables] == [number + 1, number + 1]
    assert [paths(table) for table in tables] == [{"k0", "k1"}] * 2
    groups = [[entry.group_id for entry in table.history(limit=2)] for table in tables]
    assert groups[0] == groups[1]
    assert None not in groups[0]
