"""Mounts: made, read back, taken down."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import uuid4

import orjson

from mainstem import jvm, observe
from mainstem.checkpoint import NO_FILES, Choice, State, open_state, write_state
from mainstem.conflicts.features import without_writer_features
from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.protocol import FENCE
from mainstem.deltalog.serialize import serialize_commit
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import UnsupportedFeature
from mainstem.model import Action, Protocol
from mainstem.mount.absolute import absolute_actions, absolute_rows
from mainstem.mount.scratch import drop_folder, new_folder
from mainstem.proposal import NO_VERSION
from mainstem.recorded import RecordedVersion, recorded
from mainstem.settings import Settings
from mainstem.snapshot import Snapshot
from mainstem.versions import to_millis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = "_delta_log"
_ASCII = re.compile(r"[\x00-\x7f]+")
# Hadoop's names for the stores that obstore knows by others.
_HADOOP = {"s3": "s3a", "s3n": "s3a", "az": "wasbs"}


@dataclass
class Mount:
    """A Delta table at `uri` whose log is ours and whose data is the table's own. Closing it twice does no harm.

    `version` is the last version that it was given; what Delta commits here gets the next ones.
    """

    uri: str
    folder: Path
    version: int
    choice: Choice
    spark: SparkSession
    links: Mapping[str, str] = field(default_factory=dict)
    table: str = "table"
    writable: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: bool = False
    _sessions: list[SparkSession] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.show_to(self.spark)

    @property
    def log(self) -> Path:
        """The folder of the scratch log."""
        return self.folder / self.table / _LOG

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

    def require_writable(self, table: str) -> None:
        """Raise `UnsupportedFeature` if what Delta writes here would not land in the table."""
        if not self.writable:
            raise UnsupportedFeature(
                f"{table} cannot be written through a mount of absolute paths: new files would not land in the table.",
                hint="Nothing was written. Set spark.mainstem.mount to viewfs.",
                table=table,
            )

    def staged(self, *, table_root: str, since: int | None = None) -> list[tuple[int, list[Action]]]:
        """The versions that Delta has committed here after `since`, the mount's own version if not given."""
        found = []
        version = (self.version if since is None else since) + 1
        while (file := self.log / commit_name(version)).exists():
            found.append((version, parse_commit(file.read_bytes(), file=file.name, table_root=table_root)))
            version += 1
        return found

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
    staged: Iterable[tuple[int, Sequence[Action]]] = (),
) -> Mount:
    """The table at a snapshot's version, with the files of `choice` only, and staged versions on top of it."""
    settings = snapshot.store.engine.settings
    with observe.span("mount", table=snapshot.table, version=snapshot.version):
        folder = new_folder(settings, spark)
        try:
            place = open_location(location)
            log = _ScratchLog(folder, place, absolute=settings.mount == "absolute")
            with snapshot.reading() as queries:
                now_ms = to_millis(queries.now())
                info = recorded(queries, snapshot.table_id, first=snapshot.version, last=snapshot.version, shapes=())
            state = open_state(
                snapshot, now_ms=now_ms, choice=choice, tombstones="none", protocol=_open(snapshot.protocol)
            )
            write_state(log.rewritten(state), writer=log.writer, kind="classic", spark=spark)
            log.writer.create(commit_name(snapshot.version), _first_line(snapshot, info))
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
    created = folder / "created"
    return Mount(f"file:{created}", folder, NO_VERSION, NO_FILES, spark, table=created.name)


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
        log = _ScratchLog(folder, open_location(location), absolute=settings.mount == "absolute")
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
    """The log of one mount while it is made: over the table's folder, or beside it with paths in full."""

    def __init__(self, folder: Path, location: Location, *, absolute: bool) -> None:
        self.writer = LogWriter(open_location(str(folder / "table")))
        self._folder = folder
        self._location = location
        self._root = _raw_root(location) if absolute else None

    def rewritten(self, state: State) -> State:
        root = self._root
        return state if root is None else replace(state, rewrite=lambda rows: absolute_rows(rows, root))

    def commit(self, version: int, actions: Sequence[Action]) -> None:
        shown = _unfenced(actions) if self._root is None else absolute_actions(_unfenced(actions), self._root)
        self.writer.create(commit_name(version), serialize_commit(shown))

    def mounted(self, version: int, choice: Choice, spark: SparkSession) -> Mount:
        if self._root is not None:
            return Mount(f"file:{self._folder / 'table'}", self._folder, version, choice, spark, writable=False)
        name = f"m{uuid4().hex}"  # a fresh one for every mount: Hadoop remembers file systems by it
        table = f"fs.viewfs.mounttable.{name}"
        links = {
            f"{table}.link./{_LOG}": hadoop_uri(open_location(str(self._folder / "table" / _LOG))),
            f"{table}.linkFallback": hadoop_uri(self._location),
        }
        return Mount(f"viewfs://{name}/", self._folder, version, choice, spark, links)


def hadoop_uri(location: Location) -> str:
    """A location as Hadoop wants it for a link: percent-encoded, and a local one with a single slash."""
    if location.local is not None:
        return f"file:{quote(str(location.local))}"
    scheme, _, rest = location.uri.partition("://")
    return f"{_HADOOP.get(scheme, scheme)}://{rest}"


def hadoop_path(location: Location) -> str:
    """A location as Spark's readers want it, who encode it themselves."""
    return hadoop_uri(location) if location.local is None else str(location.local)


def _raw_root(location: Location) -> str:
    """A table's folder before its files' paths: encoded, but for what is not ASCII, on which UPDATE and MERGE fail."""
    if location.local is None:
        return hadoop_uri(location)
    return f"file:{_ASCII.sub(lambda found: quote(found[0]), str(location.local))}"
