"""The columns of a checkpoint, with Delta's names, types and order, as Arrow has them and as Spark's JSON says them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

TEXTS = pa.map_(pa.string(), pa.string())
_LIST = pa.list_(pa.field("element", pa.string()))
VECTOR = pa.struct(
    [
        ("storageType", pa.string()), ("pathOrInlineDv", pa.string()), ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()), ("cardinality", pa.int64()), ("maxRowIndex", pa.int64()),
    ]
)  # fmt: skip
ADD = pa.struct(
    [
        ("path", pa.string()), ("partitionValues", TEXTS), ("size", pa.int64()), ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()), ("tags", TEXTS), ("deletionVector", VECTOR), ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()), ("clusteringProvider", pa.string()),
    ]
)  # fmt: skip
# As the protocol has it: tombstones carry neither statistics nor tags.
REMOVE = pa.struct(
    [
        ("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()), ("partitionValues", TEXTS), ("size", pa.int64()),
        ("deletionVector", VECTOR), ("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64()),
    ]
)  # fmt: skip
METADATA = pa.struct(
    [
        ("id", pa.string()), ("name", pa.string()), ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", TEXTS)])), ("schemaString", pa.string()),
        ("partitionColumns", _LIST), ("configuration", TEXTS), ("createdTime", pa.int64()),
    ]
)  # fmt: skip
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
        ("readerFeatures", _LIST), ("writerFeatures", _LIST),
    ]
)  # fmt: skip
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
CHECKPOINT_METADATA = pa.struct([("version", pa.int64()), ("tags", TEXTS)])
SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", TEXTS)]
)

_SPARK_NAMES = {
    pa.string(): "string", pa.binary(): "binary", pa.bool_(): "boolean", pa.int8(): "byte", pa.int16(): "short",
    pa.int32(): "integer", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double", pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp", pa.timestamp("us"): "timestamp_ntz",
}  # fmt: skip


def add_type(*, with_stats: bool, parsed: Sequence[pa.Field] = ()) -> pa.StructType:
    """The struct of an add: with its statistics as text unless told otherwise, then what stands there parsed."""
    stats = (pa.field("stats", pa.string()),) if with_stats else ()
    return pa.struct([*ADD, *stats, *parsed])


def classic_schema(add: pa.StructType) -> pa.Schema:
    """The columns of a classic checkpoint and of each of its parts."""
    return pa.schema(
        [
            ("txn", TXN), ("add", add), ("remove", REMOVE), ("metaData", METADATA), ("protocol", PROTOCOL),
            ("domainMetadata", DOMAIN),
        ]
    )  # fmt: skip


def top_schema() -> pa.Schema:
    """The columns of the file on top of sidecars, where it is Parquet. It names no file itself."""
    plain = classic_schema(add_type(with_stats=True))
    return pa.schema([*plain, ("checkpointMetadata", CHECKPOINT_METADATA), ("sidecar", SIDECAR)])


def sidecar_schema(add: pa.StructType) -> pa.Schema:
    """The columns of a sidecar."""
    return pa.schema([("add", add), ("remove", REMOVE)])


def spark_json(schema: pa.Schema) -> dict[str, Any]:
    """A schema as Delta writes it into `_last_checkpoint`: it spares readers a look at the checkpoint's footer."""
    found: dict[str, Any] = _spark_type(pa.struct(list(schema)))
    return found


def _spark_type(kind: pa.DataType) -> Any:
    if pa.types.is_map(kind):
        return {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _spark_type(kind.value_type), "containsNull": True}
    if pa.types.is_struct(kind):
        fields = [{"name": f.name, "type": _spark_type(f.type), "nullable": True, "metadata": {}} for f in kind]
        return {"type": "struct", "fields": fields}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK_NAMES[kind]
