"""The types of `stats_parsed` and `partitionValues_parsed`, from a table's schema. Values only.

Statistics cover the columns that Delta collects them for: those that `delta.dataSkippingStatsColumns` names, else the
first `delta.dataSkippingNumIndexedCols` leaves, 32 unless set. What a file says beyond them stays in its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

STATS = "stats_parsed"
PARTITION = "partitionValues_parsed"

_NAMED = "delta.dataSkippingStatsColumns"
_COUNT = "delta.dataSkippingNumIndexedCols"
_DEFAULT_COUNT = 32
_TYPES = {
    "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
_PARTITION_TYPES = {**_TYPES, "boolean": pa.bool_(), "binary": pa.binary()}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_NAME = re.compile(r"`(?:[^`]|``)+`|[^,.`]+|[,.]")

Field = Mapping[str, Any]


class Leaf(NamedTuple):
    """A column that is no struct: its names in the schema and in files, and its type as the schema says it."""

    names: tuple[str, ...]
    path: tuple[str, ...]
    kind: Any


def stats_type(
    schema_json: str, partition_columns: Sequence[str], properties: Mapping[str, str], *, vectors: bool
) -> pa.StructType:
    """The struct of a file's statistics; with `vectors`, it can say that rows were marked since they were collected."""
    leaves = _covered(_leaves(schema_json, set(partition_columns), properties), properties)
    bounds = _tree([(leaf.path, found) for leaf in leaves if (found := _bound_type(leaf.kind)) is not None])
    nulls = _tree([(leaf.path, pa.int64()) for leaf in leaves])
    fields = [pa.field("numRecords", pa.int64())]
    fields += [pa.field(name, bounds) for name in ("minValues", "maxValues") if bounds is not None]
    fields += [pa.field("nullCount", nulls)] if nulls is not None else []
    fields += [pa.field("tightBounds", pa.bool_())] if vectors else []
    return pa.struct(fields)


def partition_type(
    schema_json: str, partition_columns: Sequence[str], properties: Mapping[str, str]
) -> pa.StructType | None:
    """The struct of a file's partition values; None without any, or if one cannot be said.

    A timestamp cannot: its text names no zone, and which one it meant is known to its writer only.
    """
    by_name = {leaf.names[0]: leaf for leaf in _leaves(schema_json, set(), properties) if len(leaf.names) == 1}
    fields = []
    for name in partition_columns:
        leaf = by_name.get(name)
        kind = None if leaf is None or leaf.kind == "timestamp" else _plain_type(leaf.kind, _PARTITION_TYPES)
        if leaf is None or kind is None:
            return None
        fields.append(pa.field(leaf.path[0], kind))
    return pa.struct(fields) if fields else None


def _bound_type(kind: Any) -> pa.DataType | None:
    return _plain_type(kind, _TYPES)


def _plain_type(kind: Any, types: Mapping[str, pa.DataType]) -> pa.DataType | None:
    if not isinstance(kind, str):
        return None
    if decimal := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(decimal[1]), int(decimal[2])) if 1 <= int(decimal[1]) <= 38 else None
    return types.get(kind)


def _leaves(schema_json: str, without: set[str], properties: Mapping[str, str]) -> list[Leaf]:
    mapped = properties.get("delta.columnMapping.mode", "none").lower() in ("name", "id")

    def walk(fields: Sequence[Field], names: tuple[str, ...], path: tuple[str, ...]) -> Iterator[Leaf]:
        for field in fields:
            physical = (field.get("metadata") or {}).get("delta.columnMapping.physicalName") if mapped else None
            here = (*names, field["name"]), (*path, physical or field["name"])
            kind = field["type"]
            if isinstance(kind, dict) and kind.get("type") == "struct":
                yield from walk(kind["fields"], *here)
            else:
                yield Leaf(*here, kind)

    return [leaf for leaf in walk(orjson.loads(schema_json)["fields"], (), ()) if leaf.names[0] not in without]


def _covered(leaves: list[Leaf], properties: Mapping[str, str]) -> list[Leaf]:
    if _NAMED in properties:
        wanted = _columns(properties[_NAMED])
        return [leaf for leaf in leaves if any(tuple(map(str.lower, leaf.names[: len(w)])) == w for w in wanted)]
    text = properties.get(_COUNT, str(_DEFAULT_COUNT))
    count = int(text) if re.fullmatch(r"-?\d{1,9}", text) else _DEFAULT_COUNT
    return leaves if count < 0 else leaves[:count]


def _columns(text: str) -> set[tuple[str, ...]]:
    """The columns of a list such as ``a, b.c, `x,y` ``, in lower case."""
    columns: list[list[str]] = [[]]
    for token in _NAME.findall(text):
        if token == ",":
            columns.append([])
        elif token != "." and token.strip():
            plain = token.strip()
            columns[-1].append((plain[1:-1].replace("``", "`") if plain.startswith("`") else plain).lower())
    return {tuple(column) for column in columns if column}


def _tree(leaves: Sequence[tuple[tuple[str, ...], pa.DataType]]) -> pa.StructType | None:
    """The struct that has these leaves at these paths; None without any."""
    below: dict[str, list[tuple[tuple[str, ...], pa.DataType]]] = {}
    for path, kind in leaves:
        below.setdefault(path[0], []).append((path[1:], kind))
    fields = [pa.field(name, found[0][1] if not found[0][0] else _tree(found)) for name, found in below.items()]
    return pa.struct(fields) if fields else None
