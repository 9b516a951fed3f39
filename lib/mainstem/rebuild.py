"""A table's `_delta_log` from the catalog's rows, for the day on which the log is gone or a copy of it is wanted.

The other way round, the catalog from the log, is an import that is verified: see `Catalog.rebuild_table`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import obstore
import orjson
from obstore.exceptions import BaseError

from mainstem import observe
from mainstem.checkpoint import due, open_state, write_state
from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.files import LOG, LogDirectory
from mainstem.deltalog.history import ENABLED
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import Checkpoint, commit_name
from mainstem.deltalog.protocol import refuse_unwritable
from mainstem.deltalog.serialize import serialize_commit
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import CorruptCatalog, CorruptLog, UnsupportedFeature, UsageError, mask
from mainstem.importer import Check, Imported, no_check
from mainstem.model import AddFile, RemoveFile
from mainstem.publish import publish
from mainstem.recorded import RecordedVersion, recorded
from mainstem.snapshot import Snapshot, no_session, open_snapshot
from mainstem.store import Row, Store
from mainstem.versions import to_millis

_BATCH = 100


@dataclass(frozen=True, slots=True)
class RebuiltLog:
    """A log that was written anew and read again. It can be read from `first_version` to `version`.

    `exact` commits have the bytes that were committed. The others were imported, and say the same in another order of
    their lines or keys; or they stand beside the first checkpoint, where the log begins later than the table.
    """

    name: str
    location: str
    first_version: int
    version: int
    commits: int
    exact: int
    checkpoints: tuple[int, ...]
    files: int


@dataclass(frozen=True, slots=True)
class _Written:
    """A commit file that was written, by the sha256 of its bytes; `exact` if it is that of the commit."""

    version: int
    sha256: str
    exact: bool


def rebuild_log(store: Store, name: str, *, to: str | None = None, check: Check = no_check) -> RebuiltLog:
    """Write the whole log of a table from the catalog's rows, and read it again: bytes, versions and live files.

    Into the table's own folder, whose `_delta_log` must be empty or gone, or into another folder that must be empty.
    It has every version that the catalog can read; where older ones have expired, it begins with a checkpoint. `check`
    may have a second opinion on it. Raises `UsageError` with nothing written if the folder is not empty.
    """
    table = store.table(name)
    own = to is None or _same_place(to, table["location"])
    place = _empty_folder(table["location"] if to is None else to, log_only=own)
    with observe.span("rebuild.log", table=name):
        log = _Rebuild(store, table, place)
        log.write()
        live = log.verify()
        location = str(place.local) if place.local is not None else place.uri
        first, last = log.written[0].version, log.written[-1].version
        with store.reading() as queries:
            check(Imported(name, table["table_id"], location, first, last, 0, live), queries)
        if own:
            _now_published(store, table, log.written)
    exact = sum(each.exact for each in log.written)
    observe.event("rebuild.log_done", table=name, location=location, version=last, exact=exact)
    return RebuiltLog(name, location, first, last, len(log.written), exact, tuple(log.checkpoints), live)


class _Rebuild:
    """One log on its way into an empty folder."""

    def __init__(self, store: Store, table: Row, place: Location) -> None:
        self.store, self.table, self.place = store, table, place
        self.writer = LogWriter(place)
        self.head = int(table["current_version"])
        self.written: list[_Written] = []
        self.checkpoints: list[int] = []

    def write(self) -> None:
        """Everything, in an order in which any part of it is a log that was shorter."""
        first = self._first()
        if first is not None:
            snapshot = self._snapshot(first)
            refuse_unwritable(snapshot.protocol, table=self.table["name"])
            self._checkpoint(snapshot)
            self._put(self._recorded(first, first)[0], snapshot)
        begin = self._floor if first is None else first + 1
        for start in range(begin, self.head + 1, _BATCH):
            for version in self._recorded(start, min(start + _BATCH - 1, self.head)):
                self._put(version)
        self._newest_checkpoint()

    @property
    def _floor(self) -> int:
        return int(self.table["min_readable_version"])

    def _first(self) -> int | None:
        """The version whose checkpoint the log must begin with; None if it can begin with the table's first commit."""
        bounds = {"table_id": self.table["table_id"], "first": self._floor, "last": self.head}
        rows = self.store.rows("versions_between", **bounds)
        bridged = [row["version"] for row in rows if row["kind"] == "checkpoint"]
        first = max(bridged, default=self._floor)
        have = [row["version"] for row in rows if row["version"] >= first]
        if have != list(range(first, self.head + 1)):
            raise CorruptCatalog(
                f"the catalog lacks some of the versions {first} to {self.head} of {self.table['name']}.",
                hint=f"Nothing was written. Restore the database from a backup; see: mainstem validate "
                f"{self.table['name']}",
                table=self.table["name"],
            )
        return first if first > 0 or bridged else None

    def _recorded(self, first: int, last: int) -> list[RecordedVersion]:
        with self.store.reading() as queries:
            return recorded(queries, self.table["table_id"], first=first, last=last)

    def _snapshot(self, version: int) -> Snapshot:
        return open_snapshot(
            self.store, self.table["name"], self.table["table_id"], session=no_session, version=version
        )

    def _put(self, version: RecordedVersion, beside: Snapshot | None = None) -> None:
        """Write a commit file; `beside` the checkpoint of its version, it need not say more than who and when."""
        data = serialize_commit(version.actions)
        exact = version.kind == "commit" and sha256(data).hexdigest() == version.content_sha256
        if not exact and beside is not None:
            data = _first_line(version, beside)
        elif not exact and version.txn_id is not None:
            version.commit_file(table=self.table["name"])  # raises and says so: the rows are not what was committed
        if not self.writer.create(commit_name(version.version), data):
            raise UsageError(
                f"somebody else writes {self.place.uri}/{LOG} at the same time.",
                hint="Stop that, empty the folder, and do it again.",
                table=self.table["name"],
            )
        if self.place.local is not None:
            # Without in-commit timestamps the time of the file is the time of the version, for every engine.
            moment = to_millis(version.committed_at) * 1_000_000
            os.utime(self.place.local / LOG / commit_name(version.version), ns=(moment, moment))
        self.written.append(_Written(version.version, sha256(data).hexdigest(), exact))

    def _checkpoint(self, snapshot: Snapshot) -> None:
        with self.store.reading() as queries:
            now_ms = to_millis(queries.now())
        write_state(open_state(snapshot, now_ms=now_ms), writer=self.writer)
        self.checkpoints.append(snapshot.version)

    def _newest_checkpoint(self) -> None:
        """The one that the table asks for, so that its readers need not go through all commits."""
        [row] = self.store.rows("table_properties", name=self.table["name"])
        properties = orjson.loads(row["properties"])
        first = max([self.written[0].version, *self.checkpoints])
        version = next((each for each in range(self.head, first, -1) if due(each, properties)), None)
        if version is not None:
            snapshot = self._snapshot(version)
            try:
                refuse_unwritable(snapshot.protocol, table=self.table["name"])
            except UnsupportedFeature:
                return  # the commits are all there; who can write the table makes its checkpoints
            self._checkpoint(snapshot)

    def verify(self) -> int:
        """Read all of it again; how many files are live. Raises if it is not what the catalog has."""
        log = LogDirectory(self.place)
        listing = log.list()
        found = [(commit.version, sha256(log.read(commit.version)).hexdigest()) for commit in listing.commits]
        if found != [(each.version, each.sha256) for each in self.written]:
            raise self._differs("its commit files are not those that were written")
        ours = _named(self._snapshot(self.head))
        whole = [] if self.written[0].version in self.checkpoints else [None]
        for start in (*whole, *listing.checkpoints):
            theirs = set(_replayed(log, start, self.head))
            if theirs != ours:
                raise self._differs(f"it has {len(theirs)} live files, and the catalog has {len(ours)}")
        return len(ours)

    def _differs(self, what: str) -> CorruptLog:
        return CorruptLog(
            f"the log that was rebuilt at {self.place.uri} does not say what the catalog says: {what}.",
            hint="Do not use it. Please report this table.",
            table=self.table["name"],
        )


