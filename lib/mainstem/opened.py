"""What a snapshot says before anybody asks for its files: which version it is, its metadata, protocol and registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mainstem.model import Action
from mainstem.resolve import Resolved
from mainstem.rows import METADATA, PROTOCOL
from mainstem.store import Queries, Row, as_utc


@dataclass(frozen=True, slots=True)
class Opened:
    """One version as it was when it was opened. `metadata` and `protocol` are None only in a catalog that lost them."""

    table_id: str
    at: Resolved
    metadata: Action | None
    protocol: Action | None
    domains: Mapping[str, str]
    app_transactions: Mapping[str, int]


def opened_at_head(queries: Queries, name: str) -> Opened | None:
    """The newest version of the table of this name, seen at one moment; None if it has none that can be read."""
    rows = queries.rows("opened_at_head", name=name)
    row = next((row for row in rows if row["kind"] == "table"), None)
    if row is None or row["version"] < row["min_readable_version"]:
        return None
    at = Resolved(row["version"], as_utc(row["committed_at"]), row["content_sha256"], is_head=True)
    return _opened(row["table_id"], at, row, rows)


def opened_at(queries: Queries, table_id: str, at: Resolved) -> Opened:
    """A version that was resolved, by several statements: the caller asks afterwards whether it is still there."""
    bounds = {"table_id": table_id, "version": at.version}
    described = queries.row("described_at", **bounds)
    return _opened(table_id, at, described, queries.rows("registered_at", **bounds))


def _opened(table_id: str, at: Resolved, described: Row | None, registered: Sequence[Row]) -> Opened:
    metadata, protocol = (
        described and shape.prefixed(described, prefix) for shape, prefix in ((METADATA, "m_"), (PROTOCOL, "p_"))
    )
    return Opened(
        table_id=table_id,
        at=at,
        metadata=metadata or None,
        protocol=protocol or None,
        domains={row["name"]: row["said"] for row in registered if row["kind"] == "domain"},
        app_transactions={row["name"]: row["number"] for row in registered if row["kind"] == "application"},
    )
