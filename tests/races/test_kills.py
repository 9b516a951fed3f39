"""kill -9 in the middle of a commit: after a restart nothing acknowledged is lost, and nothing is there twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tables import add, create, paths
from victim import POINTS, Victims

from mainstem import Catalog, Table
from mainstem.recorded import recorded

ROUNDS = 7  # on each of three engines: twenty-one times at each point
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


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_commit_is_there_once_or_not_at_all(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, victims: Victims, point: str
) -> None:
    table = create(catalog, tmp_path)
    acknowledged: dict[str, int] = {}
    for number in range(ROUNDS):
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
    assert sorted(acknowledged.values()) == list(range(1, 2 * ROUNDS + 1))
    assert paths(table) == set(acknowledged)
    require_repair(catalog, tmp_path, table)


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
