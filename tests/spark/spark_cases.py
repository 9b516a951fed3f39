"""A log with everything that a snapshot has to get right, as text: no writer of ours had a hand in it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Action = dict[str, Any]

START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
FILES = 320
BARE = '{"numRecords":1}'  # statistics that say nothing of any column
# Partition values as people never should, and some do.
ODD_VALUES = (
    "plain",
    "' OR 1=1 --",
    'say "x"',
    "it's",
    "a\\b",
    "50% :name $1 ?",
    "{}",
    "naïve 🦆",
    "a/b=c",
    "x\ty",
    "",
)
_FEATURES = ["deletionVectors", "v2Checkpoint", "domainMetadata", "changeDataFeed", "rowTracking"]
_READER_FEATURES = _FEATURES[:2]


def _field(name: str, kind: str) -> Action:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


METADATA = {
    "id": "5b4f4a3e-0000-4000-8000-000000000001",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(
        {"type": "struct", "fields": [_field("id", "long"), _field("name", "string"), _field("p", "string")]}
    ),
    "partitionColumns": ["p"],
    "configuration": {"delta.enableDeletionVectors": "true"},
    "createdTime": START,
}
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": _READER_FEATURES,
    "writerFeatures": _FEATURES,
}


def path_of(number: int) -> str:
    return f"part-{number:05d}-5b4f4a3e.c000.snappy.parquet"


def value_of(number: int) -> str | None:
    """The partition of a file; every twelfth has none."""
    kinds = len(ODD_VALUES) + 1
    return None if number % kinds == len(ODD_VALUES) else ODD_VALUES[number % kinds]


def vector(number: int, generation: int) -> Action:
    """A deletion vector; two of one file differ in their offset."""
    name = f"ab^-aqEH.-t@S}}K{{vb[{number:05d}"
    return {"storageType": "u", "pathOrInlineDv": name, "offset": generation, "sizeInBytes": 34, "cardinality": 2}


def add(number: int, *, dv: int | None = None, more: Action | None = None) -> Action:
    low = number * 10
    stats = {
        "numRecords": 10,
        "minValues": {"id": low, "name": f"n{low:06d}"},
        "maxValues": {"id": low + 9, "name": f"n{low + 9:06d}"},
        "nullCount": {"id": 0, "name": number % 3},
    }
    body = {
        "path": path_of(number),
        "partitionValues": {"p": value_of(number)},
        "size": 1000 + number,
        "modificationTime": START + number,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
        "tags": {"INSERTION_TIME": str(number)} if number % 5 == 0 else None,
        "baseRowId": low,
        "defaultRowCommitVersion": 1,
        **({} if dv is None else {"deletionVector": vector(number, dv)}),
        **(more or {}),
    }
    return {"add": {key: value for key, value in body.items() if value is not None}}


def remove(number: int, *, dv: int | None = None) -> Action:
    body = {
        "path": path_of(number),
        "deletionTimestamp": START + 10_000 + number,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"p": value_of(number)},
        "size": 1000 + number,
        **({} if dv is None else {"deletionVector": vector(number, dv)}),
    }
    return {"remove": body}


def info(operation: str, version: int) -> Action:
    body = {
        "timestamp": START + version * 1000,
        "userName": f"writer {version % 3}",
        "operation": operation,
        "operationParameters": {"mode": '"Append"'},
        "engineInfo": "a test",
    }
    return {"commitInfo": body}


def txn(app: str, version: int) -> Action:
    return {"txn": {"appId": app, "version": version, "lastUpdated": START + version}}


def domain(name: str, configuration: str, *, removed: bool = False) -> Action:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def cdc(number: int) -> Action:
    path = f"_change_data/cdc-{number:05d}.c000.snappy.parquet"
    return {"cdc": {"path": path, "partitionValues": {"p": value_of(number)}, "size": 77, "dataChange": False}}


def odd_commits() -> list[list[Action]]:
    """Nine versions over some 380 files: every way in which a file comes, changes and goes."""
    every = range(FILES)
    return [
        [info("CREATE TABLE", 0), {"protocol": PROTOCOL}, {"metaData": METADATA}],
        [info("WRITE", 1), txn("stream-1", 1), *(add(n) for n in every)],
        [info("WRITE", 2), *(remove(n) for n in every[::5]), *(add(n) for n in range(FILES, FILES + 60))],
        # Deletion vectors: the file goes without one and comes with one, in both orders.
        [
            info("DELETE", 3),
            *(action for n in every[1:160:5] for action in (remove(n), add(n, dv=1))),
            *(action for n in every[161::5] for action in (add(n, dv=1), remove(n))),
            domain("delta.rowTracking", '{"rowIdHighWaterMark":3799}'),
        ],
        # Another vector on the same path; a file that is there is added again, with other statistics.
        [
            info("UPDATE", 4),
            *(action for n in every[1:160:5] for action in (remove(n, dv=1), add(n, dv=2))),
            *(add(n, more={"stats": BARE, "dataChange": False}) for n in every[2:100:5]),
            *(cdc(n) for n in range(3)),
            txn("stream-1", 2),
            txn("stream-2", 7),
        ],
        # Removed and added in one version; files of version 1 come back.
        [
            info("RESTORE", 5),
            *(action for n in every[3:100:5] for action in (remove(n), add(n, more={"size": 5}))),
            *(add(n) for n in every[:100:5]),
            domain("app", '{"a":1}'),
            {"futureAction": {"some": ["thing", None, 1e200]}},
        ],
        # Removes of what is not there: an older vector, no vector, a file that nobody knows.
        [
            info("DELETE", 6),
            *(remove(n, dv=1) for n in every[1:160:5]),
            *(remove(n) for n in every[161::5]),
            remove(99_999),
            domain("app", '{"a":1}', removed=True),
        ],
        [info("WRITE", 7), *(remove(n) for n in every[104::5]), txn("stream-1", 3), txn("stream-1", 4)],
        [
            {"commitInfo": {**info("OPTIMIZE", 8)["commitInfo"], "inCommitTimestamp": START + 8000}},
            *(remove(n, dv=2) for n in every[1:100:5]),
            add(500, more={"clusteringProvider": "liquid", "unknownField": {"x": 1}}),
            {"metaData": {**METADATA, "configuration": {"delta.enableDeletionVectors": "true", "note": "é"}}},
        ],
    ]


def write_log(root: Path, commits: Sequence[Sequence[Action]], *, first: int = 0) -> Path:
    """The commits as a `_delta_log`, a second apart."""
    for version, actions in enumerate(commits, start=first):
        put(root, f"{version:020d}.json", actions, version)
    return root


def put(root: Path, name: str, actions: Sequence[Action], version: int) -> Path:
    """One file of the log."""
    file = root / "_delta_log" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions), encoding="utf-8")
    os.utime(file, ns=((START + version * 1000) * 1_000_000,) * 2)
    return file
