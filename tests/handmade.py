"""A log made by hand, small and with every kind of action that a state holds; `from handmade import Log`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from mainstem import Catalog

DAY_MS = 86_400_000
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "day", "type": "date", "nullable": True, "metadata": {}},
        {"name": "who", "type": "string", "nullable": True, "metadata": {}},
    ],
}


class Log:
    """A table's folder whose commits are written one by one. Times are relative to now, since tombstones age."""

    def __init__(self, root: Path, **properties: str) -> None:
        self.root = root
        self.now_ms = int(time.time() * 1000)
        self.version = -1
        (root / "_delta_log").mkdir(parents=True)
        features = ["deletionVectors", "v2Checkpoint"]
        self.commit(
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": features,
                    "writerFeatures": [*features, "appendOnly", "domainMetadata", "rowTracking"],
                }
            },
            {
                "metaData": {
                    "id": "5f5a2f5c-0000-4000-8000-000000000001",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps(SCHEMA),
                    "partitionColumns": ["day", "who"],
                    "configuration": properties,
                    "createdTime": self.now_ms,
                }
            },
        )

    def commit(self, *actions: dict[str, Any]) -> int:
        """Write the next version."""
        self.version += 1
        info = {"commitInfo": {"timestamp": self.now_ms, "operation": "WRITE"}}
        lines = "".join(_line(action) for action in (info, *actions))
        (self.root / "_delta_log" / f"{self.version:020d}.json").write_text(lines)
        return self.version

    def add(
        self, path: str, day: str | None = "2026-01-01", who: str | None = "é='\"", **fields: Any
    ) -> dict[str, Any]:
        stats = '{"numRecords":3,"minValues":{"id":1},"maxValues":{"id": 9007199254740993},"nullCount":{"id":0}}'
        body = {
            "path": path,
            "partitionValues": {"day": day, "who": who},
            "size": 1000 + len(path),
            "modificationTime": self.now_ms - len(path),
            "dataChange": True,
            "stats": stats,
        }
        return {"add": {**body, **fields}}

    def remove(self, path: str, *, days_ago: float = 1, **fields: Any) -> dict[str, Any]:
        body = {
            "path": path,
            "deletionTimestamp": self.now_ms - int(days_ago * DAY_MS),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {"day": "2026-01-01", "who": None},
            "size": 1000 + len(path),
        }
        return {"remove": {**body, **fields}}


def _line(action: dict[str, Any]) -> str:
    line = json.dumps(action, separators=(",", ":"), ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes of its own, but a spelling in JSON
        line = json.dumps(action, separators=(",", ":"))
    return line + "\n"


def vector(place: str) -> dict[str, Any]:
    """A deletion vector beside the data."""
    return {"storageType": "u", "pathOrInlineDv": place, "offset": 1, "sizeInBytes": 36, "cardinality": 2}


V1, V2 = vector("ab^-aqEH.-t@S}K{vb[*"), vector("ab^-aqEH.-t@S}K{vb[+")


def full_log(root: Path, **properties: str) -> Log:
    """Six versions: files come, get a deletion vector, lose it, go lately or long ago; applications, domains."""
    log = Log(root, **properties)
    tags = {"INSERTION_TIME": "1", "odd \u2028": "x"}
    log.commit(
        log.add("a"),
        log.add("b%20c/part", day=None, tags=tags, baseRowId=0, defaultRowCommitVersion=1),
        log.add("c", who=None, stats=None, clusteringProvider="liquid"),
        log.add("d", newerField={"x": [1]}),
    )
    log.commit(
        log.remove("a"),
        log.add("a", deletionVector=V1),
        {"txn": {"appId": "app \U0001f600", "version": 1, "lastUpdated": log.now_ms - 3 * DAY_MS}},
        {
            "domainMetadata": {
                "domain": "delta.rowTracking",
                "configuration": '{"rowIdHighWaterMark":5}',
                "removed": False,
            }
        },
        {"domainMetadata": {"domain": "gone", "configuration": "{}", "removed": False}},
    )
    log.commit(
        log.remove("a", deletionVector=V1),
        log.add("a", deletionVector=V2),
        log.remove("c", days_ago=8),
        {"txn": {"appId": "app \U0001f600", "version": 2, "lastUpdated": log.now_ms - 2 * DAY_MS}},
        {"txn": {"appId": "timeless", "version": 7}},
        {"domainMetadata": {"domain": "gone", "configuration": "{}", "removed": True}},
    )
    log.commit(log.remove("a", deletionVector=V2), log.add("a"), log.remove("d"), log.add("e"))
    log.commit(log.remove("e", days_ago=0.5), log.add("f"))
    return log


def lead(catalog: Catalog, name: str, *, published: int | None = None) -> None:
    """Let the catalog lead a table, with versions published up to one: what a cutover and later commits leave."""
    with catalog.store.writing() as queries:
        statement = "UPDATE dl_tables SET authority = 'catalog' WHERE name = :name"
        catalog.engine.execute(queries.connection, statement, {"name": name})
        if published is not None:
            statement = "UPDATE dl_table_heads SET published_version = :published"
            catalog.engine.execute(queries.connection, statement, {"published": published})
