"""A name for one version of each of many tables, all of them taken at the same moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mainstem import observe
from mainstem.engines import EngineError, Outcome
from mainstem.errors import TableNotFound, UsageError
from mainstem.naming import require_name
from mainstem.store import Queries, Store, as_utc


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag and the version that it names of each of its tables."""

    name: str
    created_at: datetime
    created_by: str | None
    remark: str | None
    versions: Mapping[str, int]


def set_tag(
    store: Store,
    name: str,
    *,
    tables: Sequence[str] | None = None,
    created_by: str | None = None,
    remark: str | None = None,
) -> Tag:
    """Name the head of every table, or of these, as one statement sees them: a multi-table commit is in it or not.

    A tag never moves. While it is there, neither retention nor vacuum takes what its versions need.
    """
    require_name(name, what="tag")
    try:
        with store.writing() as queries:
            ids = _ids(queries, tables)
            queries.change("tag_insert", tag=name, created_by=created_by, remark=remark)
            if queries.change_among("tag_heads", "ids", ids, tag=name) != len(ids):
                raise TableNotFound("a table vanished while it was tagged.", hint="Nothing was written. Do it again.")
    except EngineError as error:
        if error.outcome is Outcome.LOST:
            raise UsageError(
                f"there is a tag {name!r} already.", hint="A tag never moves: take another name, or delete it first."
            ) from error
        raise
    observe.event("tag.set", tag=name, tables=len(ids))
    return next(tag for tag in list_tags(store) if tag.name == name)


def _ids(queries: Queries, tables: Sequence[str] | None) -> list[str]:
    known = {row["name"]: row["table_id"] for row in queries.rows("tables_all")}
    for table in tables or ():
        if table not in known:
            raise TableNotFound(f"the catalog has no table {table}.", hint="Nothing was written.", table=table)
    if not known or (tables is not None and not tables):
        raise UsageError("there is no table to tag.", hint="Import or create one first.")
    return [known[table] for table in dict.fromkeys(tables or known)]


def list_tags(store: Store) -> list[Tag]:
    """Every tag, the newest first."""
    versions: dict[str, dict[str, int]] = {}
    for row in store.rows("tag_members"):
        versions.setdefault(row["tag"], {})[row["name"]] = row["version"]
    return [
        Tag(row["name"], as_utc(row["created_at"]), row["created_by"], row["remark"], versions.get(row["name"], {}))
        for row in store.rows("tags_all")
    ]


def find_tag(store: Store, name: str) -> Tag:
    """The tag of that name."""
    found = next((tag for tag in list_tags(store) if tag.name == name), None)
    if found is None:
        raise UsageError(f"there is no tag {name!r}.", hint="See: mainstem tags")
    return found


def delete_tag(store: Store, name: str) -> Tag:
    """Take a tag away: what only it held may expire from now on."""
    found = find_tag(store, name)
    # Two steps, because DuckDB sees a reference that the same transaction has deleted as still there. A tag without
    # tables, should this die in between, holds nothing, and can be deleted again.
    for statement in ("tag_members_delete", "tag_delete"):
        with store.writing() as queries:
            queries.change(statement, tag=name)
    return found
