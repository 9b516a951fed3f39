"""What the checks look at: one table, its rows, its log, its files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import Listing
from mainstem.snapshot import Snapshot
from mainstem.store import Row, Store


@dataclass(frozen=True)
class Subject:
    """One table under examination. `versions` are its rows of `dl_table_versions` that are still readable."""

    store: Store
    table: Row
    snapshot: Snapshot
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

    @cached_property
    def place(self) -> Location:
        return open_location(self.table["location"])

    @cached_property
    def log(self) -> LogDirectory:
        return LogDirectory(self.place)

    @cached_property
    def listing(self) -> Listing:
        return self.log.list()
