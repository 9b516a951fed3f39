"""Delta's checksum of a version, which spares it the jobs that would find out the same from a checkpoint."""

from __future__ import annotations

import orjson

from mainstem.checkpoint import State
from mainstem.checkpoint.described import without_nulls


def checksum_name(version: int) -> str:
    """How the file is called."""
    return f"{version:020d}.crc"


def checksum_without_files(state: State) -> bytes:
    """The checksum of a state that holds none of its table's files."""
    rows = [without_nulls(row) for row in state.described()]

    def each(name: str) -> list[object]:
        return [row[name] for row in rows if name in row]

    return orjson.dumps(
        {
            "tableSizeBytes": 0,
            "numFiles": 0,
            "numMetadata": 1,
            "numProtocol": 1,
            "setTransactions": each("txn"),
            "domainMetadata": each("domainMetadata"),
            "metadata": each("metaData")[0],
            "protocol": each("protocol")[0],
            "allFiles": [],
        }
    )
