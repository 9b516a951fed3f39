"""Delta's actions as rows of the `dl_*` tables, and back: which columns each kind has, in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

from mainstem.model import (
    Action,
    AddFile,
    CdcFile,
    DomainMetadata,
    Metadata,
    OtherAction,
    Protocol,
    RemoveFile,
    Txn,
)

_RENAMED = {(DomainMetadata, "app_key"): "domain_key"}


class Shape(NamedTuple):
    """The table of one kind of action: its key columns, then the action's own."""

    table: str
    kind: type[Any]
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]

    @property
    def all_columns(self) -> tuple[str, ...]:
        return self.keys + self.columns

    def prefixed(self, row: dict[str, Any], prefix: str) -> Action | None:
        """The action in those columns of a wider row that begin so; none, if there is no such row."""
        if row[prefix + "seq"] is None:
            return None
        return self.action({column: row[prefix + column] for column in self.columns})

    def action(self, row: dict[str, Any]) -> Action:
        """The action that a row holds. Engines that know no booleans or bytes of their own are put right here."""
        names = [field.name for field in fields(self.kind)]
        values = {name: row[column] for name, column in zip(names, self.columns, strict=True)}
        for field in fields(self.kind):
            value = values[field.name]
            if value is not None and "bool" in str(field.type):
                values[field.name] = bool(value)
            elif isinstance(value, memoryview | bytearray):
                values[field.name] = bytes(value)
        found: Action = self.kind(**values)
        return found


def _shape(table: str, kind: type[Any], *span: str) -> Shape:
    names = [field.name for field in fields(kind)]
    columns = tuple(_RENAMED.get((kind, name), name) for name in names)
    return Shape(table, kind, ("table_id", "version", *span), columns, attrgetter(*names))


ADDS = _shape("dl_add_files", AddFile, "removed_version")
REMOVES = _shape("dl_remove_files", RemoveFile)
TXNS = _shape("dl_txn_actions", Txn, "superseded_version")
DOMAINS = _shape("dl_domain_metadata", DomainMetadata, "superseded_version")
METADATA = _shape("dl_metadata_updates", Metadata)
PROTOCOL = _shape("dl_protocol_updates", Protocol)
CDC = _shape("dl_cdc_files", CdcFile)
OTHER = _shape("dl_other_actions", OtherAction)
SHAPES: Sequence[Shape] = (ADDS, REMOVES, TXNS, DOMAINS, METADATA, PROTOCOL, CDC, OTHER)
BY_KIND = {shape.kind: shape for shape in SHAPES}

VERSION_COLUMNS = (
    "table_id",
    "version",
    "committed_at",
    "kind",
    "committer",
    "operation",
    "operation_params",
    "commit_info",
    "txn_id",
    "group_id",
    "content_sha256",
)
