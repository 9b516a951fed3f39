"""What Spark has computed, as literals of SQL that say the same in every session and every process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from mainstem.errors import UsageError
from mainstem.operations.sqltexts import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def literals_of(rows: DataFrame) -> list[list[str | None]]:
    """The rows, value by value; None for a value that no literal can say."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import TimestampType

    # Collected as it is, a moment would be in the zone of this process, and would not say so.
    moments = [isinstance(field.dataType, TimestampType) for field in rows.schema.fields]
    columns = [F.col(quoted(name)) for name in rows.columns]
    plain = [F.unix_micros(column) if is_one else column for column, is_one in zip(columns, moments, strict=True)]
    return [
        [_literal(value, is_moment=is_one) for value, is_one in zip(row, moments, strict=True)]
        for row in rows.select(*plain).collect()
    ]


def _literal(value: Any, *, is_moment: bool) -> str | None:
    try:
        return literal(_EPOCH + timedelta(microseconds=value) if is_moment and value is not None else value)
    except (UsageError, OverflowError):  # of a type without literals, or beyond the year 9999
        return None
