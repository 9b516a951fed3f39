"""What a table's columns are for pruning: where their values stand in a file's statistics, and how they compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from mainstem.engines.filesql import Kind
from mainstem.errors import UsageError

_KINDS = {
    "byte": Kind.INTEGER,
    "short": Kind.INTEGER,
    "integer": Kind.INTEGER,
    "long": Kind.INTEGER,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamp_ntz": Kind.TIMESTAMP_NTZ,
    "boolean": Kind.BOOLEAN,
}
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_MOST_NAMED = 30


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column, or a field of a struct column: `path` holds the names that the files' statistics use for it."""

    name: str
    path: tuple[str, ...]
    kind: Kind
    partition: bool = False
    bits: int = 64
    precision: int = 38
    scale: int = 0


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table at one version, found by name as Spark finds them: whatever the case."""

    fields: Sequence[Mapping[str, Any]]
    partition_columns: frozenset[str]
    mapped: bool

    def find(self, names: Sequence[str]) -> TableColumn:
        """The column of that name; for `a.b`, the field `b` of the struct column `a`."""
        fields: Sequence[Mapping[str, Any]] | None = self.fields
        path: list[str] = []
        found: Mapping[str, Any] = {}
        for depth, name in enumerate(names):
            if fields is None:
                # A step into an array or a map: values are there, statistics are not.
                return TableColumn(".".join(names), tuple(path), Kind.OTHER)
            wanted = [field for field in fields if field["name"].lower() == name.lower()]
            if not wanted:
                raise self._unknown(names, depth)
            found = wanted[0]
            path.append(self._physical(found))
            fields = _inside(found["type"])
        partition = len(names) == 1 and found["name"].lower() in self.partition_columns
        return _column(".".join(names), tuple(path), found, partition=partition)

    def leaves(self) -> Iterator[TableColumn]:
        """Every column that is no struct, and every such field of those that are: all of them in one walk."""
        waiting: list[tuple[tuple[str, ...], tuple[str, ...], Mapping[str, Any]]]
        waiting = [((), (), field) for field in reversed(self.fields)]
        while waiting:
            names, path, field = waiting.pop()
            names, path = (*names, field["name"]), (*path, self._physical(field))
            inside = _inside(field["type"])
            if inside is None:
                partition = len(names) == 1 and field["name"].lower() in self.partition_columns
                yield _column(".".join(names), path, field, partition=partition)
            else:
                waiting += [(names, path, each) for each in reversed(inside)]

    def _physical(self, field: Mapping[str, Any]) -> str:
        metadata = field.get("metadata") or {}
        name: str = (metadata.get("delta.columnMapping.physicalName") if self.mapped else None) or field["name"]
        return name

    def _unknown(self, names: Sequence[str], depth: int) -> UsageError:
        known = list(_names(self.fields))
        more = f" and {len(known) - _MOST_NAMED} more" if known[_MOST_NAMED:] else ""
        owner = "the table" if depth == 0 else ".".join(names[:depth])
        return UsageError(
            f"the predicate names {'.'.join(names)!r}, but {owner} has no {names[depth]!r}.",
            hint=f"There are {', '.join(known[:_MOST_NAMED])}{more}.",
        )


def table_columns(schema_json: str, partition_columns: Sequence[str], properties: Mapping[str, str]) -> TableColumns:
    """The columns that a table's metadata describes."""
    mapped = properties.get("delta.columnMapping.mode", "none").lower() in ("name", "id")
    lowered = frozenset(name.lower() for name in partition_columns)
    return TableColumns(orjson.loads(schema_json)["fields"], lowered, mapped)


def _inside(kind: Any) -> Sequence[Mapping[str, Any]] | None:
    if isinstance(kind, dict) and kind.get("type") == "struct":
        fields: Sequence[Mapping[str, Any]] = kind["fields"]
        return fields
    return None


def _column(name: str, path: tuple[str, ...], field: Mapping[str, Any], *, partition: bool) -> TableColumn:
    declared = field["type"]
    if not isinstance(declared, str):
        return TableColumn(name, path, Kind.OTHER, partition)
    if decimal := _DECIMAL.fullmatch(declared):
        return TableColumn(name, path, Kind.DECIMAL, partition, precision=int(decimal[1]), scale=int(decimal[2]))
    kind = _KINDS.get(declared, Kind.OTHER)
    if kind is Kind.STRING and _compares_otherwise(field.get("metadata") or {}):
        kind = Kind.OTHER
    if kind is Kind.DOUBLE and _was_float(field.get("metadata") or {}):
        kind = Kind.FLOAT  # older files say 0.1 of what is 0.10000000149 as a double
    return TableColumn(name, path, kind, partition, bits=_BITS.get(declared, 64))


def _compares_otherwise(metadata: Mapping[str, Any]) -> bool:
    """Whether a text is compared by a collation, or as char(n) padded with blanks, and not by its bytes."""
    declared = str(metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).lower()
    return "__COLLATIONS" in metadata or declared.startswith("char")


def _was_float(metadata: Mapping[str, Any]) -> bool:
    """Whether the column was widened from 32 bits."""
    changes = metadata.get("delta.typeChanges")
    return isinstance(changes, list) and any(
        isinstance(change, dict) and change.get("fromType") == "float" for change in changes
    )


def _names(fields: Sequence[Mapping[str, Any]], prefix: str = "") -> Iterator[str]:
    for field in fields:
        inside = _inside(field["type"])
        if inside is None:
            yield prefix + field["name"]
        else:
            yield from _names(inside, f"{prefix}{field['name']}.")
