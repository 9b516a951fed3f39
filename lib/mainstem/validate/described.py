"""What a table says of itself at one version, from whoever says it: the catalog, a checkpoint, Delta."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mainstem.chronicle import properties
from mainstem.deltalog.jsontext import decoded
from mainstem.model import Action, DomainMetadata, Metadata, Protocol, Txn
from mainstem.snapshot import Snapshot


@dataclass(frozen=True)
class Described:
    """Metadata, protocol, domains and application transactions as values that can be compared, whatever their text."""

    metadata_id: str
    schema_json: Any
    partition_columns: Any
    table_properties: Mapping[str, str]
    min_reader_version: int
    min_writer_version: int
    reader_features: Any
    writer_features: Any
    domains: Mapping[str, str] = field(default_factory=dict)
    app_transactions: Mapping[str, int] = field(default_factory=dict)


def of_snapshot(snapshot: Snapshot) -> Described:
    """As the catalog says it."""
    return _described(snapshot.metadata, snapshot.protocol, snapshot.domains, snapshot.app_transactions)


def of_actions(actions: Iterable[Action]) -> Described | None:
    """As these actions say it, of which each is the latest of its kind; None if there is no metadata or protocol."""
    metadata, protocol = None, None
    domains: dict[str, str] = {}
    transactions: dict[str, int] = {}
    for action in actions:
        if isinstance(action, Metadata):
            metadata = action
        elif isinstance(action, Protocol):
            protocol = action
        elif isinstance(action, DomainMetadata) and not action.removed:
            domains[action.domain] = action.configuration
        elif isinstance(action, Txn):
            transactions[action.app_id] = action.txn_version
    if metadata is None or protocol is None:
        return None
    return _described(metadata, protocol, domains, transactions)


def _described(
    metadata: Metadata, protocol: Protocol, domains: Mapping[str, str], transactions: Mapping[str, int]
) -> Described:
    return Described(
        metadata_id=metadata.metadata_id,
        schema_json=decoded(metadata.schema_json or "null"),
        partition_columns=decoded(metadata.partition_columns or "[]"),
        table_properties=properties(metadata),
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
        reader_features=sorted(decoded(protocol.reader_features or "[]")),
        writer_features=sorted(decoded(protocol.writer_features or "[]")),
        domains=domains,
        app_transactions=transactions,
    )


def described_differences(ours: Described, theirs: Described) -> Iterator[tuple[str, Any, Any]]:
    """Each column in which the two differ, with what they say there.

    Transactions that only the catalog still has do not count: a table may ask checkpoints to forget old ones.
    """
    for each in fields(Described):
        left, right = getattr(ours, each.name), getattr(theirs, each.name)
        if each.name == "app_transactions":
            left = {name: number for name, number in left.items() if name in right}
        if left != right:
            yield each.name, left, right
