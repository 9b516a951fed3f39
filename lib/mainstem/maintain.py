"""What a table no longer needs: old versions in the catalog, and data files that no version refers to.

Tags and leases hold both back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import orjson

from mainstem import observe
from mainstem.checkpoint import properties as said
from mainstem.datafiles import delete_files, own_files
from mainstem.deltalog.location import open_location
from mainstem.errors import TableNotFound, UsageError
from mainstem.leases import staging_since
from mainstem.needed import needed_files, refuse_outside_commits, tables_inside
from mainstem.rows import CDC, OTHER, REMOVES
from mainstem.store import Queries, Row, Store
from mainstem.versions import to_millis

_MOST_NAMED = 1000
_CLOCKS = timedelta(minutes=5)  # by which the database's clock and that of the files may differ
_ALIVE = ("adds_expire", "txns_expire", "domains_expire", "metadata_expire", "protocol_expire", "versions_expire")


@dataclass(frozen=True, slots=True)
class Expired:
    """How far a table can be read back now, and how many rows that took away."""

    name: str
    from_version: int
    min_readable_version: int
    rows: int


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The files that were deleted, or with `dry_run` would be; of many, `paths` names the first ones."""

    name: str
    files: int
    size_bytes: int
    dry_run: bool
    paths: tuple[str, ...]


def expire(store: Store, name: str, *, before_version: int) -> Expired:
    """Forget the versions before one: nobody can read them afterwards, and their rows are gone from the catalog.

    A tag, a lease, or a version that is not published yet holds it back: then it is refused, and says which. The files
    of the table and its log stay as they are.
    """
    table = _table(store, name)
    with observe.span("expire", table=name), store.writing() as queries:
        head = queries.row("head_lock", table_id=table["table_id"])
        assert head is not None
        floor = int(head["min_readable_version"])
        if not 0 <= before_version <= head["published_version"]:
            raise UsageError(
                f"versions of {name} can be forgotten up to {head['published_version']}, the newest that is published; "
                f"{before_version} is beyond.",
                hint="Nothing was changed.",
                table=name,
            )
        _require_free(queries, table, before_version)
        if before_version <= floor:
            return Expired(name, floor, floor, 0)
        bounds = {"table_id": table["table_id"], "version": before_version}
        rows = sum(queries.change(statement, **bounds) for statement in _ALIVE)
        rows += sum(queries.change("actions_expire", {"target": shape.table}, **bounds) for shape in (CDC, OTHER))
        # A remove is remembered as long as checkpoints have to repeat it.
        kept = said.retention_ms(orjson.loads(table["properties"]), said.FILE_RETENTION)
        since = to_millis(queries.now()) - (kept or 0)
        rows += queries.change("removes_expire", {"target": REMOVES.table}, **bounds, since=since)
        queries.change("head_floor", **bounds)
    observe.event("expire.done", table=name, min_readable_version=before_version, rows=rows)
    return Expired(name, floor, before_version, rows)


def _require_free(queries: Queries, table: Row, before_version: int) -> None:
    held = queries.rows("holders", table_id=table["table_id"], version=before_version)
    if held:
        told = ", ".join(f"{row['kind']} {row['name']!r} holds version {row['version']}" for row in held[:5])
        raise UsageError(
            f"versions of {table['name']} before {before_version} are still needed: {told}.",
            hint="Nothing was changed. Take the tag away, or wait for the lease.",
            table=table["name"],
        )


def vacuum(
    store: Store,
    name: str,
    *,
    retention_hours: float | None = None,
    dry_run: bool = False,
    short_retention: Literal["refuse", "allow"] = "refuse",
) -> Vacuumed:
    """Delete the files in the table's folder that nothing needs any more.

    Kept are the files of the head, of every tag and lease, of all that was removed within the retention (the table's
    own `delta.deletedFileRetentionDuration`, if not given), and every file that is younger than that, or than the
    oldest transaction that writes: somebody may be about to commit it. So are files that another table of the catalog
    names, and whole folders that are another table. Change files go with age alone, as in Delta. Files elsewhere, named
    by absolute paths, are never deleted. Raises `ForeignCommit` if an outside engine has committed beside the catalog.
    """
    table = _table(store, name)
    if table["authority"] != "catalog":
        raise UsageError(
            f"the log of {name} leads: who writes it knows what it needs.",
            hint="Nothing was deleted. Vacuum it there, or let the catalog lead: mainstem cutover",
            table=name,
        )
    own = (said.retention_ms(orjson.loads(table["properties"]), said.FILE_RETENTION) or 0) / 3_600_000
    hours = own if retention_hours is None else retention_hours
    if hours < 0 or (hours < own and short_retention == "refuse"):
        raise UsageError(
            f"a retention of {hours:g} hours is shorter than the {own:g} hours that {name} asks for.",
            hint="Nothing was deleted. Readers of older versions may fail; if you are sure, allow it by "
            "short_retention='allow' (--allow-short-retention).",
            table=name,
        )
    place = open_location(table["location"])
    with observe.span("vacuum", table=name):
        with store.reading() as queries:
            others = tables_inside(queries, table, place)
        # First the files, then the leases, then the rows: who writes a file has a lease before it is there, and gives
        # it back when the rows name it.
        there = own_files(place, others)
        with store.reading() as queries:
            cutoff = _cutoff(queries, table, hours)
            needed = needed_files(queries, table, place, since_ms=to_millis(cutoff))
        found = [file for file in there if file.path not in needed and file.modified_ms < to_millis(cutoff)]
        refuse_outside_commits(store, _table(store, name), place)
        if not dry_run:
            delete_files(place, found)
    observe.event("vacuum.done", table=name, files=len(found), dry_run=dry_run)
    paths = tuple(file.path for file in found[:_MOST_NAMED])
    return Vacuumed(name, len(found), sum(file.size_bytes for file in found), dry_run, paths)


def _cutoff(queries: Queries, table: Row, hours: float) -> datetime:
    """What is younger stays: by the retention, and whatever somebody may have written who is about to commit it."""
    cutoff = queries.now() - timedelta(hours=hours)
    began = staging_since(queries, table["table_id"])
    return cutoff if began is None else min(cutoff, began - _CLOCKS)


def _table(store: Store, name: str) -> Row:
    table = store.row("table_with_properties", name=name)
    if table is None:
        raise TableNotFound(f"the catalog has no table {name}.", hint="See: mainstem tables", table=name)
    return table
