"""Mounts: made, read back, taken down."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import orjson

from mainstem import jvm, observe
from mainstem.checkpoint import NO_FILES, Choice, State, open_state, write_state
from mainstem.conflicts.features import without_writer_features
from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.files import LOG, LogDirectory
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.protocol import FENCE
from mainstem.deltalog.serialize import serialize_commit
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import VersionNotFound
from mainstem.model import Action, Protocol
from mainstem.mount.absolute import FullPaths
from mainstem.mount.checksum import Seen, checksum_name
from mainstem.mount.folder import Folder
from mainstem.mount.scratch import drop_folder, new_folder, remember_log
from mainstem.proposal import NO_VERSION
from mainstem.recorded import RecordedVersion, recorded
from mainstem.settings import Settings
from mainstem.snapshot import Snapshot
from mainstem.versions import to_millis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Purpose = Literal["read", "write"]


@dataclass
class Mount:
    """A Delta table at `uri` whose log is ours and whose data is the table's own. Closing it twice does no harm.

    `version` is the last version that it was given; what Delta commits here gets the next ones. `place` is where the
    log is, and `folder` what is removed at the end.
    """

    uri: str
    place: Location
    folder: Folder
    version: int
    choice: Choice
    spark: SparkSession
    links: Mapping[str, str] = field(default_factory=dict)
    full_paths: FullPaths | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: bool = False
    _sessions: list[SparkSession] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.show_to(self.spark)

    @property
    def sql_name(self) -> str:
        """How Spark's SQL names the table."""
        return f"delta.{'`' + self.uri.replace('`', '``') + '`'}"

    def show_to(self, spark: SparkSession) -> None:
        """Let a session find the mount: a stream runs its batches in a session of its own, and others have more."""
        if not any(known is spark for known in self._sessions):
            self._sessions.append(spark)
            for key, target in self.links.items():
                spark.conf.set(key, target)

    def staged(self, *, table_root: str, since: int | None = None) -> list[tuple[int, list[Action]]]:
        """The versions that Delta has committed here after `since`, the mount's own version if not given."""
        found: list[tuple[int, list[Action]]] = []
        version = (self.version if since is None else since) + 1
        log = LogDirectory(self.place)
        while True:
            try:
                data = log.read(version)
            except VersionNotFound:
                return found
            actions = parse_commit(data, file=commit_name(version), table_root=table_root)
            if self.full_paths is not None:
                actions = self.full_paths.back(actions, table_root=table_root)
            found.append((version, actions))
            version += 1

    def close(self) -> None:
        """Take it down: the scratch log, and what Spark and Delta remember of it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        jvm.forget_table(self.spark, self.uri)
        for spark in self._sessions:
            for key in self.links:
                spark.conf.unset(key)
        drop_folder(self.folder)


def mount_state(
    snapshot: Snapshot,
    *,
    location: str,
    choice: Choice,
    spark: SparkSession,
    purpose: Purpose = "read",
    staged: Iterable[tuple[int, Sequence[Action]]] = (),
) -> Mount:
    """The table at a snapshot's version, with the files of `choice` only, and staged versions on top of it."""
    settings = snapshot.store.engine.settings
    with observe.span("mount", table=snapshot.table, version=snapshot.version):
        folder = new_folder(settings, spark)
        try:
            log = _ScratchLog(folder, open_location(location), settings, purpose)
            with snapshot.reading() as queries:
                now_ms = to_millis(queries.now())
                info = recorded(queries, snapshot.table_id, first=snapshot.version, last=snapshot.version, shapes=())
            state = open_state(
                snapshot, now_ms=now_ms, choice=choice, tombstones="none", protocol=_open(snapshot.protocol)
            )
            seen = Seen()
            state = replace(log.rewritten(state), watcher=seen)
            written = write_state(state, writer=log.writer, kind="classic", spark=spark)
            log.writer.create(commit_name(snapshot.version), _first_line(snapshot, info))
            if seen.files == written.add_files:  # unless executors have written it
                log.writer.create(checksum_name(snapshot.version), seen.checksum(state))
            version = snapshot.version
            for version, actions in staged:
                log.commit(version, actions)
            return log.mounted(version, choice, spark)
        except BaseException:
            drop_folder(folder)
            raise


