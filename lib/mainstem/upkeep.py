"""The round that a table needs from time to time: publish, checkpoint, clean up, expire, vacuum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import orjson

from mainstem import observe
from mainstem.checkpoint import clean_log, due, write_checkpoint
from mainstem.deltalog.files import LogDirectory
from mainstem.errors import MainstemError, UsageError, told, worst_code
from mainstem.maintain import expire, vacuum
from mainstem.publish import publish
from mainstem.store import Row, Store

Task = Literal["publish", "checkpoint", "cleanup", "expire", "vacuum"]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one task: `done`, `nothing` to do, or `failed`; a failed one does not hold up the others."""

    task: Task
    outcome: Literal["done", "nothing", "failed"]
    said: str
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Maintained:
    """One round over one table."""

    name: str
    tasks: tuple[Done, ...]

    @property
    def exit_code(self) -> int:
        """0 where every task came off."""
        return worst_code(task.exit_code for task in self.tasks)


def maintain(
    store: Store,
    name: str,
    *,
    expire_days: float | None = None,
    vacuum: bool = False,
    retention_hours: float | None = None,
) -> Maintained:
    """Publish what is left, write the checkpoint that is due, clean the log up; forget and delete only what is asked.

    With `expire_days`, versions that are older are forgotten, as far as tags, leases and publishing let them; the
    newest one that is so old stays, because a moment right after it means it. With `vacuum`, data files go that nothing
    needs any more. Of a table whose log leads, only versions expire: the rest is for who leads. Safe to repeat.
    """
    if expire_days is not None and expire_days < 0:
        raise UsageError(f"expire_days is {expire_days:g}.", hint="Nothing was changed. Give 0 or more.")
    if retention_hours is not None and not vacuum:
        raise UsageError("a retention is for vacuum, which was not asked for.", hint="Nothing was changed.")
    leads = store.table(name)["authority"] == "catalog"
    tasks: list[Done] = []

    def run(task: Task, do: Callable[[], str | None]) -> None:
        try:
            said = do()
            tasks.append(Done(task, "nothing" if said is None else "done", said or ""))
        except Exception as error:  # noqa: BLE001  the others are done all the same
            observe.event("maintain.failed", level=30, table=name, task=task, error=told(error))
            code = error.exit_code if isinstance(error, MainstemError) else MainstemError.exit_code
            tasks.append(Done(task, "failed", told(error), code))

    with observe.span("maintain", table=name):
        if leads:
            run("publish", lambda: _publish(store, name))
            run("checkpoint", lambda: _checkpoint(store, name))
            run("cleanup", lambda: _clean(store, name))
        if expire_days is not None:
            run("expire", lambda: _expire(store, name, expire_days))
        if leads and vacuum:
            run("vacuum", lambda: _vacuum(store, name, retention_hours))
    observe.event("maintain.done", table=name, failed=sum(task.outcome == "failed" for task in tasks))
    return Maintained(name, tuple(tasks))


def _publish(store: Store, name: str) -> str | None:
    done = publish(store, name)
    versions = done.version - done.from_version
    return f"{versions} versions, up to {done.version}" if versions else None


def _checkpoint(store: Store, name: str) -> str | None:
    """The newest one that is due, unless the log has it or a later one: publishing may have failed to write it."""
    version = _due(store, store.table(name))
    if version is None:
        return None
    written = write_checkpoint(store, name, version)
    return f"{written.kind} checkpoint of version {written.version}, {written.add_files} files"


def _due(store: Store, table: Row) -> int | None:
    properties = orjson.loads(store.rows("table_properties", name=table["name"])[0]["properties"])
    published, floor = int(table["published_version"]), int(table["min_readable_version"])
    version = next((each for each in range(published, max(floor, 1) - 1, -1) if due(each, properties)), None)
    if version is None:
        return None
    newest = LogDirectory.open(table["location"]).list(from_version=version).latest_checkpoint(published)
    return version if newest is None else None


def _clean(store: Store, name: str) -> str | None:
    done = clean_log(store, name)
    return f"{len(done.files)} files, readable from version {done.boundary}" if done.files else None


def _expire(store: Store, name: str, days: float) -> str | None:
    table = store.table(name)
    with store.reading() as queries:
        now = queries.now()
        bounds = {"table_id": table["table_id"], "published": table["published_version"]}
        old = queries.scalar("version_not_after", **bounds, moment=now - timedelta(days=days))
        held = queries.scalar("kept_versions", table_id=table["table_id"], now=now)
    if old is None:
        return None
    done = expire(store, name, before_version=int(old if held is None else min(old, held)))
    return f"{done.rows} rows, readable from version {done.min_readable_version}" if done.rows else None


def _vacuum(store: Store, name: str, retention_hours: float | None) -> str | None:
    done = vacuum(store, name, retention_hours=retention_hours)
    return f"{done.files} files of {done.size_bytes} bytes" if done.files else None
