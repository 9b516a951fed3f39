"""Log cleanup: expired commits and checkpoints leave a table's own log, which stays readable from a checkpoint on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mainstem import observe
from mainstem.checkpoint import expiry
from mainstem.checkpoint import properties as said
from mainstem.checkpoint.table import PROTECTION_FEATURE, no_session, published_table
from mainstem.checkpoint.twin import write_twin
from mainstem.deltalog.checkpoints import checkpoint_sidecars
from mainstem.deltalog.files import SIDECARS, LogDirectory
from mainstem.deltalog.names import Checkpoint, LogFile, classify
from mainstem.deltalog.protocol import supports
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import CorruptLog, VersionNotFound
from mainstem.snapshot import open_snapshot
from mainstem.store import Row, Store
from mainstem.versions import to_millis


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What a cleanup does, or did. `boundary` is the version from which on the log can be read; None if nothing goes.

    `kept_for` says why nothing goes, or why no more does; `protected` that no checkpoint may be made meanwhile.
    """

    boundary: int | None
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    kept_for: str | None = None
    protected: bool = False


def clean_log(
    store: Store, table: str, *, writer: LogWriter | None = None, now: datetime | None = None, dry_run: bool = False
) -> Cleanup:
    """Delete what has expired in the table's log by Delta's rules and `delta.logRetentionDuration`.

    The log is cut at a complete checkpoint of a published version: that checkpoint, the commit of its version and
    everything later stay, and so does every version that a tag names or an unexpired lease holds. Killed at any moment,
    it leaves a log that is readable from there on, and doing it again completes it. Catalog rows are not touched. Where
    something goes and the newest checkpoint is a v2 one, it gets a classic twin, as Delta gives it.
    """
    row = published_table(store, table)
    log = LogDirectory((writer := writer or LogWriter.open(row["location"])).location)
    plan = _plan(store, table, row, log, now)
    if not dry_run:
        if plan.files and not plan.protected:
            write_twin(writer, log.list(), published=row["published_version"])
        # The oldest first: what is left at any moment is a log that was cut earlier.
        writer.delete([name for name in plan.files if not name.startswith(f"{SIDECARS}/")])
        writer.delete([name for name in plan.files if name.startswith(f"{SIDECARS}/")])
        for folder in plan.folders:
            writer.discard(folder)
        observe.event("log.cleaned", table=table, boundary=plan.boundary, files=len(plan.files))
    return plan


def _plan(store: Store, table: str, row: Row, log: LogDirectory, now: datetime | None) -> Cleanup:
    table_id, published = row["table_id"], row["published_version"]
    snapshot = open_snapshot(store, table, table_id, session=no_session, version=published)
    if not said.cleans_log(snapshot.properties):
        return Cleanup(None, kept_for=f"the table property {said.LOG_CLEANUP} is false")
    retention = said.retention_ms(snapshot.properties, said.LOG_RETENTION)
    assert retention is not None
    with store.reading() as queries:
        now = now or queries.now()
        moments = expiry.moments(now, retention)
        # The newest version at that midnight is still needed by who travels to a moment right after it.
        expired = queries.scalar("version_not_after", table_id=table_id, published=published, moment=moments.log)
        held = queries.scalar("kept_versions", table_id=table_id, now=now)
    if expired is None:
        return Cleanup(None, kept_for=f"no version is older than {moments.log.isoformat()}")
    files = log.files()
    at_most, kept_for = expired, None
    if held is not None and held < expired:
        at_most, kept_for = held, f"a tag or a lease holds version {held}"
    boundary = _boundary(log, files, at_most, published)
    if boundary is None:
        return Cleanup(None, kept_for=kept_for or f"no checkpoint up to version {at_most} makes the log readable")
    gone = expiry.expired(files, boundary.version)
    before_ms = to_millis(moments.loose)
    loose = _loose_sidecars(log, files, gone, before_ms)
    protected = supports(snapshot.protocol, PROTECTION_FEATURE)
    folders = tuple(expiry.loose_folders(files, before_ms))
    return Cleanup(boundary.version, (*gone, *loose), folders, kept_for, protected)


def _boundary(log: LogDirectory, files: Sequence[LogFile], at_most: int, published: int) -> Checkpoint | None:
    """The newest checkpoint that the log can be cut at: it opens, and its sidecars are there."""
    names = {file.name for file in files}
    listing = classify(file for file in files if "/" not in file.name)
    for checkpoint in expiry.candidates(listing, at_most=at_most, published=published):
        try:
            sidecars = checkpoint_sidecars(log, checkpoint)
        except (CorruptLog, VersionNotFound):
            continue
        if all(f"{SIDECARS}/{name}" in names for name in sidecars):
            return checkpoint
    return None


def _loose_sidecars(log: LogDirectory, files: Sequence[LogFile], gone: Sequence[str], before_ms: int) -> list[str]:
    """Sidecars that nothing will name any more; none, as long as a checkpoint that stays cannot be read."""
    if not any(file.name.startswith(f"{SIDECARS}/") for file in files):
        return []
    left = set(gone)
    staying = classify(file for file in files if "/" not in file.name and file.name not in left)
    try:
        referenced = {name for checkpoint in staying.checkpoints for name in checkpoint_sidecars(log, checkpoint)}
    except (CorruptLog, VersionNotFound):
        return []
    return expiry.loose_sidecars(files, referenced, before_ms)
