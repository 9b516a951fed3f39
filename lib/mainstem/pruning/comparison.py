"""From `column operator constant` to a condition, by the column's type and Spark's rules of comparison.

Constants are first put on the grid of the column's own values (`n < 1.5` is `n <= 1`), so that what reaches a database
is a plain comparison within one type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Literal

from mainstem.engines.filesql import Kind
from mainstem.pruning import literals
from mainstem.pruning.condition import Compare, Condition, HasValue, OneOf, Operator, Value, all_of, any_of
from mainstem.pruning.kinds import TableColumn
from mainstem.pruning.literals import Constant

AnyOperator = Literal["<", "<=", ">", ">=", "=", "!="]
NEGATED: dict[AnyOperator, AnyOperator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}
FLIPPED: dict[AnyOperator, AnyOperator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}

# Beyond so many values a list is looked at as the range from its least to its greatest.
MOST_LISTED = 16
# Statistics of a float are written as decimals that round to it, and so may its constant be: both within half a step.
_FLOAT_SLACK = 3e-7
_WIDE = Context(prec=200)
# No zone of Java's is further away from UTC.
_FARTHEST_ZONE = timedelta(hours=18)
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


def compare(column: TableColumn, operator: AnyOperator, constant: Constant) -> Condition:
    """What a file must show so that some row may have `column operator constant` true."""
    if constant.value is None:
        return False  # a comparison with NULL is never true
    if operator == "!=":
        return any_of([compare(column, "<", constant), compare(column, ">", constant)])
    if column.kind is Kind.BOOLEAN:
        return _boolean(column, operator, constant)
    inexact = column.kind in (Kind.FLOAT, Kind.DOUBLE) or _may_be_off(column, constant)
    if operator == "=" and column.partition and not inexact:
        return one_of(column, [constant])
    if operator == "=" and column.kind in (Kind.INTEGER, Kind.DECIMAL) and _exactly(column, constant) is None:
        return False  # no integer is 1.5
    if operator == "=":
        return all_of([compare(column, "<=", constant), compare(column, ">=", constant)])
    return _ordered(column, operator, constant)


def one_of(column: TableColumn, constants: Sequence[Constant]) -> Condition:
    """What a file must show so that some row may have `column IN (constants)` true."""
    constants = [constant for constant in constants if constant.value is not None]
    if not constants:
        return False
    inexact = (
        column.kind in (Kind.BOOLEAN, Kind.FLOAT)
        or (column.partition and column.kind is Kind.DOUBLE)
        or any(_may_be_off(column, constant) for constant in constants)
    )
    if inexact or not (column.partition or len(constants) > MOST_LISTED):
        return any_of(compare(column, "=", constant) for constant in constants)
    exact = [_exactly(column, constant) for constant in constants]
    if any(value is _UNDECIDED for value in exact):
        return HasValue(column)
    values: list[Value] = list(dict.fromkeys(value for value in exact if value is not None))  # type: ignore[misc]
    if not values:
        return False
    if column.partition:
        return OneOf(column, tuple(values))
    return all_of([Compare(column, ">=", min(values)), Compare(column, "<=", max(values))])


_UNDECIDED = object()


def _exactly(column: TableColumn, constant: Constant) -> object:
    """The one value of the column that equals the constant; None if none can, _UNDECIDED if we do not know."""
    at_most, at_least = _ordered(column, "<=", constant), _ordered(column, ">=", constant)
    if False in (at_most, at_least):
        return None
    if isinstance(at_most, Compare) and isinstance(at_least, Compare):
        return at_most.value if at_most.value == at_least.value else None
    # One side holds for every value, so the constant lies outside of the type; or nothing is known.
    return None if isinstance(at_most, Compare) or isinstance(at_least, Compare) else _UNDECIDED


def starts_with(column: TableColumn, prefix: str) -> Condition:
    """What a file must show so that some text may begin with `prefix`."""
    if column.kind is not Kind.STRING or not prefix:
        return HasValue(column)
    after = _after(prefix)
    upper: Condition = True if after is None else Compare(column, "<", after)
    return all_of([Compare(column, ">=", prefix), upper])


def starts_otherwise(column: TableColumn, prefix: str) -> Condition:
    """What a file must show so that some text may begin with anything but `prefix`."""
    if not prefix:
        return False
    if column.kind is not Kind.STRING:
        return HasValue(column)
    after = _after(prefix)
    upper: Condition = False if after is None else Compare(column, ">=", after)
    return any_of([Compare(column, "<", prefix), upper])


def _after(prefix: str) -> str | None:
    """The least text that is greater than every text with this prefix, in the order of code points."""
    shorter = prefix.rstrip("\U0010ffff")
    if not shorter:
        return None
    following = ord(shorter[-1]) + 1
    return shorter[:-1] + chr(0xE000 if following == 0xD800 else following)


def _boolean(column: TableColumn, operator: AnyOperator, constant: Constant) -> Condition:
    # Delta keeps no minimum of booleans, other writers do as they like: only partition values are exact.
    if operator == "=" and column.partition and isinstance(constant.value, bool):
        return OneOf(column, ("true" if constant.value else "false",))
    return HasValue(column)


def _ordered(column: TableColumn, operator: Operator, constant: Constant) -> Condition:
    value = constant.value
    if isinstance(value, bool):
        return HasValue(column)
    if _may_be_off(column, constant):
        operator, value = _loosened(operator, literals.as_moment(value, zoned=column.kind is Kind.TIMESTAMP))
    if column.kind in (Kind.INTEGER, Kind.DECIMAL):
        number = _number(column, value)
        return HasValue(column) if number is None else _on_grid(column, operator, number)
    if column.kind in (Kind.FLOAT, Kind.DOUBLE):
        double = literals.as_double(value)
        return HasValue(column) if double is None else _floating(column, operator, double)
    if column.kind is Kind.STRING:
        return Compare(column, operator, value) if isinstance(value, str) else HasValue(column)
    if column.kind is Kind.DATE:
        return _day(column, operator, value)
    if column.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        moment = literals.as_moment(value, zoned=column.kind is Kind.TIMESTAMP)
        return HasValue(column) if moment is None else Compare(column, operator, moment_text(moment))
    return HasValue(column)


def _may_be_off(column: TableColumn, constant: Constant) -> bool:
    """Whether the zone of a session that is not in UTC moves the constant along the column's values."""
    if not constant.elsewhere or column.kind not in _MOMENTS:
        return False
    if column.kind is Kind.TIMESTAMP:
        # A partition's own moment may be written without a zone, too.
        return column.partition or not literals.says_zone(constant)
    return isinstance(constant.value, datetime)


