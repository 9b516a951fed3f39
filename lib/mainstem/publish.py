"""Ratified versions into `_delta_log`, in their order, each once: from there on every Delta engine sees them.

Any number of publishers may run at once and may be killed anywhere. A file that is there with our bytes is done; one
with other bytes is a foreign commit: nothing is overwritten, and the table takes no commit until it is resolved.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Literal, NamedTuple

from mainstem import observe
from mainstem.checkpoint import keep_up
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import CorruptCatalog, ForeignCommit, MainstemError
from mainstem.recorded import recorded
from mainstem.store import Row, Store, as_utc, statement

# So many versions are read and written between two looks at the catalog: fewer, if they have more actions than that.
_BATCH, _MOST_ACTIONS = 100, 100_000
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 30.0
_LONGEST_ERROR = 2000


class Waiting(NamedTuple):
    """A version on its way into the log; its bytes are made when its turn comes."""

    version: int
    committed_at: datetime
    data: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Published:
    """How far the log has come: the version before and after, and how many files this publisher wrote itself."""

    name: str
    from_version: int
    version: int
    written: int


@dataclass(frozen=True, slots=True)
class Lag:
    """What a table has not published yet, for how long, and what came of the last attempt.

    `status` and `attempts` are those of the oldest version that waits; `idle` is how many seconds ago they changed.
    """

    name: str
    versions: int
    seconds: float
    status: str
    attempts: int
    idle: float
    last_error: str | None
    foreign_version: int | None


def publish(store: Store, name: str, *, progress: Callable[[int, int], None] = lambda done, total: None) -> Published:
    """Write everything that is ratified and not yet in the log. Safe to repeat, to kill, and to run several times.

    A store that does not take a file is asked again with growing waits, up to the setting `publish_attempts`; then the
    failure stands in `dl_mirror_status` and is raised.
    """
    with observe.span("publish", table=name):
        done = write_waiting(store, name, progress=progress)
        if done.version > done.from_version:
            keep_up(store, name, first=done.from_version + 1, last=done.version)
        observe.event("publish.done", table=name, from_version=done.from_version, version=done.version)
        return done


def write_waiting(
    store: Store,
    name: str,
    *,
    until: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Published:
    """The commit files alone, without the checkpoint that may be due: up to the head, as long as more comes.

    With `until`, what comes meanwhile is left to others once that version is there.
    """
    table = store.table_to_change(name)
    publisher = Publisher(store, table)
    start = published = int(table["published_version"])
    while published < (head := int(table["current_version"])) and _is_short(published, until):
        last = _last_of_batch(store, table, published + 1, min(head, published + _BATCH))
        publisher.publish(_waiting(store, table, published + 1, last))
        published = last
        progress(published - start, head - start)
        if published == head and _is_short(published, until):
            table = store.table_to_change(name)  # more may have come meanwhile
    return Published(name, start, published, publisher.written)


def _is_short(published: int, until: int | None) -> bool:
    return until is None or published < until


def lags(store: Store) -> list[Lag]:
    """Every table that has something to publish, the longest waiting first."""
    found = []
    for row in store.rows("mirror_open"):
        now = as_utc(row["clock"])
        found.append(
            Lag(
                name=row["name"],
                versions=row["current_version"] - row["published_version"],
                seconds=_seconds(as_utc(row["oldest"]), now),
                status=row["status"],
                attempts=row["attempts"],
                idle=_seconds(as_utc(row["updated_at"]), now),
                last_error=row["last_error"],
                foreign_version=row["foreign_version"],
            )
        )
    return found


def put_commit(place: Location, version: int, data: bytes) -> Literal["written", "there", "foreign"]:
    """Write a commit file unless there is one: then it is `there` if it has these bytes, and `foreign` if not.

    Nothing is ever overwritten.
    """
    file = commit_name(version)
    if LogWriter(place).create(file, data):
        return "written"
    # A store may refuse the very bytes that it took a moment ago, when its first answer was lost.
    return "there" if LogDirectory(place).read_file(file) == data else "foreign"


class Publisher:
    """Writes versions of one table into its log."""

    def __init__(self, store: Store, table: Row) -> None:
        self._store = store
        self._name, self._table_id, self._location = table["name"], table["table_id"], table["location"]
        self.written = 0

    @cached_property
    def _place(self) -> Location:
        """Opened with the first version, so that a folder that is not there counts as its failure."""
        return open_location(self._location)

    def publish(self, waiting: Sequence[Waiting], *, begun: bool = False) -> None:
        """Write these versions, which follow what is published. `begun` says that they are marked as in flight."""
        first, last = waiting[0].version, waiting[-1].version
        if not begun:
            self._store.note([statement("mirror_begin", table_id=self._table_id, first=first, last=last)])
        done = 0
        try:
            for each in waiting:
                self._put_patiently(each, last)
                done += 1
        finally:
            if done:
                self._complete(waiting[:done])

    def _put_patiently(self, waiting: Waiting, last: int) -> None:
        attempts = max(1, self._store.engine.settings.publish_attempts)
        for attempt in range(1, attempts + 1):
            try:
                self._put(waiting)
                return
            except MainstemError as error:
                self._failed(waiting, last, error)
                if attempt == attempts or not error.retryable:
                    raise
                wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
                time.sleep(wait)

    def _put(self, waiting: Waiting) -> None:
        done = put_commit(self._place, waiting.version, waiting.data())
        self.written += done == "written"
        if done == "foreign":
            file = commit_name(waiting.version)
            raise ForeignCommit(
                f"an outside engine has written version {waiting.version} of {self._name} into its log: {file} is not "
                "the commit that the catalog has.",
                hint=f"Nothing was overwritten, and {self._name} takes no commit until you decide: "
                f"mainstem resolve {self._name}",
                table=self._name,
                version=waiting.version,
            )

    def _failed(self, waiting: Waiting, last: int, error: MainstemError) -> None:
        observe.count("mirror_failures_total", table=self._name)
        observe.event("publish.failed", level=30, table=self._name, version=waiting.version, error=error)
        values = {"table_id": self._table_id, "version": waiting.version}
        with self._store.writing() as queries:
            queries.change("mirror_failed", **values, last_error=error.message[:_LONGEST_ERROR])
            queries.change("mirror_put_back", table_id=self._table_id, first=waiting.version + 1, last=last)
            if isinstance(error, ForeignCommit):
                queries.change("head_foreign", **values)
            self._record_lag(waiting, queries.now())

    def _complete(self, written: Sequence[Waiting]) -> None:
        first, last = written[0].version, written[-1].version
        # If a crash of the database loses this, the next publisher finds the files there and notes it again.
        now = self._store.note(
            [
                statement("mirror_complete", table_id=self._table_id, first=first, last=last),
                statement("head_published", table_id=self._table_id, version=last),
            ]
        )
        for each in written:
            observe.record("mirror_latency_ms", _seconds(each.committed_at, now) * 1000, table=self._name)
        self._record_lag(written[0], now)

    def _record_lag(self, oldest: Waiting, now: datetime) -> None:
        observe.record("mirror_lag_seconds", _seconds(oldest.committed_at, now), table=self._name)


def _seconds(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())


def _last_of_batch(store: Store, table: Row, first: int, last: int) -> int:
    """The last version that is read together with the first one, which is taken whatever it has."""
    if first == last:
        return last
    total = 0
    for row in store.rows("files_by_version", table_id=table["table_id"], first=first, last=last):
        total += row["files"]
        if total > _MOST_ACTIONS and row["version"] > first:
            return int(row["version"]) - 1
    return last


def _waiting(store: Store, table: Row, first: int, last: int) -> list[Waiting]:
    name = table["name"]
    with store.reading_to_write() as queries:
        found = recorded(queries, table["table_id"], first=first, last=last)
    if [each.version for each in found] != list(range(first, last + 1)):
        raise CorruptCatalog(
            f"the catalog lacks some of the versions {first} to {last} of {name}, which it has to publish.",
            hint=f"Nothing was published. See: mainstem validate {name}",
            table=name,
        )
    return [Waiting(each.version, each.committed_at, partial(each.commit_file, table=name)) for each in found]
