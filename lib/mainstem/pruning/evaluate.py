"""Whether one file may have a row that meets a condition. What the databases do in SQL is measured against this."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any as Anything

from mainstem.engines.filesql import DAY, INTEGER, MOMENT, NUMBER, TIME, Kind
from mainstem.pruning.comparison import days_from
from mainstem.pruning.condition import All, Any, Compare, Condition, HasNull, HasValue, OneOf, Operator, Value
from mainstem.pruning.kinds import TableColumn

# Delta cuts texts to 32 characters and marks a maximum that it cut. Others may not mark it, or may count in UTF-16,
# where 32 are as few as 16 characters: from there on a maximum may be the mere beginning of what is there.
MAYBE_CUT = 16
# How Hive names NULL in a path. Delta writes null instead; a writer that put it here may have meant either.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_UNKNOWN = object()
_STAMP = re.compile(rf"{DAY}T{TIME}\.[0-9]{{3,9}}(Z?)|[1-9][0-9]{{3}}-02-29T{TIME}\.[0-9]{{3,9}}(Z?)")
_LOCAL = re.compile(rf"({DAY})[T ][0-9][0-9]:")
_MOMENT = re.compile(MOMENT)
_INTEGER = re.compile(INTEGER)
_NUMBER = re.compile(NUMBER)


@dataclass(frozen=True, slots=True)
class _File:
    partition_values: Mapping[str, str | None]
    stats: Mapping[str, Anything]
    records: int | None

    def stat(self, section: str, column: TableColumn) -> Anything:
        found: Anything = self.stats.get(section)
        for name in column.path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


def may_match(condition: Condition, partition_values: Mapping[str, str | None], stats: str | None) -> bool:
    """Whether some row of the file may meet the condition; true for all that cannot be decided.

    `partition_values` and `stats` are as the log has them. Statistics that are no JSON object or do not count the
    records are no statistics. Where they say something twice, the last word counts, as it does for Delta.
    """
    parsed = _parsed(stats)
    records = parsed.get("numRecords")
    usable = type(records) is int and 0 <= records < 2**63
    return _holds(condition, _File(partition_values, parsed if usable else {}, records if usable else None))


def _parsed(stats: str | None) -> Mapping[str, Anything]:
    try:
        found = json.loads(stats or "", parse_float=Decimal, parse_constant=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _holds(condition: Condition, file: _File) -> bool:
    if isinstance(condition, bool):
        return condition
    if isinstance(condition, All):
        return all(_holds(part, file) for part in condition.parts)
    if isinstance(condition, Any):
        return any(_holds(part, file) for part in condition.parts)
    if condition.column.partition:
        return partition_holds(condition, file.partition_values.get(condition.column.path[0]))
    if isinstance(condition, HasNull):
        return bool(_count(file, condition.column) != 0)
    if isinstance(condition, HasValue):
        return _has_value(file, condition.column)
    if isinstance(condition, OneOf):
        raise AssertionError("a list of values is for partition columns")
    return _bound_holds(condition, file)


def _count(file: _File, column: TableColumn) -> object:
    found = file.stat("nullCount", column)
    return found if type(found) is int else _UNKNOWN


def _has_value(file: _File, column: TableColumn) -> bool:
    """All records NULL, as counted with deletion vectors or without: then none of those that are left has a value."""
    return file.records is None or _count(file, column) != file.records


def _bound_holds(leaf: Compare, file: _File) -> bool:
    low = leaf.operator in ("<", "<=")
    stat = file.stat("minValues" if low else "maxValues", leaf.column)
    bound = bound_value(leaf.column.kind, stat, low=low)
    if bound is None:
        return _has_value(file, leaf.column)
    if _related(bound, leaf.operator, leaf.value):
        return True
    if leaf.column.kind is not Kind.STRING or low:
        return False
    return len(stat) >= MAYBE_CUT and str(leaf.value).startswith(stat)


def _related(left: Anything, operator: Operator, right: Anything) -> bool:
    if operator in ("<", "<="):
        return bool(left < right or (operator == "<=" and left == right))
    return bool(left > right or (operator == ">=" and left == right))


def bound_value(kind: Kind, stat: Anything, *, low: bool) -> Value | None:
    """A minimum or maximum as a value that is surely not beyond it; None if it cannot be read."""
    if kind is Kind.INTEGER:
        return stat if type(stat) is int else None
    if kind is Kind.DECIMAL:
        return Decimal(stat) if type(stat) in (int, Decimal) and Decimal(stat).is_finite() else None
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return _double(stat) if type(stat) in (int, Decimal) else None
    if type(stat) is not str:
        return None
    if kind is Kind.STRING:
        return stat
    if kind is Kind.DATE:
        return _day(stat)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        return _moment_bound(kind, stat, low=low)
    return None


def _double(number: int | Decimal) -> float | None:
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if abs(found) < float("inf") else None


def _day(text: str) -> str | None:
    try:
        return text if len(text) == 10 and date.fromisoformat(text).isoformat() == text else None
    except ValueError:
        return None


def _moment_bound(kind: Kind, text: str, *, low: bool) -> str | None:
    found = _STAMP.fullmatch(text)
    if found and (found[1] or found[2] or kind is Kind.TIMESTAMP_NTZ):
        # Delta cuts moments to the millisecond: the true maximum may be up to 999 microseconds later.
        return text[:23] + ("000" if low else "999") if _day(text[:10]) else None
    local = _LOCAL.match(text)
    if not local:
        return None
    # In a zone that we do not look at: no zone is more than a day away from UTC.
    return days_from(text, -1) + "T00:00:00.000000" if low else days_from(text, 1) + "T23:59:59.999999"


def partition_holds(leaf: Compare | OneOf | HasNull | HasValue, text: str | None) -> bool:
    """Whether a file of this partition value, as the log has it, may meet a condition on it."""
    textual = leaf.column.kind in (Kind.STRING, Kind.OTHER)
    # An empty text is NULL to the protocol and to every type but string, where Spark reads it as it stands.
    absent = text is None or (text == "" and not textual)
    if isinstance(leaf, HasValue):
        return not absent
    if isinstance(leaf, HasNull):
        return absent or text in ("", HIVE_NULL) or (not textual and typed(leaf.column.kind, text) is None)
    if absent or text is None:
        return False
    value = typed(leaf.column.kind, text)
    if value is None or text == HIVE_NULL:
        return True
    return value in leaf.values if isinstance(leaf, OneOf) else _related(value, leaf.operator, leaf.value)


def typed(kind: Kind, text: str | None) -> Value | None:
    """A partition value as its column's type has it; None if it cannot be read."""
    if text is None:
        return None
    if kind in (Kind.STRING, Kind.OTHER):
        return text
    if kind is Kind.INTEGER:
        return int(text) if _INTEGER.fullmatch(text) else None
    if kind in (Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE):
        number = Decimal(text) if _NUMBER.fullmatch(text) else None
        return number if number is None or kind is Kind.DECIMAL else float(number)
    if kind is Kind.DATE:
        return _day(text)
    if kind is Kind.BOOLEAN:
        return text.lower() if text.lower() in ("true", "false") else None
    if not _MOMENT.fullmatch(text) and not (text[5:10] == "02-29" and _MOMENT.fullmatch(text[:8] + "28" + text[10:])):
        return None
    if _day(text[:10]) is None:
        return None
    return f"{text[:10]}T{text[11:19]}.{text[20:].rstrip('Z'):0<6}"[:26]