def _replayed(log: LogDirectory, start: Checkpoint | None, last: int) -> Iterator[tuple[str, str | None]]:
    """The files that are live after the last commit, from a checkpoint on, or from the first commit."""
    live: dict[bytes, tuple[str, str | None]] = {}
    first = 0
    if start is not None:
        first = start.version + 1
        live = {each.file_key: (each.path, each.dv_id) for each in read_checkpoint(log, start) if type(each) is AddFile}
    for version in range(first, last + 1):
        for action in parse_commit(log.read(version), file=commit_name(version), table_root=log.root):
            if type(action) is AddFile:
                live[action.file_key] = (action.path, action.dv_id)
            elif type(action) is RemoveFile:
                live.pop(action.file_key, None)
    yield from live.values()


def _named(snapshot: Snapshot) -> set[tuple[str, str | None]]:
    rows = snapshot.to_arrow(columns=["path", "dv_id"])
    return set(zip(rows.column("path").to_pylist(), rows.column("dv_id").to_pylist(), strict=True))


def _first_line(version: RecordedVersion, snapshot: Snapshot) -> bytes:
    """The commit beside a checkpoint that the log begins with: Delta wants one, and takes the time from it."""
    if version.info is not None:
        return serialize_commit([version.info])
    time = to_millis(snapshot.timestamp)
    own = {"inCommitTimestamp": time} if snapshot.properties.get(ENABLED, "false").lower() == "true" else {}
    return orjson.dumps({"commitInfo": {**own, "timestamp": time, "operation": "UNKNOWN"}}) + b"\n"


def _same_place(one: str, other: str) -> bool:
    def plain(text: str) -> str:
        local = "://" not in text and not text.startswith("file:")
        return str(Path(text).absolute()) if local else text.rstrip("/")

    return plain(one) == plain(other)


def _empty_folder(location: str, *, log_only: bool) -> Location:
    """The folder, made if it is not there. Raises unless it is empty, or its `_delta_log` is, where that is all."""
    if "://" not in location and not location.startswith("file:"):
        Path(location).mkdir(parents=True, exist_ok=True)
    place = open_location(location)
    where = f"{place.uri}/{LOG}" if log_only else place.uri
    if LogDirectory(place).files() or (not log_only and _holds_anything(place)):
        raise UsageError(
            f"{where} is not empty: a log is only rebuilt where there is none.",
            hint="Nothing was written. Move what is there away, or give an empty folder.",
            location=place.uri,
        )
    return place


def _holds_anything(place: Location) -> bool:
    try:
        if place.local is not None:
            return any(place.local.iterdir())
        return any(page for page in obstore.list(place.store, chunk_size=1))
    except (BaseError, OSError) as error:
        raise UsageError(
            f"{place.uri} cannot be listed: {mask(str(error))}", hint="Check the credentials of the store."
        ) from error


def _now_published(store: Store, table: Row, written: Sequence[_Written]) -> None:
    """The table's own log is what was just written: all of it is published, and the files are those to compare with."""
    with store.writing() as queries:
        queries.row("head_lock", table_id=table["table_id"])
        for each in written:
            if not each.exact:
                bounds = {"table_id": table["table_id"], "version": each.version}
                queries.change("version_sha256", **bounds, content_sha256=each.sha256)
    if table["authority"] == "catalog":
        publish(store, table["name"])
