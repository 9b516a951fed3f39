"""Statistics and partition values from their texts into typed columns, as a checkpoint may have them beside the text.

Of statistics, what cannot be read exactly becomes null: an unknown bound never hides a file. A partition value that
cannot be read must not become null, which would be another value: it raises `NotParsed`, and who writes leaves the
columns out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import orjson
import pyarrow as pa

from mainstem.deltalog.fields import SURROGATE

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,3})?", re.ASCII)
# Not more than microseconds: what is cut off would move a bound.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "+Infinity": math.inf}
_FLOAT32_MAX = 3.4028234663852886e38

Convert = Callable[[Any], Any]


class NotParsed(Exception):
    """A partition value that this library cannot read as its column's type."""


def stats_column(texts: pa.Array, kind: pa.StructType) -> pa.Array:
    """Statistics as a struct; null where the text is, or is no JSON object."""
    convert = _struct(kind)
    # Decimals are read from their digits; where there are none, the fast reader will do.
    load = _exact if _has_decimals(kind) else _fast
    return pa.array([None if text is None else convert(load(text)) for text in texts.to_pylist()], kind)


def partition_column(values: pa.Array, kind: pa.StructType) -> pa.Array:
    """Partition values, given as maps of texts, as a struct. An empty text is null, as the protocol says."""
    converters = {field.name: _text_converter(field.type) for field in kind}
    return pa.array([_partition(row, converters) for row in values.to_pylist()], kind)


def _partition(row: list[tuple[str, str | None]], converters: dict[str, Convert]) -> dict[str, Any]:
    given = dict(row)
    found: dict[str, Any] = {}
    for name, convert in converters.items():
        text = given.get(name)
        found[name] = convert(text) if text else None
        if text and found[name] is None:
            raise NotParsed(name)
    return found


def _fast(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _exact(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, parse_int=lambda digits: int(digits) if len(digits) < 50 else None)
    except (ValueError, RecursionError):
        return None


def _has_decimals(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_decimals(field.type) for field in kind)
    return bool(pa.types.is_decimal(kind))


def _struct(kind: pa.StructType) -> Convert:
    inner = {
        field.name: _struct(field.type) if pa.types.is_struct(field.type) else _converter(field.type) for field in kind
    }

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return None
        return {name: into(value[name]) for name, into in inner.items() if value.get(name) is not None}

    return convert


def _converter(kind: pa.DataType) -> Convert:
    """How a JSON value becomes one of the type; None for what does not."""
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return lambda value: value if type(value) is int and -most <= value < most else None
    if pa.types.is_floating(kind):
        return _float32 if pa.types.is_float32(kind) else _float
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind.precision, kind.scale)
    if pa.types.is_string(kind):
        return lambda value: value if type(value) is str and not SURROGATE.search(value) else None
    if pa.types.is_boolean(kind):
        return lambda value: value if type(value) is bool else None
    if pa.types.is_date32(kind):
        return _date
    return _instant if kind.tz else _local


def _text_converter(kind: pa.DataType) -> Convert:
    """How the text of a partition value becomes one of the type."""
    if pa.types.is_binary(kind):
        return lambda text: text.encode()
    convert = _converter(kind)
    if pa.types.is_integer(kind):
        return lambda text: convert(int(text)) if _INTEGER.fullmatch(text) else None
    if pa.types.is_floating(kind):
        return lambda text: convert(_WORDS.get(text, float(text) if _NUMBER.fullmatch(text) else None))
    if pa.types.is_boolean(kind):
        return lambda text: {"true": True, "false": False}.get(text.lower())
    return convert


def _float(value: Any) -> float | None:
    if type(value) is str:
        return _WORDS.get(value)
    if type(value) is bool or not isinstance(value, int | float | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _float32(value: Any) -> float | None:
    found = _float(value)
    return found if found is None or not math.isfinite(found) or abs(found) <= _FLOAT32_MAX else None


def _decimal(value: Any, precision: int, scale: int) -> Decimal | None:
    """The very number, or None: rounding would move a bound."""
    if type(value) is bool or not isinstance(value, int | str | Decimal):
        return None
    if type(value) is str and not _NUMBER.fullmatch(value):
        return None
    with localcontext(prec=100) as context:
        context.traps[InvalidOperation] = False
        given = Decimal(value)
        found = given.quantize(Decimal(1).scaleb(-scale))
    if not found.is_finite() or found != given or len(found.as_tuple().digits) > max(precision, scale):
        return None
    return found


def _date(value: Any) -> int | None:
    if type(value) is not str or len(value) != 10:
        return None
    try:
        return (date.fromisoformat(value) - _EPOCH_DAY).days
    except ValueError:
        return None


def _instant(value: Any) -> int | None:
    moment = _moment(value)
    return None if moment is None or moment.tzinfo is None else (moment - _EPOCH_UTC) // _MICROSECOND


def _local(value: Any) -> int | None:
    moment = _moment(value)
    return None if moment is None or moment.tzinfo is not None else (moment - _EPOCH) // _MICROSECOND


def _moment(value: Any) -> datetime | None:
    if type(value) is not str or not _MOMENT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
