"""The state of a table at one version, in one shape whoever says it: Mainstem, Delta Spark or delta-rs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mainstem.snapshot import Snapshot

FileId = tuple[str, str | None]  # path, deletion vector: a file as Delta defines it


@dataclass(frozen=True)
class File:
    """What a live file's add says, beside its identity."""

    size: int
    partition_values: Mapping[str, str | None]
    stats: str | None
    modification_time: int
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    @property
    def meaning_of_stats(self) -> Any:
        """The statistics without their spelling. Decimals stay texts: a float would make two of them equal."""
        return None if self.stats is None else json.loads(self.stats, parse_float=str)


@dataclass(frozen=True)
class State:
    """A table at one version."""

    files: Mapping[FileId, File]
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    domains: Mapping[str, str] = field(default_factory=dict)
    transactions: Mapping[str, int] = field(default_factory=dict)
    tombstones: Mapping[FileId, int | None] = field(default_factory=dict)  # with the time of each; only Delta is asked


def dv_id(vector: Mapping[str, Any] | None) -> str | None:
    """Delta's unique id of a deletion vector, written down here again: a test must not ask the code it tests."""
    if vector is None:
        return None
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def metadata_of(action: Mapping[str, Any]) -> dict[str, Any]:
    """Every field of a metaData action, those that may be left out with what leaving them out means."""
    return {
        "id": action["id"],
        "name": action.get("name"),
        "description": action.get("description"),
        "format": {"options": {}, **action.get("format", {"provider": "parquet"})},
        "schemaString": action.get("schemaString"),
        "partitionColumns": action.get("partitionColumns", []),
        "configuration": action.get("configuration", {}),
        "createdTime": action.get("createdTime"),
    }


def protocol_of(action: Mapping[str, Any]) -> dict[str, Any]:
    """A protocol action; features are sets, whatever order they are listed in."""

    def features(key: str) -> list[str] | None:
        found: Iterable[str] | None = action.get(key)
        return None if found is None else sorted(found)

    return {
        "minReaderVersion": action["minReaderVersion"],
        "minWriterVersion": action["minWriterVersion"],
        "readerFeatures": features("readerFeatures"),
        "writerFeatures": features("writerFeatures"),
    }


def files_of(rows: Iterable[Mapping[str, Any]]) -> dict[FileId, File]:
    """Rows of `files()`, `to_arrow()` or a view. A file that is there twice is an error, and never overwritten."""
    found: dict[FileId, File] = {}
    for row in rows:
        known = (row["path"], row["dv_id"])
        assert known not in found, f"{known} is live twice"
        assert row["dv_id"] == dv_id(json.loads(row["deletion_vector"] or "null"))
        found[known] = File(
            size=row["size_bytes"],
            partition_values=json.loads(row["partition_values"]),
            stats=row["stats"],
            modification_time=row["modification_time"],
            base_row_id=row["base_row_id"],
            default_row_commit_version=row["default_row_commit_version"],
        )
    return found


def of_snapshot(snapshot: Snapshot) -> State:
    """What Mainstem says."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    texts = {
        "format": metadata.format,
        "partitionColumns": metadata.partition_columns,
        "configuration": metadata.table_properties,
        "readerFeatures": protocol.reader_features,
        "writerFeatures": protocol.writer_features,
    }
    parsed = {key: json.loads(text) for key, text in texts.items() if text is not None}
    return State(
        files=files_of(snapshot.to_arrow().to_pylist()),
        metadata=metadata_of(
            {
                **parsed,
                "id": metadata.metadata_id,
                "name": metadata.name,
                "description": metadata.description,
                "schemaString": metadata.schema_json,
                "createdTime": metadata.created_time,
            }
        ),
        protocol=protocol_of(
            {
                **parsed,
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
            }
        ),
        domains=dict(snapshot.domains),
        transactions=dict(snapshot.app_transactions),
    )


def delta_spelling(path: str) -> str:
    """Delta's state has absolute paths with their scheme; ours has every path as the log spells it."""
    return f"file://{path}" if path.startswith("/") else path.replace("file:/", "file:///", 1).replace("/////", "///")
