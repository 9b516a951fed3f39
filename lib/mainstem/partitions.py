"""Whether the partition values of a file are those of its table: the right columns, each with a value of its type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeGuard

import orjson

from mainstem.model import Metadata

_INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
# How values are written. Python's own parsers take more: weeks, digits of other scripts, 1_000, spaces around.
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_FLOAT = re.compile(_NUMBER + "|NaN|-?Infinity")
_EXACT = re.compile(_NUMBER)
_DAY = r"(?P<year>[+-]?[0-9]{4,7})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_DATE = re.compile(_DAY)
_TIME = r"(?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)(?:Z|[+-](?P<zone>[0-9]{2}:[0-9]{2}))?"
_TIMESTAMP = re.compile(f"{_DAY}(?:[ T]{_TIME})?")
_CYCLE = 400  # years, after which the calendar repeats itself


@lru_cache(maxsize=256)
def partition_types(schema_json: str, partition_columns: str, properties: str) -> Mapping[str, str]:
    """The type of each partition column by the name that files use for it, its physical one under column mapping."""
    mapped = orjson.loads(properties).get("delta.columnMapping.mode", "none").lower() in ("name", "id")
    wanted = {name.lower() for name in orjson.loads(partition_columns)}
    found = {}
    for field in orjson.loads(schema_json)["fields"]:
        if field["name"].lower() in wanted:
            physical = (field.get("metadata") or {}).get("delta.columnMapping.physicalName") if mapped else None
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
        return _INTEGER.fullmatch(value) is not None and -limit <= int(value) < limit
    if kind in ("float", "double"):
        return _FLOAT.fullmatch(value) is not None
    if kind == "boolean":
        return value.lower() in ("true", "false")
    if kind == "date":
        return _is_day(_DATE.fullmatch(value))
    if kind in ("timestamp", "timestamp_ntz"):
        found = _TIMESTAMP.fullmatch(value)
        return _is_day(found) and _is_time(found["time"]) and _is_time(found["zone"])
    if decimal := _DECIMAL.fullmatch(kind):
        return _fits_decimal(value, precision=int(decimal[1]), scale=int(decimal[2]))
    return True


def _is_day(found: re.Match[str] | None) -> TypeGuard[re.Match[str]]:
    if found is None:
        return False
    try:
        date(_CYCLE + int(found["year"]) % _CYCLE, int(found["month"]), int(found["day"]))
    except ValueError:
        return False
    return True


def _is_time(text: str | None) -> bool:
    """Whether this is a time of day; none given is midnight."""
    hours, *rest = (text or "00:00").split(":")
    return int(hours) < 24 and all(float(each) < 60 for each in rest)


def _fits_decimal(value: str, *, precision: int, scale: int) -> bool:
    if _EXACT.fullmatch(value) is None:
        return False
    _, digits, exponent = Decimal(value).as_tuple()  # exact, unlike all that a Decimal is asked to work out
    assert isinstance(exponent, int)
    said = list(digits)
    while said and said[-1] == 0:
        said.pop()
        exponent += 1
    return not said or (-exponent <= scale and len(said) + exponent <= precision - scale)
