"""Rows of `dl_add_files` and `dl_remove_files` as the structs of a checkpoint. Arrow in, Arrow out."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

from mainstem.checkpoint import shape
from mainstem.checkpoint.parsed import partition_column, stats_column
from mainstem.checkpoint.parsedtypes import PARTITION, STATS
from mainstem.columns import Column
from mainstem.deltalog.jsontext import NotJson, members
from mainstem.errors import CorruptCatalog

_PLACE = (Column("version", "bigint", "int64"), Column("seq", "int", "int32"))
ADD_COLUMNS = (
    Column("path", "string", "string"),
    Column("partition_values", "string", "string"),
    Column("size_bytes", "bigint", "int64"),
    Column("modification_time", "bigint", "int64"),
    Column("tags", "string", "string"),
    Column("deletion_vector", "string", "string"),
    Column("base_row_id", "bigint", "int64"),
    Column("default_row_commit_version", "bigint", "int64"),
    Column("clustering_provider", "string", "string"),
    Column("stats", "string", "string"),
    *_PLACE,
)
REMOVE_COLUMNS = (
    Column("path", "string", "string"),
    Column("deletion_timestamp", "bigint", "int64"),
    Column("extended_file_metadata", "boolean", "bool"),
    Column("partition_values", "string", "string"),
    Column("size_bytes", "bigint", "int64"),
    Column("deletion_vector", "string", "string"),
    Column("base_row_id", "bigint", "int64"),
    Column("default_row_commit_version", "bigint", "int64"),
    *_PLACE,
)
# Which column of ours is which field, where it is not the text of an object.
PLAIN = {
    "path": "path",
    "size": "size_bytes",
    "modificationTime": "modification_time",
    "deletionTimestamp": "deletion_timestamp",
    "extendedFileMetadata": "extended_file_metadata",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
    "clusteringProvider": "clustering_provider",
    "stats": "stats",
}
OBJECTS = {"partitionValues": "partition_values", "tags": "tags", "deletionVector": "deletion_vector"}


def adds(rows: pa.Table, kind: pa.StructType) -> pa.StructArray:
    """Live files as the column `add` of this type. Raises `NotParsed` for a partition value that is not of its type."""
    return _structs(rows, kind)


def removes(rows: pa.Table) -> pa.StructArray:
    """Tombstones as the column `remove`."""
    return _structs(rows, shape.REMOVE)


def under(schema: pa.Schema, name: str, values: pa.StructArray) -> pa.Table:
    """Rows with one action each, under all columns of the schema; the others are null."""
    arrays = [values if column.name == name else pa.nulls(len(values), column.type) for column in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _structs(rows: pa.Table, kind: pa.StructType) -> pa.StructArray:
    arrays = []
    for field in kind:
        if field.name == STATS:
            arrays.append(stats_column(_whole(rows.column("stats")), field.type))
        elif field.name == PARTITION:
            encoded = _whole(rows.column("partition_values")).dictionary_encode()
            texts = _objects(pa.chunked_array([encoded.dictionary]), shape.TEXTS)
            arrays.append(partition_column(texts, field.type).take(encoded.indices))
        elif field.name == "dataChange":
            arrays.append(
                pa.array([False]).take(pa.nulls(len(rows), pa.int32()).fill_null(0))
            )  # a state changes no data
        elif field.name in OBJECTS:
            arrays.append(_objects(rows.column(OBJECTS[field.name]), field.type))
        else:
            arrays.append(_whole(rows.column(PLAIN[field.name])))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _objects(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Texts of JSON objects as maps or structs. Every text is read once, however many rows have it."""
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    encoded = _whole(column).dictionary_encode()
    read = _texts if pa.types.is_map(kind) else _fields
    values = [read(text) for text in encoded.dictionary.to_pylist()]
    try:
        return pa.array(values, kind).take(encoded.indices)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
        raise CorruptCatalog(f"partition values, tags or deletion vectors fit no checkpoint: {error}.") from error


def _texts(text: str) -> list[tuple[str, str | None]]:
    """An object of texts. A number or a word that stands without quotes is its own text, as Delta reads it."""
    values = _fields(text)
    if all(value is None or type(value) is str for value in values.values()):
        return list(values.items())
    try:
        found = members(text)
    except NotJson as error:
        raise CorruptCatalog(f"{text[:200]!r} is no JSON object: {error}.") from error
    return [
        (member.key, member.value if member.value is None or type(member.value) is str else member.text)
        for member in found
    ]


def _fields(text: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise CorruptCatalog(f"{text[:200]!r} is nothing that a checkpoint can say: {error}.") from error
    if type(found) is not dict:
        raise CorruptCatalog(f"{text[:200]!r} is no JSON object.")
    return found
