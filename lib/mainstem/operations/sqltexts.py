"""Pieces of Spark's SQL: names and values as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from mainstem.errors import UsageError


def quoted(name: str) -> str:
    """A column's name, whatever stands in it."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any) -> str:
    """A value as a literal of Spark's SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value) if -(2**31) <= value < 2**31 else f"{value}L"
    if isinstance(value, float):
        return f"DOUBLE('{value!r}')"
    if isinstance(value, Decimal):
        return f"{value:f}BD"  # never with an exponent, which only doubles have
    if isinstance(value, datetime):
        return (
            f"TIMESTAMP'{value.isoformat(sep=' ')}'" if value.tzinfo else f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        )
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    raise UsageError(f"a value of {type(value).__name__} has no literal in SQL.", hint="Give an expression as a text.")


def expression(value: Any) -> str:
    """What a column is set to: a text is an expression of SQL, anything else a value."""
    return value if isinstance(value, str) else literal(value)


def assignments(values: Mapping[str, Any]) -> str:
    """`a = 1, b = b + 1`."""
    if not values:
        raise UsageError("nothing is set.", hint="Give set={'column': 'expression'}.")
    return ", ".join(f"{quoted(column)} = {expression(value)}" for column, value in values.items())
