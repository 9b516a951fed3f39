"""Whether the partition values of a file are those of its table: the right columns, each with a value of its type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import orjson

from mainstem.model import Metadata

_INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|NaN|-?Infinity")


@lru_cache(maxsize=256)
def partition_types(schema_json: str, partition_columns: str, properties: str) -> Mapping[str, str]:
    """The type of each partition column by the name that files use for it, its physical one under column mapping."""
    mapped = orjson.loads(properties).get("delta.columnMapping.mode", "none").lower() in ("name", "id")
    wanted = {name.lower() for name in orjson.loads(partition_columns)}
    found = {}
    for field in orjson.loads(schema_json)["fields"]:
        if field["name"].lower() in wanted:
            physical = field["metadata"].get("delta.columnMapping.physicalName") if mapped else None
            found[physical or field["name"]] = field["type"] if isinstance(field["type"], str) else "nested"
    return found


def types_of(metadata: Metadata) -> Mapping[str, str]:
    """The same for a table's metadata."""
    return partition_types(
        metadata.schema_json or '{"fields":[]}', metadata.partition_columns or "[]", metadata.table_properties or "{}"
    )


def misfit(text: str, types: Mapping[str, str]) -> str | None:
    """What is wrong with the partition values of a file, in words; None if nothing is."""
    values: dict[str, Any] = orjson.loads(text)
    if values.keys() != types.keys():
        return f"its partition values are of {sorted(values)}, and the table is partitioned by {sorted(types)}"
    for name, value in values.items():
        if value is None or value == "":
            continue  # Delta writes null, and reads an empty text as null
        if not isinstance(value, str):
            return f"its partition value of {name!r} must be a text"
        if not _fits(value, types[name]):
            return f"its partition value {value[:80]!r} of {name!r} is no {types[name]}"
    return None


def _fits(value: str, kind: str) -> bool:
    if kind in _INTEGERS:
        limit = 2 ** (_INTEGERS[kind] - 1)
        return re.fullmatch(r"[+-]?\d{1,20}", value) is not None and -limit <= int(value) < limit
    if kind in ("float", "double"):
        return _FLOAT.fullmatch(value) is not None
    if kind == "boolean":
        return value.lower() in ("true", "false")
    if kind == "date":
        return _parses(date.fromisoformat, value) or re.fullmatch(r"[+-]?\d{4,7}-\d{2}-\d{2}", value) is not None
    if kind in ("timestamp", "timestamp_ntz"):
        return _parses(datetime.fromisoformat, value.replace("Z", "+00:00"))
    if decimal := _DECIMAL.fullmatch(kind):
        return _fits_decimal(value, precision=int(decimal[1]), scale=int(decimal[2]))
    return True


def _parses(parse: Any, value: str) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def _fits_decimal(value: str, *, precision: int, scale: int) -> bool:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return False
    if not number.is_finite():
        return False
    _, digits, exponent = number.normalize().as_tuple()
    assert isinstance(exponent, int)
    return -exponent <= scale and len(digits) + exponent <= precision - scale
