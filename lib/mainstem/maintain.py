"""What a table no longer needs: old versions in the catalog, and data files that no version refers to.

Tags and leases hold both back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import orjson

from mainstem import observe
from mainstem.checkpoint import properties as said
from mainstem.datafiles import DataFile, delete_files, own_files
from mainstem.deltalog.location import Location, open_location
from mainstem.errors import TableNotFound, UsageError
from mainstem.leases import staging_since
from mainstem.needed import Needed, refuse_outside_commits, tables_inside
from mainstem.rows import CDC, OTHER, REMOVES
from mainstem.store import Queries, Row, Store, as_utc
from mainstem.versions import to_millis

_MOST_NAMED = 1000
_BATCH = 100  # files that are deleted while nobody can commit to the table
_HOUR_MS = 3_600_000
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
        # A remove is remembered as long as checkpoints have to repeat it, and as long as a vacuum may ask for it.
        since = to_millis(queries.now()) - said.removes_kept_ms(orjson.loads(table["properties"]))
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
    by absolute paths, are never deleted. Raises `ForeignCommit` if an outside engine has committed beside the catalog,
    and `UsageError` for a retention that reaches back to removes which `expire` has made the catalog forget.

    Files are deleted a few at a time while the head is locked, each time after a new look at what is needed: what a
    commit or a restore brings back meanwhile stays, or the restore finds it gone and is refused.
    """
    table = _table(store, name)
    if table["authority"] != "catalog":
        raise UsageError(
            f"the log of {name} leads: who writes it knows what it needs.",
            hint="Nothing was deleted. Vacuum it there, or let the catalog lead: mainstem cutover",
            table=name,
        )
    own = (said.retention_ms(orjson.loads(table["properties"]), said.FILE_RETENTION) or 0) / _HOUR_MS
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
        now = _table(store, name)
        with store.reading() as queries:
            if short_retention == "refuse":
                _require_remembered(queries, now, hours)
            cutoff = _cutoff(queries, table, hours)
            needed = Needed(table, place, since_ms=to_millis(cutoff))
            needed.look(queries)
        found = [file for file in there if file.path not in needed.files and file.modified_ms < to_millis(cutoff)]
        refuse_outside_commits(store, _table(store, name), place)
        if not dry_run:
            found = _deleted(store, table, place, found, needed)
    observe.event("vacuum.done", table=name, files=len(found), dry_run=dry_run)
    paths = tuple(file.path for file in found[:_MOST_NAMED])
    return Vacuumed(name, len(found), sum(file.size_bytes for file in found), dry_run, paths)


def _deleted(store: Store, table: Row, place: Location, found: Sequence[DataFile], needed: Needed) -> list[DataFile]:
    """Delete what is still not needed when its turn comes; what that was.

    Every commit locks the head, and so does a restore between its lease and its look at the files (`restoring`): it
    has come before a batch, which then sees its lease or its commit, or it comes after, and sees what is gone.
    """
    deleted: list[DataFile] = []
    for start in range(0, len(found), _BATCH):
        begun = time.monotonic()
        with store.writing() as queries:
            if queries.row("head_lock", table_id=table["table_id"]) is None:
                raise TableNotFound(f"the catalog no longer has the table {table['name']}.", table=table["name"])
            needed.look(queries)
            batch = [file for file in found[start : start + _BATCH] if file.path not in needed.files]
            delete_files(place, batch)
        deleted += batch
        time.sleep(time.monotonic() - begun)  # not every database lets those who wait in by their order
    return deleted


def _require_remembered(queries: Queries, table: Row, hours: float) -> None:
    """Refuse a retention that the rows do not cover: of versions that have expired, removes are kept for a time only.

    An import knows of the versions before its first one what the log's checkpoint said, which is the table's own
    retention.
    """
    floor, wanted = int(table["min_readable_version"]), queries.now() - timedelta(hours=hours)
    first = queries.row("version_row", table_id=table["table_id"], version=floor)
    if floor == 0 or (first is not None and as_utc(first["committed_at"]) <= wanted):
        return
    stays = said.removes_kept_ms if as_utc(table["created_at"]) <= wanted else _own_retention
    kept = []
    for row in queries.rows("properties_said", table_id=table["table_id"]):
        with suppress(UsageError):  # under properties that cannot be read nothing expires
            kept.append(stays(orjson.loads(row["table_properties"] or "{}")))
    known = min(kept, default=0) / _HOUR_MS
    if hours > known:
        raise UsageError(
            f"a retention of {hours:g} hours reaches back beyond version {floor} of {table['name']}, the oldest one "
            f"left: of what was removed before it, the catalog surely knows the last {known:g} hours.",
            hint="Nothing was deleted. Ask for less, or expire fewer versions and wait; if files that were removed "
            "earlier may go, allow it by short_retention='allow' (--allow-short-retention).",
            table=table["name"],
        )


def _own_retention(properties: said.Properties) -> int:
    return said.retention_ms(properties, said.FILE_RETENTION) or 0


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
