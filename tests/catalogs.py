"""What tests ask of a catalog beside its own surface: plain SQL, row counts, the commit files that its rows hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mainstem import Catalog
from mainstem.columns import FILE_COLUMNS
from mainstem.deltalog import serialize_commit
from mainstem.recorded import recorded
from mainstem.snapshot import Snapshot

FileId = tuple[str, str | None]


def ask(catalog: Catalog, sql: str, **values: object) -> list[tuple[Any, ...]]:
    """The rows of a query, with `:name` values bound."""
    with catalog.engine.reading() as connection:
        return [tuple(row) for row in catalog.engine.execute(connection, sql, values).fetchall()]


def change(catalog: Catalog, *statements: str, **values: object) -> None:
    """Run statements in one transaction, each with the values that it names."""
    with catalog.engine.writing() as connection:
        for sql in statements:
            catalog.engine.execute(connection, sql, values)


def row_counts(catalog: Catalog) -> dict[str, int]:
    """How many rows each `dl_*` table has."""
    with catalog.engine.reading() as connection:
        return {
            table: connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
            for table in sorted(catalog.engine.tables(connection))
        }


def state(snapshot: Snapshot) -> dict[FileId, Mapping[str, Any]]:
    """The live files by path and deletion vector; one that is there twice is an error."""
    rows = snapshot.to_arrow().to_pylist()
    found = {(row["path"], row["dv_id"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def paths(snapshot: Snapshot) -> set[str]:
    return {path for path, _ in state(snapshot)}


def replayed(catalog: Catalog, name: str, version: int) -> dict[FileId, Mapping[str, Any]]:
    """The same as `state`, by the log rows alone: what spans must equal."""
    table_id = catalog.table(name).info().table_id
    with catalog.store.reading() as queries:
        rows = queries.arrow("replay_at_version", FILE_COLUMNS, table_id=table_id, version=version).to_pylist()
    found = {(row["path"], row["dv_id"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def commit_files(catalog: Catalog, name: str) -> dict[int, bytes]:
    """Every version of a table as a commit file again, made from its rows."""
    info = catalog.table(name).info()
    with catalog.store.reading() as queries:
        found = recorded(queries, info.table_id, first=0, last=info.version)
    return {each.version: serialize_commit(each.actions) for each in found}
