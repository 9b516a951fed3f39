"""Delta logs written by hand: exactly the actions, files and times that a test needs, and no data files.

`from logs import Log, add, remove` works in every test.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SCHEMA: Json = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "part", "type": "string", "nullable": True, "metadata": {}},
    ],
}
_CHECKPOINT = "checkpoint.00000000-0000-4000-8000-000000000000.json"


def add(path: str, /, **fields: Any) -> Json:
    return {
        "add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True, **fields}
    }


def remove(path: str, /, **fields: Any) -> Json:
    return {"remove": {"path": path, "deletionTimestamp": 3, "dataChange": True, **fields}}


def stats(records: int, **fields: Any) -> str:
    return json.dumps({"numRecords": records, **fields}, separators=(",", ":"))


def vector(name: str, /, *, offset: int | None = 1) -> Json:
    """A deletion vector of its own, told from others by its name."""
    place = {} if offset is None else {"offset": offset}
    return {"storageType": "u", "pathOrInlineDv": f"{name:0<20}", **place, "sizeInBytes": 34, "cardinality": 1}


def metadata(**fields: Any) -> Json:
    base = {
        "id": "5f0e3f5c-4e0b-4a3f-9d0e-0c3b1f0e7a11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1,
    }
    return {"metaData": {**base, **fields}}


def protocol(*features: str, writer: tuple[str, ...] = ()) -> Json:
    """Reader version 1; with features, 3 and 7. `writer` features are only for writers."""
    if not features and not writer:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    reading = {"minReaderVersion": 3, "readerFeatures": list(features)} if features else {"minReaderVersion": 1}
    return {"protocol": {**reading, "minWriterVersion": 7, "writerFeatures": [*features, *writer]}}


def info(**fields: Any) -> Json:
    return {"commitInfo": {"timestamp": 1, "operation": "WRITE", **fields}}


def txn(app: str, version: int, **fields: Any) -> Json:
    return {"txn": {"appId": app, "version": version, **fields}}


def domain(name: str, configuration: str = "{}", *, removed: bool = False) -> Json:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def lines(*actions: Json) -> bytes:
    return b"".join(json.dumps(action, separators=(",", ":")).encode() + b"\n" for action in actions)


class Log:
    """The `_delta_log` of a table, version by version. A new one is empty: its first commit must describe the table."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "_delta_log"
        self.folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def begin(cls, root: Path, *actions: Json, table: Json | None = None, needs: Json | None = None) -> Log:
        """A log whose version 0 has a protocol, a metadata and these actions."""
        log = cls(root)
        log.commit(info(), needs or protocol(), table or metadata(), *actions)
        return log

    @property
    def location(self) -> str:
        return str(self.root)

    def path(self, version: int, suffix: str = "json") -> Path:
        return self.folder / f"{version:020d}.{suffix}"

    def next_version(self) -> int:
        return max((int(file.name[:20]) for file in self.folder.glob("[0-9]*.json")), default=-1) + 1

    def commit(self, *actions: Json, at_ms: int | None = None) -> int:
        """Write the next version; a commitInfo unless the actions have one. With `at_ms`, that is the file's time."""
        if not any("commitInfo" in action for action in actions):
            actions = (info(), *actions)
        return self.write(lines(*actions), at_ms=at_ms)

    def write(self, content: bytes, *, version: int | None = None, at_ms: int | None = None) -> int:
        """Write any bytes as a commit file, in one step as a real writer does."""
        version = self.next_version() if version is None else version
        unseen = self.folder / f".{version}.tmp"
        unseen.write_bytes(content)
        if at_ms is not None:
            os.utime(unseen, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
        unseen.rename(self.path(version))
        return version

    def checkpoint(self, version: int, *state: Json) -> Path:
        """Write a checkpoint (of the second kind, as JSON) that holds this state."""
        path = self.path(version, _CHECKPOINT)
        path.write_bytes(lines({"checkpointMetadata": {"version": version}}, *state))
        return path

    def clean_up(self, *, before: int) -> None:
        """Delete the commit files of older versions, as Delta's log cleanup does."""
        for version in range(before):
            self.path(version).unlink(missing_ok=True)
