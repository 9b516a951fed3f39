"""Files that a table's log lacks or cannot use, and that the catalog's rows can make again: commits and checkpoints.

Only for a table that the catalog leads: the log of another one is not ours to write. A commit file that is there is
never replaced, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import orjson

from mainstem.checkpoint import due, write_checkpoint
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import replay_plan
from mainstem.deltalog.location import open_location
from mainstem.deltalog.names import Listing, classify
from mainstem.deltalog.serialize import serialize_commit
from mainstem.deltalog.writing import HINT, LogWriter
from mainstem.errors import CorruptLog, MainstemError
from mainstem.publish import put_commit
from mainstem.recorded import recorded
from mainstem.store import Row, Store
from mainstem.validate.commits import absent_commits


@dataclass(frozen=True)
class LogFiles:
    """The log of one table as it is now, beside what the catalog says of it."""

    store: Store
    table: Row
    log: LogDirectory
    listing: Listing
    _known: dict[tuple[str, int], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, table: Row) -> LogFiles:
        """Look at a table's log. Raises if its folder cannot be opened; an empty log is none."""
        log = LogDirectory.open(table["location"])
        return cls(store, table, log, classify(file for file in log.files() if "/" not in file.name))

    @property
    def lost(self) -> bool:
        """Whether nothing is left of a log that was published."""
        return self.published >= 0 and not self.listing.commits and not self.listing.checkpoints

    @property
    def published(self) -> int:
        return int(self.table["published_version"])

    @property
    def floor(self) -> int:
        return int(self.table["min_readable_version"])

    @property
    def oldest(self) -> int:
        """The first commit that the log still has."""
        return min((commit.version for commit in self.listing.commits), default=self.published + 1)

    def missing_commits(self) -> list[int]:
        """Published versions whose commit file is gone, and that no log cleanup would have taken."""
        return absent_commits(self.listing, self.floor, self.published)

    def bytes_of(self, version: int) -> bytes | None:
        """The commit file of a version as it was committed; None, if the catalog's rows no longer make it."""
        with self.store.reading() as queries:
            found = recorded(queries, self.table["table_id"], first=version, last=version)
        if not found or found[0].kind != "commit":
            return None
        data = serialize_commit(found[0].actions)
        return data if sha256(data).hexdigest() == found[0].content_sha256 else None

    def rows_hold(self, version: int) -> bool:
        """Whether the catalog's rows still make the commit file that was committed."""
        return self._remembered("rows", version, lambda: self.bytes_of(version) is not None)

    def log_holds(self, version: int) -> bool:
        """Whether the log still has the commit file that was committed."""
        return self._remembered("log", version, lambda: self._sha256(version) == self._committed(version))

    def _remembered(self, side: str, version: int, look: Callable[[], bool]) -> bool:
        """Looked up once: a damaged commit may be the subject of a finding for each of its files."""
        if (side, version) not in self._known:
            self._known[side, version] = look()
        return self._known[side, version]

    def _committed(self, version: int) -> str | None:
        row = self.store.row("version_row", table_id=self.table["table_id"], version=version)
        return None if row is None else row["content_sha256"]

    def _sha256(self, version: int) -> str | None:
        try:
            return sha256(self.log.read(version)).hexdigest() if self.listing.commit(version) else None
        except MainstemError:
            return None

    def put_back(self, version: int) -> None:
        """Write a commit file that is gone; one that somebody has put there meanwhile stays."""
        data = self.bytes_of(version)
        assert data is not None
        put_commit(open_location(self.table["location"]), version, data)

    def missing_checkpoints(self, unusable: Iterable[int], restored: Sequence[int]) -> list[int]:
        """Versions that need a checkpoint: without it the log cannot be read, or not as fast as the table asks for.

        `unusable` are versions whose checkpoint does not count, `restored` those whose commit file is put back.
        """
        spoilt = set(unusable)
        usable = sorted({found.version for found in self.listing.checkpoints} - spoilt)
        wanted = {version for version in (self._named(), self._due()) if version is not None}
        newest = usable[-1] if usable else -1
        needed = {version for version in wanted if version > newest}
        start = self._unreadable_start(usable, restored)
        return sorted(needed if start is None else needed | {start})

    def _named(self) -> int | None:
        """The version that `_last_checkpoint` names, if it has one that the catalog can make a checkpoint of."""
        try:
            said = orjson.loads(self.log.read_file(HINT))
        except (MainstemError, orjson.JSONDecodeError):
            return None  # a reader does without it
        version = said.get("version") if isinstance(said, dict) else None
        return version if type(version) is int and self.floor <= version <= self.published else None

    def _due(self) -> int | None:
        [row] = self.store.rows("table_properties", name=self.table["name"])
        properties = orjson.loads(row["properties"])
        versions = range(self.published, max(self.floor, 1) - 1, -1)
        return next((version for version in versions if due(version, properties)), None)

    def _unreadable_start(self, usable: Sequence[int], restored: Sequence[int]) -> int | None:
        """Where a checkpoint is needed because the log's first commits are gone; None if the log can be read."""
        checkpoints = tuple(found for found in self.listing.checkpoints if found.version in usable)
        commits = {commit.version for commit in self.listing.commits} | set(restored)
        if not commits or self.published not in commits:
            return None
        try:
            replay_plan(Listing(self.listing.commits, checkpoints))
            return None
        except CorruptLog:
            start = self.published
            while start - 1 in commits and start - 1 >= self.floor:
                start -= 1
            readable = start == 0 or any(found.version >= start - 1 for found in checkpoints)
            return None if readable else start

    def write_checkpoint(self, version: int) -> None:
        """Write the checkpoint of a version, and then take away what another one of that version had."""
        before = [found for found in self.listing.checkpoints if found.version == version]
        written = write_checkpoint(self.store, self.table["name"], version)
        # The names of v2 checkpoints and of parts differ: beside the new one the old one would still be read.
        old = [file.name for found in before for file in found.files if file.name not in written.files]
        LogWriter.open(self.table["location"]).delete(old)
