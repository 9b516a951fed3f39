"""Statistics that a checkpoint holds as columns (`stats_parsed`), as the JSON text that Delta would write for them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = date(1970, 1, 1)
_PER_MILLISECOND = {"s": 0.001, "ms": 1, "us": 1_000, "ns": 1_000_000}

Shaper = Callable[[Any], Any]


def stats_texts(column: pa.StructArray, *, instants: Collection[str] = ()) -> list[str | None]:
    """One text a row, without the fields that are null, as Delta leaves them out; None for a row without statistics.

    Timestamps are cut to milliseconds, as Delta cuts them: who prunes by a maximum must allow for one more. What JSON
    cannot say, such as a year beyond 9999, is left out: unknown statistics never hide a file. `instants` are the dotted
    names of timestamps that are UTC although their type names no zone.
    """
    plain = column.cast(_as_numbers(column.type), safe=False)
    shape = _shaper(column.type, "", frozenset(instants))
    return [None if row is None else orjson.dumps(shape(row)).decode() for row in plain.to_pylist()]


def _as_numbers(kind: pa.DataType) -> pa.DataType:
    """The same type with moments as numbers: Python's own dates end with the year 9999, and conversion would fail."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_numbers(field.type)) for field in kind])
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else kind


def _shaper(kind: pa.DataType, name: str, instants: frozenset[str]) -> Shaper:
    if pa.types.is_struct(kind):
        below = f"{name}." if name else ""
        return _struct({field.name: _shaper(field.type, below + field.name, instants) for field in kind})
    if pa.types.is_timestamp(kind):
        return _timestamp(_PER_MILLISECOND[kind.unit], "Z" if kind.tz or name in instants else "")
    if pa.types.is_date32(kind):
        return _day
    if pa.types.is_decimal(kind):
        return _decimal
    if pa.types.is_float32(kind):
        return _float32
    if pa.types.is_floating(kind):
        return _number
    if (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    ):
        return _same
    return _unknown


def _struct(shapers: dict[str, Shaper]) -> Shaper:
    def shape(row: dict[str, Any]) -> dict[str, Any]:
        shaped = ((key, shapers[key](value)) for key, value in row.items() if value is not None)
        return {key: value for key, value in shaped if value is not None}

    return shape


def _timestamp(per_millisecond: float, zone: str) -> Shaper:
    def shape(value: int) -> str | None:
        try:
            moment = _EPOCH + timedelta(milliseconds=value // per_millisecond)
        except OverflowError:
            return None
        return moment.isoformat(timespec="milliseconds") + zone

    return shape


def _day(value: int) -> str | None:
    try:
        return (_FIRST_DAY + timedelta(days=value)).isoformat()
    except OverflowError:
        return None


def _decimal(value: Decimal) -> Any:
    return orjson.Fragment(format(value, "f"))


def _float32(value: float) -> float | str:
    """The shortest number that is the same 32 bits: 0.1, not 0.10000000149011612."""
    if not math.isfinite(value):
        return _number(value)
    for digits in range(6, 9):
        shorter = float(f"{value:.{digits}g}")
        if abs(shorter) < 3.4e38 and struct.unpack("f", struct.pack("f", shorter))[0] == value:
            return shorter
    return value


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _same(value: Any) -> Any:
    return value


def _unknown(value: Any) -> None:
    return None
