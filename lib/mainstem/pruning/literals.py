"""The constants of a predicate, read as Spark reads them. What is not surely the same to both of us is no constant."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

from sqlglot import exp
from sqlglot.expressions import DataType


@dataclass(frozen=True, slots=True)
class Constant:
    """None for NULL, int, Decimal, float, str, bool, date, or datetime: naive, as if all zones were UTC.

    `elsewhere` says that the session is in another zone. Then a moment may be off by what that zone is, unless it is
    `zoned`: the constant itself has said where.
    """

    value: int | Decimal | float | str | bool | date | datetime | None
    elsewhere: bool = False
    zoned: bool = False


_INTEGERS = {DataType.Type.TINYINT: 8, DataType.Type.SMALLINT: 16, DataType.Type.INT: 32, DataType.Type.BIGINT: 64}
_FLOATS = {DataType.Type.FLOAT, DataType.Type.DOUBLE}
_TEXTS = {DataType.Type.TEXT, DataType.Type.VARCHAR}
_MOMENTS = {
    DataType.Type.TIMESTAMP,
    DataType.Type.TIMESTAMPTZ,
    DataType.Type.TIMESTAMPLTZ,
    DataType.Type.TIMESTAMPNTZ,
}
_INTEGER = re.compile(r"[+-]?\d{1,40}")
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})")
_DOUBLE = re.compile(_NUMBER.pattern + r"(?:[eE][+-]?\d{1,3})?")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,6}))?"
    r"(?P<zone>Z|UTC|[+-]\d{2}:\d{2})?)?"
)

# Everything in which a quote may stand: raw texts, texts, quoted names, comments.
_QUOTING = re.compile(
    r"""(?<!\w)[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+"|`(?:[^`]|``)*+`|--[^\n]*|/\*.*?\*/""",
    re.DOTALL,
)
# Escapes that Spark and sqlglot surely read alike; a text with any other is not looked at.
_OTHER_ESCAPE = re.compile(r"(?:[^\\]|\\[\\'\"])*+\\")
_ESCAPED_OR_DOUBLED = re.compile(r"\\.|''|" + '""', re.DOTALL)


def spelled_by_escapes(where: str) -> str:
    """The same predicate with every doubled quote of a text as an escaped one.

    Since Spark 4 `'it''s'` is one text with a quote in it, while `'it' 's'` are two that become `its`. sqlglot takes
    both for the latter.
    """

    def spelled(found: re.Match[str]) -> str:
        quote = found[0][0]
        if quote not in ("'", '"'):
            return found[0]
        inner = _ESCAPED_OR_DOUBLED.sub(lambda two: f"\\{quote}" if two[0] == quote * 2 else two[0], found[0][1:-1])
        return f"{quote}{inner}{quote}"

    return _QUOTING.sub(spelled, where)


def texts_are_sure(where: str) -> bool:
    """Whether every text of a predicate is the same to Spark and to sqlglot."""
    return not _OTHER_ESCAPE.match(where)


def constant(node: exp.Expr, *, in_utc: bool = True) -> Constant | None:
    """The constant that an expression is, or None if it is something else or we are not sure of its value.

    `in_utc` says whether the session is: by its zone Spark reads moments that have none.
    """
    found = _constant(node, in_utc)
    return found if in_utc or found is None else replace(found, elsewhere=True)


def _constant(node: exp.Expr, in_utc: bool) -> Constant | None:
    if isinstance(node, exp.Paren):
        return _constant(node.this, in_utc)
    if isinstance(node, exp.Null):
        return Constant(None)
    if isinstance(node, exp.Boolean):
        return Constant(bool(node.this))
    if isinstance(node, exp.Literal):
        return _text(node.this) if node.is_string else _number(node.this)
    if isinstance(node, exp.Neg):
        return _negated(_constant(node.this, in_utc))
    if isinstance(node, exp.Concat) and all(isinstance(part, exp.Literal) for part in node.expressions):
        # 'it' 's': texts that follow each other are one text to Spark.
        return _text("".join(part.this for part in node.expressions))
    if isinstance(node, exp.Cast) and isinstance(node.to, DataType):
        inner = _constant(node.this, in_utc)
        return None if inner is None else _cast(inner, node.to, in_utc)
    return None


