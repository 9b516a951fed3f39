"""What Spark has computed, as literals of SQL that say the same in every session and every process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from mainstem.errors import UsageError
from mainstem.operations.sqltexts import literal, quoted
from mainstem.session import is_spark_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def unchanging(rows: DataFrame) -> Iterator[bool]:
    """While the block runs, the rows are kept as they are first seen: a source may give others when asked again.

    Delta does the same for the source of its MERGE. What its owner has cached already stays cached. False where the
    session cannot keep rows, as one without servers of its own.
    """
    try:
        level = rows.storageLevel
        ours = not (level.useMemory or level.useDisk)
        if ours:
            rows.persist()
    except Exception as error:
        if not is_spark_error(error):
            raise
        yield False
        return
    try:
        yield True
    finally:
        if ours:
            rows.unpersist()


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