def new_place(*, spark: SparkSession, settings: Settings) -> Mount:
    """Where Delta can create a table, over nobody's data: a new table is its log alone."""
    folder = new_folder(settings, spark)
    place = (folder / "created").make().location
    return Mount(place.hadoop_path, place, folder, NO_VERSION, NO_FILES, spark)


def mount_changes(
    before: Snapshot | None, versions: Sequence[RecordedVersion], *, location: str, spark: SparkSession,
    settings: Settings,
) -> Mount:  # fmt: skip
    """The table with these versions as commits, on top of the one before them, for readers of its change feed."""
    if before is not None:
        staged = [(each.version, each.actions) for each in versions]
        return mount_state(before, location=location, choice=NO_FILES, spark=spark, staged=staged)
    folder = new_folder(settings, spark)
    try:
        log = _ScratchLog(folder, open_location(location), settings, "read")
        for each in versions:
            log.commit(each.version, each.actions)
        return log.mounted(versions[-1].version, NO_FILES, spark)
    except BaseException:
        drop_folder(folder)
        raise


def _open(protocol: Protocol) -> Protocol:
    """The protocol as Delta may write it: the fence keeps outside writers out, and here we are inside."""
    return without_writer_features(protocol, [FENCE])


def _unfenced(actions: Sequence[Action]) -> list[Action]:
    return [_open(action) if isinstance(action, Protocol) else action for action in actions]


def _first_line(snapshot: Snapshot, info: Sequence[RecordedVersion]) -> bytes:
    """The commit beside the checkpoint: Delta wants one, and takes the time of the version from it."""
    known = info[0].info if info else None
    body = orjson.loads(known.body) if known is not None else {"operation": "UNKNOWN"}
    body["inCommitTimestamp"] = to_millis(snapshot.timestamp)
    return orjson.dumps({"commitInfo": {**body, "timestamp": to_millis(snapshot.timestamp)}}) + b"\n"


class _ScratchLog:
    """The log of one mount while it is made: laid over the table's folder, or with paths in full.

    Without viewfs a log for writing lies inside of the table's folder: what Delta writes lands beside its log.
    """

    def __init__(self, folder: Folder, location: Location, settings: Settings, purpose: Purpose) -> None:
        self._folder = folder
        self._location = location
        self._full_paths: FullPaths | None = None
        table = folder / "table"
        if settings.mount == "absolute":
            inside = f"mainstem-{uuid4().hex}" if purpose == "write" else ""
            self._full_paths = FullPaths(location, inside=inside)
            if inside:
                table = Folder(location.local or location.uri) / inside
                remember_log(folder, table / LOG)
        (table / LOG).make()
        self.writer = LogWriter(table.location)

    def rewritten(self, state: State) -> State:
        return state if self._full_paths is None else replace(state, rewrite=self._full_paths.rows)

    def commit(self, version: int, actions: Sequence[Action]) -> None:
        shown = _unfenced(actions)
        if self._full_paths is not None:
            shown = self._full_paths.actions(shown)
        self.writer.create(commit_name(version), serialize_commit(shown))

    def mounted(self, version: int, choice: Choice, spark: SparkSession) -> Mount:
        place = self.writer.location
        if self._full_paths is not None:
            full = self._full_paths
            return Mount(place.hadoop_path, place, self._folder, version, choice, spark, full_paths=full)
        name = f"m{uuid4().hex}"  # a fresh one for every mount: Hadoop remembers file systems by it
        table = f"fs.viewfs.mounttable.{name}"
        links = {
            f"{table}.link./{LOG}": f"{place.hadoop_uri}/{LOG}",
            f"{table}.linkFallback": self._location.hadoop_uri,
        }
        return Mount(f"viewfs://{name}/", place, self._folder, version, choice, spark, links)