def _text(text: str) -> Constant | None:
    # U+0000 and halves of surrogate pairs fit into no database's text.
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return None
    return Constant(text)


def _number(text: str) -> Constant | None:
    if _INTEGER.fullmatch(text):
        return Constant(int(text))
    if _NUMBER.fullmatch(text):
        return Constant(Decimal(text))
    return Constant(float(text)) if _DOUBLE.fullmatch(text) else None


def _negated(inner: Constant | None) -> Constant | None:
    if inner is None or isinstance(inner.value, bool) or not isinstance(inner.value, int | Decimal | float):
        return None
    return Constant(-inner.value)


def _cast(inner: Constant, to: DataType, in_utc: bool) -> Constant | None:
    value, kind = inner.value, to.this
    if value is None:
        return inner
    if kind in _INTEGERS:
        return _as_integer(value, _INTEGERS[kind])
    if kind in _FLOATS:
        number = as_double(value)
        # A constant of 32 bits is rounded; only a whole number is surely left as it is.
        exact = number is not None and (kind is DataType.Type.DOUBLE or (number.is_integer() and abs(number) < 2**24))
        return Constant(number) if exact else None
    if kind is DataType.Type.DECIMAL:
        return _as_decimal(value, to)
    if kind in _TEXTS and isinstance(value, str) and not to.expressions:
        return inner
    if kind is DataType.Type.DATE:
        # Which day a moment lies in is a question of the zone.
        day = as_day(value) if in_utc or not isinstance(value, datetime) else None
        return None if day is None else Constant(day)
    if kind in _MOMENTS:
        local = kind is DataType.Type.TIMESTAMPNTZ
        moment = as_moment(value, zoned=not local)
        return None if moment is None else Constant(moment, zoned=not local and says_zone(inner))
    return inner if kind is DataType.Type.BOOLEAN and isinstance(value, bool) else None


def _as_integer(value: object, bits: int) -> Constant | None:
    number = as_integer(value)
    return Constant(number) if number is not None and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def _as_decimal(value: object, to: DataType) -> Constant | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    size = [int(parameter.this.this) for parameter in to.expressions]
    precision, scale = (*size, 0)[:2] if size else (10, 0)
    try:
        fitted = Decimal(value).quantize(Decimal(1).scaleb(-scale))
    except InvalidOperation:
        return None
    return Constant(fitted) if fitted == value and abs(fitted) < Decimal(10) ** (precision - scale) else None


def as_integer(value: object) -> int | None:
    """A constant as the integer that Spark makes of it beside an integer column."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value.strip(" ")) else None


def as_double(value: object) -> float | None:
    """A constant as a double; None unless it is finite."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal | float) or (isinstance(value, str) and _DOUBLE.fullmatch(value)):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if abs(number) < float("inf") else None
    return None


def as_day(value: object) -> date | None:
    """A constant as a date; texts only in full, since Spark's reading of shorter ones has changed over time."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    found = _DAY.fullmatch(value.strip(" ")) if isinstance(value, str) else None
    try:
        return date(int(found[1]), int(found[2]), int(found[3])) if found else None
    except ValueError:
        return None


def as_moment(value: object, *, zoned: bool = True) -> datetime | None:
    """A constant as a moment, naive: in UTC if it has a zone of its own, else as if the session's were UTC."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    found = _MOMENT.fullmatch(value.strip(" ")) if isinstance(value, str) else None
    day = as_day(found["day"]) if found else None
    if found is None or day is None or (found["zone"] and not zoned):
        return None
    fraction = (found["fraction"] or "").ljust(6, "0")
    try:
        local = datetime(
            day.year, day.month, day.day,
            int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0), int(fraction),
        )  # fmt: skip
        return local.replace(tzinfo=_zone(found["zone"])).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def says_zone(constant: Constant) -> bool:
    """Whether a constant is a moment that names its own zone."""
    found = _MOMENT.fullmatch(constant.value.strip(" ")) if isinstance(constant.value, str) else None
    return constant.zoned or bool(found and found["zone"])


def _zone(text: str | None) -> timezone:
    if text is None or text in ("Z", "UTC"):
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    return timezone(-offset if text[0] == "-" else offset)
