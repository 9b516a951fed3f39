"""What the values of a table's columns mean, however a writer has spelled them in statistics or partition values.

Writers spell as they like, and a finding must be true: what cannot be read as the column's type is never called wrong.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from mainstem.deltalog.jsontext import decoded
from mainstem.engines.filesql import NUMBER, Kind
from mainstem.errors import MainstemError
from mainstem.pruning import TableColumn, table_columns
from mainstem.pruning.evaluate import HIVE_NULL, MAYBE_CUT
from mainstem.snapshot import Snapshot

Names = tuple[str, ...]

_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, *_FLOATS)
_MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_NUMBER = re.compile(NUMBER, re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?(?:(Z|UTC)|([+-])(\d\d):?(\d\d))?", re.ASCII
)
# Delta cuts moments in statistics to the millisecond, others do not.
_CUT = timedelta(milliseconds=1)
_DIGITS = 1000  # beyond which no column's number is, and arithmetic overflows
# Before it Spark's older writers have days of another calendar and zones of odd seconds, and readers differ.
_SURE_SINCE = 1900


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_EXACT = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


@dataclass(frozen=True)
class TypedColumns:
    """The columns of a table by the names that statistics use for them: of a nested one, all that lead to it.

    `exact` says that some are decimals, whose numbers must be read digit by digit.
    """

    known: Mapping[Names, TableColumn]
    exact: bool

    def find(self, names: Names) -> TableColumn | None:
        """The column, or None if there is none of this name whose values have a type."""
        return self.known.get(names)

    def name(self, names: Names) -> str:
        """How the table's users call the column."""
        column = self.find(names)
        return ".".join(names) if column is None else column.name

    def read(self, text: str | None) -> Mapping[str, Any] | None:
        """Statistics as the object that they are; None for what is no JSON, or no object."""
        try:
            found = _EXACT.decode(text or "") if self.exact else decoded(text or "")
        except (ValueError, ArithmeticError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


def typed_columns(snapshot: Snapshot) -> TypedColumns:
    """The columns of the table at the snapshot's version; none for a schema that cannot be read."""
    try:
        columns = table_columns(snapshot.schema_json, snapshot.partition_columns, snapshot.properties)
        found = list(columns.leaves())
    except (MainstemError, ValueError, LookupError, TypeError, AttributeError):
        found = []
    return TypedColumns({column.path: column for column in found}, any(each.kind is Kind.DECIMAL for each in found))


def leaves(section: Any) -> Iterator[tuple[Names, Any]]:
    """The values of one section of statistics, each with the names that lead to it; none where it is no object."""
    waiting: list[tuple[Names, Any]] = [((), section)] if isinstance(section, dict) else []
    while waiting:
        names, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*names, name), inner) for name, inner in reversed(value.items())]
        else:
            yield names, value


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number: to Python a truth value is one, too."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


class _Moment(NamedTuple):
    """A moment in UTC, or where nothing says the zone, as it stands there."""

    zoned: bool
    at: datetime


def is_above(column: TableColumn, least: Any, most: Any) -> bool:
    """Whether a minimum is surely above its maximum."""
    low, high = _value(column, least), _value(column, most)
    if low is None or high is None:
        return False
    if isinstance(low, _Moment):
        # Local times of a zone that nobody names may go back where its summer ends.
        sure = low.zoned == high.zoned and (low.zoned or column.kind is Kind.TIMESTAMP_NTZ)
        return sure and bool(low.at - high.at >= _CUT)
    if column.kind is Kind.STRING and len(high) >= MAYBE_CUT and low.startswith(high):
        return False  # a maximum that was cut
    return bool(low > high)


def is_other_bound(column: TableColumn, ours: Any, theirs: Any) -> bool:
    """Whether two minima, or two maxima, of one column surely mean two values."""
    left, right = _value(column, ours), _value(column, theirs)
    if left is None or right is None or left == right:
        return False
    if isinstance(left, _Moment):
        apart = left.zoned == right.zoned and abs(left.at - right.at) > _CUT
        return bool(apart and min(left.at, right.at).year >= _SURE_SINCE)
    if column.kind is Kind.DATE:
        return bool(min(left, right).year >= _SURE_SINCE)
    if column.kind is Kind.STRING:
        return min(len(left), len(right)) < MAYBE_CUT or bool(left[:MAYBE_CUT] != right[:MAYBE_CUT])
    if column.kind is Kind.DECIMAL:
        # Some write decimals by way of doubles: that adds less than one of the last digit, or what no double shows.
        return abs(left - right) >= Decimal(1).scaleb(-column.scale) and float(left) != float(right)
    return True


def is_other_partition(column: TableColumn | None, ours: str | None, theirs: str | None) -> bool:
    """Whether two partition values of a column surely mean two values. An empty one is null, and so is Hive's word."""
    left, right = (None if text in ("", HIVE_NULL) else text for text in (ours, theirs))
    if left is None or right is None or left == right:
        return left != right
    if column is None or column.kind in (Kind.STRING, Kind.OTHER):
        return left.rstrip(" ") != right.rstrip(" ")  # char(n) may be padded
    if left.lower() == right.lower():
        return False
    mine, other = _value(column, left), _value(column, right)
    if mine is None or other is None:
        # Days, moments and infinity have more spellings than are read here; whole numbers and decimals have not.
        return column.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN)
    if isinstance(mine, _Moment) and mine.zoned != other.zoned:
        return False
    return bool(mine != other)


def _value(column: TableColumn, value: Any) -> Any:
    """A value of JSON as one that compares as the column's type does; None for what cannot be read as that."""
    if column.kind in _NUMBERS:
        return _number(column.kind, value)
    if column.kind is Kind.BOOLEAN:
        return value if isinstance(value, bool) else None
    if type(value) is not str:
        return None
    if column.kind is Kind.STRING:
        return value
    if column.kind is Kind.DATE:
        return _day(value)
    return _moment(value) if column.kind in _MOMENTS else None


def _number(kind: Kind, value: Any) -> int | float | Decimal | None:
    if isinstance(value, str):
        value = Decimal(value) if _NUMBER.fullmatch(value) else None
    if not is_number(value):
        return None
    if kind in _FLOATS:
        return _float(value, single=kind is Kind.FLOAT)
    found = Decimal(value)
    return found if found.is_finite() and abs(found.adjusted()) < _DIGITS else None


def _float(value: int | float | Decimal, *, single: bool) -> float | None:
    try:
        # A float is written as any decimal that rounds to it.
        found = float(value)
        if single:
            found = struct.unpack("f", struct.pack("f", found))[0]
    except OverflowError:
        return None
    return found if abs(found) < float("inf") else None


def _day(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.isoformat() == text else None


def _moment(text: str) -> _Moment | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, time, fraction, utc, sign, hours, minutes = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{time or '00:00:00'}.{(fraction or '')[:6]:0<6}")
        if sign:
            east = timedelta(hours=int(hours), minutes=int(minutes))
            at += east if sign == "-" else -east
    except (ValueError, OverflowError):
        return None  # a year that Python does not know, or a day that no calendar has
    return _Moment(bool(utc or sign), at)
