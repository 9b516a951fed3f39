"""What a log says of a table as a whole, gathered while it is read. Values in, values out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mainstem.deltalog.history import CommitTime, ReplayPlan, commit_timestamps, in_commit_timestamps_from
from mainstem.deltalog.jsontext import decoded
from mainstem.deltalog.names import Checkpoint
from mainstem.deltalog.protocol import refuse_unreadable, require_protocol_and_metadata
from mainstem.errors import CorruptLog
from mainstem.model import Action, Metadata, Protocol
from mainstem.versions import from_millis


@dataclass(slots=True)
class Chronicle:
    """The latest metadata and protocol, the time of every version, and the first version that can be read."""

    root: str
    plan: ReplayPlan
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    times: list[CommitTime] = field(default_factory=list)
    _first: dict[type, int] = field(default_factory=dict)

    def see(self, version: int, action: Action) -> None:
        """Take an action, in the order of versions. Raises as soon as the table turns out to be unreadable."""
        if type(action) is Protocol:
            refuse_unreadable(action, table=self.root)
            self.protocol = action
        elif type(action) is Metadata:
            self.metadata = action
        else:
            return
        self._first.setdefault(type(action), version)

    @property
    def floor(self) -> int:
        """The first version that describes a table: before there is metadata and a protocol, none does."""
        return max(self.plan.first, *self._first.values())

    def moments(self) -> list[datetime]:
        """When each version was committed, as Delta answers time travel. Raises unless the log is that of a table."""
        require_protocol_and_metadata(self.protocol, self.metadata, where=f"{self.root}/_delta_log")
        assert self.metadata is not None
        since = in_commit_timestamps_from(properties(self.metadata))
        if since is not None and self.plan.checkpoint is not None and self.times[0].in_commit_ms is None:
            since = max(since, self.plan.first + 1)  # cleanup took the commit that knew
        return [from_millis(time) for time in commit_timestamps(self.times, in_commit_from=since)]

    def described(self) -> dict[str, Any]:
        """What `dl_tables` repeats of the latest protocol and metadata."""
        assert self.protocol is not None
        assert self.metadata is not None
        return described(self.protocol, self.metadata)


def contradiction(checkpoint: Checkpoint, *, missing: int, extra: int, example: str | None) -> CorruptLog:
    """The error for a checkpoint whose live files are not those that the commits before it leave."""
    named = f", for example {example!r}" if missing else ""
    file = checkpoint.files[0].name
    return CorruptLog(
        f"{file} contradicts the commits before it: {missing} of its files are not live by the commits, and {extra} "
        f"that are live are not in it{named}.",
        hint="Nothing was imported. Delta reads the checkpoint; restore the log from a copy.",
        file=file,
        version=checkpoint.version,
    )


def described(protocol: Protocol, metadata: Metadata) -> dict[str, Any]:
    """What `dl_tables` repeats of a table's protocol and metadata."""
    return {
        "protocol_min_reader": protocol.min_reader_version,
        "protocol_min_writer": protocol.min_writer_version,
        "properties": metadata.table_properties or "{}",
    }


def properties(metadata: Metadata) -> dict[str, str]:
    """A table's properties as its metadata has them. A value that is no text becomes its own, as Delta reads it."""
    found = decoded(metadata.table_properties or "{}")
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items() if value is not None
    }
