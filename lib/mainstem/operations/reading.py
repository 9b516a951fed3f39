"""The rows of a table at a version, through mounts that are kept while the catalog is open."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from mainstem.checkpoint import ALL_FILES, matching
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import replay_plan
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.protocol import refuse_unreadable
from mainstem.errors import MainstemError, UsageError, VersionNotFound
from mainstem.leases import READING, Leases
from mainstem.mount import Mount, mount_changes, mount_state
from mainstem.recorded import recorded
from mainstem.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEPT = 32
# A DataFrame reads when it is used, not when it is made: what was handed out lately is not taken down, however many.
_KEPT_SECONDS = 3600.0


class _Key(NamedTuple):
    """What a mount shows. A version may be replaced by another one of its number, which has other content or time."""

    table_id: str
    version: int
    content_sha256: str | None
    committed_at: datetime
    what: str | None  # a predicate, or which changes
    oldest: int  # the first version that it needs

    @property
    def held(self) -> set[tuple[str, int]]:
        """The versions that must not expire while it is read."""
        return {(self.table_id, self.version), (self.table_id, self.oldest)}


@dataclass
class _Kept:
    """A mount, and when it was last handed out."""

    mount: Mount
    used: float
    pinned: bool = False


class Reader:
    """Keeps the mounts of one catalog, by table, version and predicate: the same read costs no second one.

    The last ones used stay, and all that were used within the hour, until the catalog is closed. For that hour a lease
    keeps expiry and vacuum off the version, unless one process alone may write the database at a time.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._mounts: OrderedDict[_Key, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._clock = clock
        self._leases = Leases("read", lasting=READING, clock=clock)

    def read(
        self, snapshot: Snapshot, *, location: str, published: int, where: str | None = None, pinned: bool = False
    ) -> DataFrame:
        """The rows at the snapshot's version; with `where`, those that meet it, from files that may match alone.

        All of a very large table is read from the published log, when that has the version: Delta would rebuild from
        a mount the very state that it has there. What is `pinned` stays until the catalog is closed.
        """
        refuse_unreadable(snapshot.protocol, table=snapshot.table, undone="Nothing was read.")
        spark = snapshot.session()
        # The session's zone may have changed since a mount was made, and with it what the predicate says.
        asked = where if where is None or snapshot.in_utc else f"{where} in another zone"
        key = _key(snapshot, asked, oldest=snapshot.version)
        self._hold(snapshot, key)
        most = snapshot.store.engine.settings.driver_files
        if where is None and snapshot.version <= published and snapshot.has_more_files_than(most):
            place = open_location(location)
            if _log_answers(place, snapshot.version):
                return spark.read.format("delta").option("versionAsOf", snapshot.version).load(place.hadoop_path)

        def build() -> Mount:
            choice = ALL_FILES if where is None else matching(where, snapshot)
            return mount_state(snapshot, location=location, choice=choice, spark=spark)

        mount = self._mounted(key, build, pinned=pinned)
        frame = spark.read.format("delta").load(mount.uri)
        return frame if where is None else frame.where(where)

    def changes(self, snapshot: Snapshot, *, location: str, from_version: int) -> DataFrame:
        """The change feed from a version to the snapshot's, with Delta's own columns."""
        if not 0 <= from_version <= snapshot.version:
            raise UsageError(
                f"changes from version {from_version} to {snapshot.version} are none.", hint="Give an earlier start."
            )
        refuse_unreadable(snapshot.protocol, table=snapshot.table, undone="Nothing was read.")
        key = _key(snapshot, f"changes {from_version}", oldest=max(0, from_version - 1))
        self._hold(snapshot, key)
        mount = self._mounted(key, lambda: _changes_mount(snapshot, location, from_version))
        reader = snapshot.session().read.format("delta").option("readChangeFeed", "true")
        return reader.option("startingVersion", from_version).option("endingVersion", snapshot.version).load(mount.uri)

    def _hold(self, snapshot: Snapshot, key: _Key) -> None:
        for table_id, version in sorted(key.held):
            self._leases.hold(snapshot.store, table_id, version)

    def _mounted(self, key: _Key, build: Callable[[], Mount], *, pinned: bool = False) -> Mount:
        with self._lock:
            if (kept := self._mounts.get(key)) is not None:
                return self._used(key, kept, pinned)
        built = build()
        with self._lock:
            if (kept := self._mounts.get(key)) is None:
                kept = self._mounts[key] = _Kept(built, self._clock())
            found, stale = self._used(key, kept, pinned), self._stale()
        # Another thread may have been quicker; what it was given stays.
        if built is not found:
            built.close()
        self._let_go(stale)
        return found

    def _used(self, key: _Key, kept: _Kept, pinned: bool) -> Mount:
        kept.used, kept.pinned = self._clock(), kept.pinned or pinned
        self._mounts.move_to_end(key)
        return kept.mount

    def _stale(self) -> list[tuple[_Key, Mount]]:
        oldest = self._clock() - _KEPT_SECONDS
        most = max(0, len(self._mounts) - _KEPT)
        gone = [key for key, kept in self._mounts.items() if kept.used < oldest and not kept.pinned][:most]
        return [(key, self._mounts.pop(key).mount) for key in gone]

    def _let_go(self, gone: Iterable[tuple[_Key, Mount]]) -> None:
        held: set[tuple[str, int]] = set()
        for key, mount in gone:
            held |= key.held
            mount.close()
        with self._lock:
            held.difference_update(*(key.held for key in self._mounts))
        self._leases.drop(sorted(held))

    def forget(self, table_id: str) -> None:
        """Take the mounts of one table down: they hold what its rows no longer say."""
        with self._lock:
            gone = [(key, self._mounts.pop(key).mount) for key in list(self._mounts) if key.table_id == table_id]
        self._let_go(gone)

    def close(self) -> None:
        """Take all mounts down."""
        with self._lock:
            mounts, self._mounts = [kept.mount for kept in self._mounts.values()], OrderedDict()
        for mount in mounts:
            mount.close()
        self._leases.drop()


def _log_answers(place: Location, version: int) -> bool:
    """Whether the published log still has what this version is made of: its clean-up may have taken some of it."""
    try:
        listing = LogDirectory(place).list()
        return listing.commit(version) is not None and replay_plan(listing).first <= version
    except MainstemError:
        return False


def _key(snapshot: Snapshot, what: str | None, *, oldest: int) -> _Key:
    return _Key(snapshot.table_id, snapshot.version, snapshot.content_sha256, snapshot.timestamp, what, oldest)


def _changes_mount(snapshot: Snapshot, location: str, from_version: int) -> Mount:
    with snapshot.reading() as queries:
        versions = recorded(queries, snapshot.table_id, first=from_version, last=snapshot.version)
    if [each.version for each in versions] != list(range(from_version, snapshot.version + 1)) or any(
        each.kind != "commit" for each in versions
    ):
        raise VersionNotFound(
            f"the changes of {snapshot.table} from version {from_version} on are not all known.",
            hint="The commits before its first checkpoint were gone when it was imported.",
        )
    before = None
    if from_version > 0:
        before = open_snapshot(
            snapshot.store, snapshot.table, snapshot.table_id, session=snapshot.session, version=from_version - 1
        )
    settings = snapshot.store.engine.settings
    return mount_changes(before, versions, location=location, spark=snapshot.session(), settings=settings)
