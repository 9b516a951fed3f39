"""A Delta log into the catalog: the whole readable history of one table, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from mainstem import observe
from mainstem.chronicle import Chronicle
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import ReplayPlan, replay_plan
from mainstem.deltalog.names import Listing
from mainstem.driverload import DriverLoad, Progress
from mainstem.engines import EngineError, Outcome
from mainstem.errors import UsageError
from mainstem.naming import require_name
from mainstem.places import refuse_second_name
from mainstem.snapshot import keep_image
from mainstem.sparkload import SparkLoad
from mainstem.store import Queries, Row, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORGET = (
    "table_forget_images", "table_forget_adds", "table_forget_removes", "table_forget_txns", "table_forget_domains",
    "table_forget_metadata", "table_forget_protocol", "table_forget_cdc", "table_forget_other", "table_forget_mirror",
    "table_forget_versions",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought in; with `dry_run`, what it would bring in."""

    name: str
    table_id: str
    location: str
    first_version: int
    version: int
    actions: int
    files: int
    dry_run: bool = False


Check = Callable[[Imported, Queries], None]


def no_check(imported: Imported, queries: Queries) -> None:
    """Where there is no second opinion to be had."""


def import_table(
    store: Store,
    location: str,
    *,
    name: str,
    force: bool = False,
    up_to_version: int | None = None,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
    check: Check = no_check,
    spark: SparkSession | None = None,
) -> Imported:
    """Read the log at `location` and put it into the catalog as `name`: all of it, or nothing and no row.

    `force` replaces what the catalog has under that name, unless a tag would then name other content. `check` may look
    at the result before it is committed and refuse it by raising. With `spark`, a log larger than the setting
    `import_bytes` is read by the executors.
    """
    require_name(name)
    log = LogDirectory.open(location)
    listing = log.list()
    log.last_checkpoint_hint(listing)  # nothing depends on it; one that is wrong is told, because Delta reads it
    plan = replay_plan(listing, up_to=up_to_version)
    place = str(log.location.local) if log.location.local is not None else log.location.uri
    _replaceable(store.row("table_by_name", name=name), name, force=force)
    refuse_second_name(store.rows("tables_all"), place, name=name, leads=False)
    with (
        observe.span("import", table=name, versions=plan.last - plan.first + 1),
        _load(store, log, listing, plan, progress, None if dry_run else spark) as load,
    ):
        if dry_run:
            load.rehearse()
            return _result(load, name, "", place, dry_run=True)
        try:
            with store.writing() as queries:
                known = _replaceable(_locked(queries, name), name, force=force)
                refuse_second_name(queries.rows("tables_all"), place, name=name, leads=False)
                tagged = [] if known is None else queries.rows("tagged_versions", table_id=known["table_id"])
                imported = _write(queries, load, name, place, known)
                _refuse_moved_tags(queries, imported, tagged)
                check(imported, queries)
        except EngineError as error:
            if error.outcome is Outcome.LOST:
                raise UsageError(
                    f"the table {name} was imported by somebody else at the same time.",
                    hint=f"Nothing was written by this one. See: mainstem show {name}",
                ) from error
            raise
        keep_image(store, name, imported.table_id)
        return imported


@contextmanager
def _load(
    store: Store,
    log: LogDirectory,
    listing: Listing,
    plan: ReplayPlan,
    progress: Progress,
    spark: SparkSession | None,
) -> Iterator[DriverLoad | SparkLoad]:
    chronicle = Chronicle(log.root, plan)
    newest = listing.latest_checkpoint(plan.last)
    checked = newest if newest is not None and newest.version > plan.first else None
    if spark is not None and _log_bytes(plan) > store.engine.settings.import_bytes:
        load = SparkLoad(log, plan, checked, progress, chronicle, store, spark)
        try:
            load.stage()
            yield load
        finally:
            load.drop()
        return
    yield DriverLoad(log, plan, checked, progress, chronicle)


def _log_bytes(plan: ReplayPlan) -> int:
    files = [commit.file for commit in plan.commits] + list(plan.checkpoint.files if plan.checkpoint else ())
    return sum(file.size_bytes for file in files)


def _locked(queries: Queries, name: str) -> Row | None:
    """The table as it is once nobody else can change it; none, if there is none of that name."""
    known = queries.row("table_by_name", name=name)
    if known is None:
        return None
    queries.row("head_lock", table_id=known["table_id"])
    return queries.row("table_by_name", name=name)  # whoever held the lock may have moved it


def _replaceable(known: Row | None, name: str, *, force: bool) -> Row | None:
    if known is None:
        return None
    if not force:
        raise UsageError(
            f"the catalog already has a table {name} (version {known['current_version']} of {known['location']}).",
            hint=f"Bring it up to date by: mainstem follow {name}. Or import it anew by --force.",
        )
    unpublished = known["current_version"] - known["published_version"]
    if known["authority"] == "catalog" and unpublished > 0:
        raise UsageError(
            f"the catalog leads {name} and has {unpublished} commits that are not published: they exist nowhere else.",
            hint=f"Publish them first: mainstem publish {name}",
        )
    return known


def _write(queries: Queries, load: DriverLoad | SparkLoad, name: str, location: str, known: Row | None) -> Imported:
    table_id = known["table_id"] if known else str(uuid4())
    if known is None:
        # Protocol and properties are known at the end, the row is needed first: all others refer to it.
        queries.change(
            "table_insert", table_id=table_id, name=name, location=location, authority="log",
            created_at=queries.now(), protocol_min_reader=1, protocol_min_writer=1, properties="{}",
        )  # fmt: skip
    else:
        for statement in _FORGET:
            queries.change(statement, table_id=table_id)
        queries.change("table_move", table_id=table_id, location=location)
    load.write(queries, table_id)
    queries.change("table_describe", table_id=table_id, **load.chronicle.described())
    queries.change(
        "head_insert" if known is None else "head_reset", table_id=table_id, current_version=load.plan.last,
        published_version=load.plan.last, min_readable_version=load.chronicle.floor,
    )  # fmt: skip
    return _result(load, name, table_id, location)


def _refuse_moved_tags(queries: Queries, imported: Imported, tagged: list[Row]) -> None:
    """A tag never moves: what it names must be there afterwards, with the same content."""
    now = {row["version"]: row for row in queries.rows("tagged_versions", table_id=imported.table_id)} if tagged else {}
    for row in tagged:
        version, after = row["version"], now[row["version"]]
        gone = after["kind"] is None or version < imported.first_version
        # Of a version whose own row was lost nothing is known that could differ.
        if gone or (row["kind"] is not None and _content(row) != _content(after)):
            raise UsageError(
                f"the tag {row['tag']!r} names version {version} of {imported.name}, which would "
                + ("be gone." if gone else "have another content."),
                hint=f"Nothing was changed. Take the tag away first: mainstem tag {row['tag']} --delete",
                table=imported.name,
                tag=row["tag"],
            )


def _content(row: Row) -> object:
    """What tells a version from another one of its number; where a checkpoint bridged it, no commit has its bytes."""
    return row["content_sha256"] or (row["kind"], row["committed_at"])


def _result(
    load: DriverLoad | SparkLoad, name: str, table_id: str, location: str, *, dry_run: bool = False
) -> Imported:
    floor, last = load.chronicle.floor, load.plan.last
    return Imported(name, table_id, location, floor, last, load.actions, load.files, dry_run)
