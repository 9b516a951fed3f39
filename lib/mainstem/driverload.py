"""A log read by this process alone, version by version, into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from mainstem.chronicle import Chronicle, contradiction
from mainstem.deltalog.checkpoints import checkpoint_files
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import ReplayPlan
from mainstem.deltalog.names import Checkpoint
from mainstem.lane import Lane
from mainstem.loggedversion import LoggedVersion, logged_versions
from mainstem.model import Action
from mainstem.spans import SpanBook
from mainstem.store import Queries
from mainstem.versions import Version, apply_closings, from_millis, write_rows, write_versions

# Rows are written when so many have gathered, while the next ones are read: with more of them the database has nothing
# to do at the start and the reader at the end, with fewer more rows are closed after they were written.
BATCH = 25_000

Progress = Callable[[int, int], None]  # versions read, versions in all


@dataclass(slots=True)
class DriverLoad:
    """A log on its way in: what has been seen of it so far. Memory grows with the live files, not with the log."""

    log: LogDirectory
    plan: ReplayPlan
    checked: Checkpoint | None  # the newest checkpoint: somebody else's word on the state at its version
    progress: Progress
    chronicle: Chronicle
    actions: int = 0
    _book: SpanBook = field(default_factory=lambda: SpanBook(""))
    _versions: list[Version] = field(default_factory=list)

    @property
    def files(self) -> int:
        """How many files are live after the last version."""
        return len(self._book.live_keys())

    def rehearse(self) -> None:
        """Read and check everything, and write nothing."""
        for version, action in self._read():
            self._book.take(version, action)
            if self._book.pending >= BATCH:
                list(self._book.batch())
                list(self._book.closings())
        self.chronicle.moments()

    def write(self, queries: Queries, table_id: str) -> None:
        """Read everything and write its rows."""
        self._book = SpanBook(table_id)
        with Lane() as lane:
            for version, action in self._read():
                self._book.take(version, action)
                if self._book.pending >= BATCH:
                    self._flush(queries, table_id, lane)
            self._flush(queries, table_id, lane)
        moments = self.chronicle.moments()
        dated = (replace(version, committed_at=at) for version, at in zip(self._versions, moments, strict=True))
        write_versions(queries, table_id, dated)

    def _flush(self, queries: Queries, table_id: str, lane: Lane) -> None:
        batch, closed = list(self._book.batch()), list(self._book.closings())

        def write() -> None:
            write_rows(queries, batch)
            apply_closings(queries, table_id, closed)

        lane.do(write)  # the database takes these rows in while the next ones are read

    def _read(self) -> Iterator[tuple[int, Action]]:
        total = self.plan.last - self.plan.first + 1
        for done, logged in enumerate(logged_versions(self.log, self.plan), start=1):
            for action in logged.actions():
                self.actions += 1
                self.chronicle.see(logged.version, action)
                yield logged.version, action
            self._passed(logged)
            self.progress(done, total)

    def _passed(self, logged: LoggedVersion) -> None:
        self.chronicle.times.append(logged.time)
        # The moment is filled in at the end: whether in-commit timestamps count is said by the latest properties.
        self._versions.append(
            Version(logged.version, from_millis(0), logged.kind, logged.info, content_sha256=logged.content_sha256)
        )
        if self.checked is not None and self.checked.version == logged.version:
            self._compare(self.checked)

    def _compare(self, checkpoint: Checkpoint) -> None:
        live, theirs = self._book.live_keys(), checkpoint_files(self.log, checkpoint)
        if theirs.keys() != live:
            missing, extra = theirs.keys() - live, live - theirs.keys()
            example = min((theirs[key] for key in missing), default=None)
            raise contradiction(checkpoint, missing=len(missing), extra=len(extra), example=example)
