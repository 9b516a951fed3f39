"""Versions as the catalog has recorded them, back as actions and as the bytes of their commit files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.serialize import serialize_commit
from mainstem.errors import CorruptCatalog
from mainstem.model import Action, CommitInfo
from mainstem.rows import DOMAINS, METADATA, PROTOCOL, SHAPES, TXNS, Shape
from mainstem.store import Queries, as_utc

# What can matter to every commit: files are fetched beside them only where they can.
CONTROL: Sequence[Shape] = (TXNS, DOMAINS, METADATA, PROTOCOL)


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """One version with its actions in the order of its file; commitInfo first, where it has one."""

    version: int
    committed_at: datetime
    kind: str
    operation: str | None
    committer: str | None
    txn_id: str | None
    group_id: str | None
    content_sha256: str | None
    info: CommitInfo | None
    actions: tuple[Action, ...]

    def commit_file(self, *, table: str) -> bytes:
        """The bytes of its commit file. Raises `CorruptCatalog` if they are not those that were ratified."""
        data = serialize_commit(self.actions)
        if self.content_sha256 is not None and sha256(data).hexdigest() != self.content_sha256:
            raise CorruptCatalog(
                f"the rows of version {self.version} of {table} are not those that were committed: "
                "their serialization has another sha256.",
                hint=f"Nothing was published. See: mainstem validate {table}",
                table=table,
                version=self.version,
            )
        return data


def recorded(
    queries: Queries, table_id: str, *, first: int, last: int, shapes: Sequence[Shape] = SHAPES
) -> list[RecordedVersion]:
    """The versions from `first` to `last`, with the actions of these shapes; all of them, if not said otherwise."""
    bounds = {"table_id": table_id, "first": first, "last": last}
    found: dict[int, list[Action]] = defaultdict(list)
    for shape in there_are(queries, table_id, first=first, last=last, shapes=shapes):
        for version, action in _actions(queries, shape, bounds):
            found[version].append(action)
    return [_version(row, found[row["version"]]) for row in queries.rows("versions_between", **bounds)]


def there_are(
    queries: Queries, table_id: str, *, first: int, last: int, shapes: Sequence[Shape] = SHAPES
) -> Sequence[Shape]:
    """Those of these shapes of which the versions from `first` to `last` have any action."""
    if not shapes:
        return ()
    [row] = queries.rows("kinds_between", table_id=table_id, first=first, last=last)
    return among(row, shapes)


def among(kinds: Mapping[str, Any], shapes: Sequence[Shape]) -> Sequence[Shape]:
    """Those of these shapes of which the query `kinds_between` has found any action."""
    return [shape for shape in shapes if kinds[shape.table]]


def _actions(queries: Queries, shape: Shape, bounds: dict[str, Any]) -> Iterator[tuple[int, Action]]:
    pieces = {"columns": ", ".join(shape.columns), "target": shape.table}
    for row in queries.rows("actions_between", pieces, **bounds):
        yield row["version"], shape.action(row)


def _version(row: dict[str, Any], actions: list[Action]) -> RecordedVersion:
    info = commit_info(row["commit_info"], version=row["version"])
    ordered = sorted(actions, key=lambda action: action.seq)
    return RecordedVersion(
        version=row["version"],
        committed_at=as_utc(row["committed_at"]),
        kind=row["kind"],
        operation=row["operation"],
        committer=row["committer"],
        txn_id=row["txn_id"],
        group_id=None if row["group_id"] is None else str(row["group_id"]),
        content_sha256=row["content_sha256"],
        info=info,
        actions=(*(() if info is None else (info,)), *ordered),
    )


def commit_info(body: str | None, *, version: int) -> CommitInfo | None:
    """The commitInfo whose verbatim text this is."""
    if body is None:
        return None
    line = b'{"commitInfo":' + body.replace("\n", " ").encode() + b"}"
    [info] = parse_commit(line, file=commit_name(version), table_root="")
    assert isinstance(info, CommitInfo)
    return info
