"""What the checks look at: one table, its rows, its log, its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import Checkpoint, Listing
from mainstem.errors import UsageError
from mainstem.snapshot import Snapshot, open_snapshot
from mainstem.store import Row, Store
from mainstem.validate.report import Finding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Listed:
    """One table under examination by its own rows alone, which may be too damaged to be opened.

    `versions` are its rows of `dl_table_versions` that are still readable.
    """

    store: Store
    table: Row
    versions: list[Row]

    @property
    def name(self) -> str:
        return str(self.table["name"])

    @property
    def table_id(self) -> str:
        return str(self.table["table_id"])

    @property
    def head(self) -> int:
        return int(self.table["current_version"])

    @property
    def published(self) -> int:
        return int(self.table["published_version"])

    @property
    def floor(self) -> int:
        return int(self.table["min_readable_version"])


@dataclass(frozen=True)
class Subject(Listed):
    """One table under examination, opened at its head."""

    snapshot: Snapshot
    every_version: bool = False  # whether Delta is asked about every version, or about a few
    frames: dict[str, DataFrame] = field(default_factory=dict)

    @property
    def spark(self) -> SparkSession:
        return self.snapshot.session()

    @cached_property
    def has_session(self) -> bool:
        """Whether there is a Spark session that was given, or runs here already."""
        try:
            return self.spark is not None
        except UsageError:
            return False

    def collect(self, frame: DataFrame) -> list[Any]:
        """The rows of a frame. An idle connection of ours must not keep Spark out of a database of one process."""
        self.store.engine.close()
        return frame.collect()

    def evidence(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """A frame that several look at, made once and kept until `release`. Suites find it by its name."""
        if name not in self.frames:
            self.frames[name] = make().persist()
        return self.frames[name]

    def release(self) -> None:
        """Let go of what was kept."""
        while self.frames:
            self.frames.popitem()[1].unpersist()

    @cached_property
    def place(self) -> Location:
        return open_location(self.table["location"])

    @cached_property
    def log(self) -> LogDirectory:
        return LogDirectory(self.place)

    @cached_property
    def listing(self) -> Listing:
        return self.log.list()

    def checkpoints(self) -> list[Checkpoint]:
        """The log's checkpoints of versions that the catalog can answer."""
        known = {row["version"] for row in self.versions}
        return [found for found in self.listing.checkpoints if found.version <= self.head and found.version in known]

    def at(self, version: int) -> Snapshot:
        """The table at one of its versions."""
        if version == self.snapshot.version:
            return self.snapshot
        return open_snapshot(self.store, self.name, self.table_id, session=self.snapshot.session, version=version)


Check = Callable[[Subject], Iterator[Finding]]
