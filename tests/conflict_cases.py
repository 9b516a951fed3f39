"""A commit, the commits that came before it, and what it had read, as lines of a log: for our rules and for Delta."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mainstem.conflicts import Proposed, Reads, Winner, read_predicate
from mainstem.deltalog import parse_commit
from mainstem.identity import canonical_path
from mainstem.model import Action, Metadata, Protocol

Json = dict[str, Any]
ROOT = "file:///lake/t"
LEVELS = ("Serializable", "WriteSerializable")

FIELDS = [
    {"name": "part", "type": "string", "nullable": True, "metadata": {}},
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
]
MAPPED = [
    {**field, "metadata": {"delta.columnMapping.id": at, "delta.columnMapping.physicalName": field["name"]}}
    for at, field in enumerate(FIELDS, 1)
]
NESTED = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
NESTED_MAPPED = {
    "type": "struct",
    "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": MAPPED[1]["metadata"]}],
}


def add(path: str, part: str | None = "a", *, change: bool = True, records: int | None = 3, **more: Any) -> Json:
    stats = {} if records is None else {"stats": json.dumps({"numRecords": records}, separators=(",", ":"))}
    body = {"path": path, "partitionValues": {"part": part}, "size": 1, "modificationTime": 1, "dataChange": change}
    return {"add": {**body, **stats, **more}}


def remove(path: str, part: str | None = "a", *, change: bool = True, **more: Any) -> Json:
    body = {"path": path, "deletionTimestamp": 1, "dataChange": change, "extendedFileMetadata": True}
    return {"remove": {**body, "partitionValues": {"part": part}, "size": 1, **more}}


def bare_remove(path: str) -> Json:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}


def info(operation: str = "WRITE", *, blind: bool | None = None, **more: Any) -> Json:
    said = {} if blind is None else {"isBlindAppend": blind}
    return {"commitInfo": {"timestamp": 1, "operation": operation, "operationParameters": {}, **said, **more}}


def metadata(
    *,
    fields: list[Json] = FIELDS,
    partitions: tuple[str, ...] = ("part",),
    description: str | None = None,
    **properties: str,
) -> Json:
    schema = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))
    body = {
        "id": "6a2a7a2c-6f4d-4b1b-9d3c-5c2b0a5b7a11",
        **({} if description is None else {"description": description}),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(partitions),
        "configuration": {key.replace("__", "."): value for key, value in properties.items()},
        "createdTime": 1,
    }
    return {"metaData": body}


def protocol(*features: str, readers: tuple[str, ...] = ()) -> Json:
    if not features:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    body: Json = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    listed = {"readerFeatures": list(readers)} if readers else {}
    return {"protocol": {**body, **listed, "writerFeatures": [*readers, *features]}}


def txn(app: str, version: int = 1) -> Json:
    return {"txn": {"appId": app, "version": version, "lastUpdated": 1}}


def domain(name: str, configuration: str = "{}") -> Json:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": False}}


def mark(number: int) -> Json:
    return domain("delta.rowTracking", json.dumps({"rowIdHighWaterMark": number}, separators=(",", ":")))


def dv(name: str) -> Json:
    return {"deletionVector": {"storageType": "i", "pathOrInlineDv": name, "sizeInBytes": 1, "cardinality": 1}}


LEGACY = ("appendOnly", "invariants")
CAN_DELETE = protocol(*LEGACY, readers=("deletionVectors",))
FILES = (add("a1"), add("a2"), add("b1", "b"))
BLIND_A = (info(blind=True), add("w", "a"))
OTHER_A = (info("UPDATE", blind=False), add("w", "a"))
OTHER_B = (info("UPDATE", blind=False), add("w", "b"))
DELETE_A1 = (info("DELETE", blind=False), remove("a1"))


@dataclass(frozen=True)
class Case:
    """A table at version 0, a commit that has read it, the commits that came first, and Delta's verdict on it.

    `verdict` is the rule under Serializable and under WriteSerializable, None where the commit may follow. `files` are
    those that reading `where` reads, for a table whose files have no statistics on columns.
    """

    name: str
    own: tuple[Json, ...]
    winners: tuple[tuple[Json, ...], ...]
    verdict: tuple[str | None, str | None] = (None, None)
    where: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    whole: bool = False
    apps: frozenset[str] = frozenset()
    protocol: Json = None  # type: ignore[assignment]
    metadata: Json = None  # type: ignore[assignment]
    present: tuple[Json, ...] = FILES
    operation: str = "Manual Update"
    created: Json = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.name

    def lines(self, level: str) -> list[Json]:
        """Version 0 of the table, at that isolation level."""
        table = (
            self.created or info("CREATE TABLE"),
            self.protocol or protocol(),
            self.metadata or metadata(),
            *self.present,
        )
        return [self._fitted(line, level) for line in table]

    def winners_at(self, level: str) -> list[list[Json]]:
        return [[self._fitted(line, level) for line in winner] for winner in self.winners]

    def own_at(self, level: str) -> list[Json]:
        return [self._fitted(line, level) for line in self.own]

    def _fitted(self, line: Json, level: str) -> Json:
        """The line for a table of that level, and for one without partitions, if this is one."""
        [(kind, body)] = line.items()
        if kind == "metaData":
            return {kind: {**body, "configuration": {**body["configuration"], "delta.isolationLevel": level}}}
        flat = self.metadata is not None and not self.metadata["metaData"]["partitionColumns"]
        return {kind: {**body, "partitionValues": {}}} if flat and "partitionValues" in body else line

    def reads(self, table: Metadata) -> Reads:
        predicates = tuple(read_predicate(where, table) for where in self.where)
        paths = frozenset(canonical_path(path, ROOT) for path in self.files)
        return Reads(whole_table=self.whole, paths=paths, predicates=predicates, app_ids=self.apps)

    def proposed(self, level: str) -> Proposed:
        state = actions(self.lines(level))
        table = next(found for found in state if isinstance(found, Metadata))
        known = next(found for found in state if isinstance(found, Protocol))
        own = actions([info(self.operation), *self.own_at(level)])
        return Proposed.of(own, reads=self.reads(table), metadata=table, protocol=known)

    def won(self, level: str) -> list[Winner]:
        return [Winner.of(version, actions(lines)) for version, lines in enumerate(self.winners_at(level), 1)]


def actions(lines: list[Json] | tuple[Json, ...]) -> tuple[Action, ...]:
    """The lines as our model has them."""
    data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    return tuple(parse_commit(data, file="case", table_root=ROOT))
