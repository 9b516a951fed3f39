"""The columns of `files()` and `to_arrow()`: one list for SQL, Arrow and Spark, in the order that users see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class Column(NamedTuple):
    """A column's name, its type as Spark writes it, and as Arrow does."""

    name: str
    spark: str
    arrow: str


FILE_COLUMNS = (
    Column("path", "string", "string"),
    Column("dv_id", "string", "string"),
    Column("size_bytes", "bigint", "int64"),
    Column("partition_values", "string", "string"),
    Column("stats", "string", "string"),
    Column("num_records", "bigint", "int64"),
    Column("data_change", "boolean", "bool"),
    Column("modification_time", "bigint", "int64"),
    Column("deletion_vector", "string", "string"),
    Column("tags", "string", "string"),
    Column("base_row_id", "bigint", "int64"),
    Column("default_row_commit_version", "bigint", "int64"),
    Column("clustering_provider", "string", "string"),
    Column("version", "bigint", "int64"),
)
FILE_COLUMN_NAMES = tuple(column.name for column in FILE_COLUMNS)
# Where a row stands in the log. Users see the version only.
SEQ = Column("seq", "int", "int32")


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns as an Arrow schema."""
    import pyarrow as pa

    return pa.schema([(column.name, pa.type_for_alias(column.arrow)) for column in columns])
