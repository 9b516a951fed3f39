"""Delta's checksum of a version, which spares it the jobs that would find out the same from a checkpoint.

Without it Delta runs seven jobs for an append to a mount, with it one: that of the append.
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from mainstem.checkpoint import State, Watcher
from mainstem.checkpoint.described import without_nulls
from mainstem.checkpoint.files import OBJECTS, PLAIN

# Of so many files a checksum says which they are, and Delta has no need to read the checkpoint for them. Its own limit,
# 50, is for logs in which every commit has a checksum; a mount has one.
_MOST_NAMED = 1000


def checksum_name(version: int) -> str:
    """How the file is called."""
    return f"{version:020d}.crc"


class Seen(Watcher):
    """The live files of a state as they were written into its checkpoint."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.files, self._bytes = 0, 0
        self._named: list[dict[str, Any]] = []

    def page(self, rows: pa.Table) -> None:
        self.files += rows.num_rows
        self._bytes += pc.sum(rows.column("size_bytes")).as_py() or 0
        if self.files <= _MOST_NAMED:
            self._named += map(_add, rows.to_pylist())

    def checksum(self, state: State) -> bytes:
        """What Delta would have written beside the version."""
        rows = [without_nulls(row) for row in state.described()]

        def each(name: str) -> list[object]:
            return [row[name] for row in rows if name in row]

        found = {
            "tableSizeBytes": self._bytes,
            "numFiles": self.files,
            "numMetadata": 1,
            "numProtocol": 1,
            "setTransactions": each("txn"),
            "domainMetadata": each("domainMetadata"),
            "metadata": each("metaData")[0],
            "protocol": each("protocol")[0],
        }
        return orjson.dumps({**found, "allFiles": self._named} if self.files <= _MOST_NAMED else found)


def _add(row: dict[str, Any]) -> dict[str, Any]:
    texts = {field: orjson.loads(row[name]) for field, name in OBJECTS.items() if row[name] is not None}
    plain = {field: row[name] for field, name in PLAIN.items() if row.get(name) is not None}
    return {**plain, **texts, "dataChange": False}