def _loosened(operator: Operator, moment: datetime | None) -> tuple[Operator, datetime | None]:
    """The comparison with a moment that may be anywhere within the zones."""
    try:
        if operator in ("<", "<="):
            return "<=", None if moment is None else moment + _FARTHEST_ZONE
        return ">=", None if moment is None else moment - _FARTHEST_ZONE
    except OverflowError:
        return operator, None


def _number(column: TableColumn, value: object) -> Fraction | None:
    """The constant beside a column of exact numbers; None where Spark rounds before it compares."""
    if isinstance(value, str):
        value = literals.as_integer(value) if column.kind is Kind.INTEGER else None
        return None if value is None or abs(value) >= 2**63 else Fraction(value)
    if isinstance(value, float):
        # Spark compares as doubles: below 2^53 that is exact for integers, and decimals are rounded.
        return Fraction(value) if column.kind is Kind.INTEGER and abs(value) < 2**53 else None
    if isinstance(value, int):
        return Fraction(value) if abs(value) < 10**20 or column.kind is Kind.INTEGER else None
    if isinstance(value, Decimal):
        digits, exponent = value.as_tuple().digits, int(value.as_tuple().exponent)
        before = 20 if column.kind is Kind.INTEGER else column.precision - column.scale
        # Where the common type of both would need more than 38 digits, Spark drops some behind the point.
        if max(before, len(digits) + exponent) + max(column.scale, -exponent) > 38:
            return None
        return Fraction(value)
    return None


def _on_grid(column: TableColumn, operator: Operator, number: Fraction) -> Condition:
    step = Fraction(10) ** -column.scale if column.kind is Kind.DECIMAL else Fraction(1)
    # The greatest value of the type; the least is its mirror, with one more for integers.
    if column.kind is Kind.DECIMAL:
        most = (10**column.precision - 1) * step
        least = -most
    else:
        most, least = Fraction(2 ** (column.bits - 1) - 1), Fraction(-(2 ** (column.bits - 1)))
    steps = number / step
    if operator in ("<", "<="):
        bound = step * (math.ceil(steps) - 1 if operator == "<" else math.floor(steps))
        if bound > most:
            return HasValue(column)
        return False if bound < least else Compare(column, "<=", _exact(column, bound))
    bound = step * (math.floor(steps) + 1 if operator == ">" else math.ceil(steps))
    if bound < least:
        return HasValue(column)
    return False if bound > most else Compare(column, ">=", _exact(column, bound))


def _exact(column: TableColumn, bound: Fraction) -> Value:
    if column.kind is Kind.INTEGER:
        return int(bound)
    return _WIDE.divide(Decimal(bound.numerator), Decimal(bound.denominator))


def _floating(column: TableColumn, operator: Operator, double: float) -> Condition:
    # Spark puts NaN above everything, and so does its max(): a maximum bounds NaN too.
    if column.kind is Kind.DOUBLE:
        return Compare(column, operator, double)
    slack = abs(double) * _FLOAT_SLACK + 1e-44
    operator, bound = ("<=", double + slack) if operator in ("<", "<=") else (">=", double - slack)
    return Compare(column, operator, bound) if math.isfinite(bound) else HasValue(column)


def _day(column: TableColumn, operator: Operator, value: object) -> Condition:
    if not isinstance(value, datetime):
        day = literals.as_day(value)
        return HasValue(column) if day is None else Compare(column, operator, day.isoformat())
    # A date beside a moment is that day's midnight.
    midnight = value == datetime(value.year, value.month, value.day)
    if operator == "<" and not midnight:
        operator = "<="
    if operator == ">=" and not midnight:
        operator = ">"
    return Compare(column, operator, value.date().isoformat())


def moment_text(moment: datetime) -> str:
    """A moment as leaves hold it: of fixed width, so that texts sort as moments do."""
    return moment.isoformat(timespec="microseconds")


def days_from(text: str, days: int) -> str:
    """The day of a moment's text, some days on; at the ends of the calendar, as far as it goes."""
    try:
        return (date.fromisoformat(text[:10]) + timedelta(days=days)).isoformat()
    except OverflowError:
        return date.max.isoformat() if days > 0 else date.min.isoformat()
