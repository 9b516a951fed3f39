"""A recipe as a table's folder: `_delta_log` with its commits, and the newest checkpoint as Delta would leave it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq

from mainstem.bench.generator import Generator
from mainstem.bench.recipe import DAY_MS, Ints, Recipe
from mainstem.deltalog.names import commit_name

_TOMBSTONE_DAYS = 7  # Delta keeps a tombstone in checkpoints for a week
_ROWS = 200_000  # rows made at a time, and in a row group: about the 128 MB that parquet-mr puts into one

_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()), ("pathOrInlineDv", pa.string()), ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()), ("cardinality", pa.int64()), ("maxRowIndex", pa.int64()),
    ]
)  # fmt: skip
_MOMENT = pa.timestamp("us", tz="UTC")
_BOUNDS = pa.struct(
    [
        ("id", pa.int64()), ("customer", pa.string()), ("amount", pa.float64()), ("quantity", pa.int32()),
        ("event_time", _MOMENT), ("product", pa.string()),
    ]
)  # fmt: skip
_STATS = pa.struct(
    [
        ("numRecords", pa.int64()), ("minValues", _BOUNDS), ("maxValues", _BOUNDS),
        ("nullCount", pa.struct([(field.name, pa.int64()) for field in _BOUNDS])),
    ]
)  # fmt: skip
_ADD = pa.struct(
    [
        ("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()), ("tags", _TEXTS), ("deletionVector", _VECTOR), ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()), ("clusteringProvider", pa.string()), ("stats", pa.string()),
        ("partitionValues_parsed", pa.struct([("date", pa.date32())])), ("stats_parsed", _STATS),
    ]
)  # fmt: skip
_REMOVE = pa.struct(
    [
        ("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()), ("partitionValues", _TEXTS), ("size", pa.int64()),
        ("deletionVector", _VECTOR), ("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64()),
    ]
)  # fmt: skip
_METADATA = pa.struct(
    [
        ("id", pa.string()), ("name", pa.string()), ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])), ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())), ("configuration", _TEXTS), ("createdTime", pa.int64()),
    ]
)  # fmt: skip
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())), ("writerFeatures", pa.list_(pa.string())),
    ]
)  # fmt: skip
_DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
# Names and order as Delta Spark 4.4 writes them, parsed statistics and all: the baselines get what they would have had.
CHECKPOINT = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        ("add", _ADD), ("remove", _REMOVE), ("metaData", _METADATA), ("protocol", _PROTOCOL),
        ("domainMetadata", _DOMAIN),
    ]
)  # fmt: skip


def write_log(recipe: Recipe, folder: Path, *, since: int = 0) -> Path:
    """Make the table's folder with its log, and return it. There are no data files: nothing here reads data.

    With `since`, commits before it are left out, as after a log cleanup; the newest checkpoint must not be before it.
    The files have the times of their commits, because Delta takes them for the times of versions.
    """
    generator = Generator(recipe)
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    times = recipe.time_of(np.arange(recipe.commits, dtype=np.int64))
    for chunk in generator.chunks(start=since):
        for version, commit in zip(chunk.versions, chunk.commits(), strict=True):
            _write(log / commit_name(version), commit, int(times[version]))
    at = recipe.checkpoint
    _write_checkpoint(generator, log, at, int(times[at]))
    for version in (at, recipe.last):
        _write(log / f"{version:020d}.crc", _checksum(generator, version), int(times[version]))
    return folder


def _write(path: Path, data: bytes, time_ms: int) -> None:
    path.write_bytes(data)
    os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def _write_checkpoint(generator: Generator, log: Path, version: int, time_ms: int) -> None:
    recipe, rows = generator.recipe, 2
    path = log / f"{version:020d}.checkpoint.parquet"
    live = recipe.live_at(version)
    gone = recipe.gone_of(0, version + 1)
    tombstones = gone[generator.deleted(gone) > time_ms - _TOMBSTONE_DAYS * DAY_MS]
    with pq.ParquetWriter(path, CHECKPOINT, compression="snappy") as writer:
        writer.write_table(_described(generator))
        for files, made in ((tombstones, _removes), (live, _adds)):
            for start in range(0, len(files), _ROWS):
                column, values = made(generator, files[start : start + _ROWS])
                writer.write_table(_only(column, values), row_group_size=_ROWS)
            rows += len(files)
    os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
    hint = {
        "version": version, "size": rows, "sizeInBytes": path.stat().st_size, "numOfAddFiles": len(live),
        "checkpointSchema": _spark_type(pa.struct(list(CHECKPOINT))),
    }  # fmt: skip
    _write(log / "_last_checkpoint", orjson.dumps(hint), time_ms)


def _only(column: str, values: pa.Array) -> pa.Table:
    """Rows that have one action, and null for every other."""
    return pa.Table.from_arrays(
        [values if field.name == column else pa.nulls(len(values), field.type) for field in CHECKPOINT],
        schema=CHECKPOINT,
    )


def _described(generator: Generator) -> pa.Table:
    protocol, metadata = (orjson.loads(line) for line in generator.first_lines().splitlines())
    metadata["metaData"]["configuration"] = []
    metadata["metaData"]["format"]["options"] = []
    return pa.Table.from_pylist([protocol, metadata], schema=CHECKPOINT)


def _adds(generator: Generator, files: Ints) -> tuple[str, pa.Array]:
    dates, stats = _text(generator.dates(files)), _text(generator.stats(files))
    values = {
        "path": _text(generator.paths(files)),
        "partitionValues": _one_entry("date", dates),
        "size": pa.array(generator.size(files)),
        "modificationTime": pa.array(generator.time(files)),
        "dataChange": pa.array(np.zeros(len(files), dtype=bool)),  # a checkpoint changes no data
        "stats": stats,
        "partitionValues_parsed": _struct({"date": dates.cast(pa.date32())}, _ADD.field("partitionValues_parsed").type),
        "stats_parsed": _parsed(stats),
    }
    return "add", _struct(values, _ADD)


def _removes(generator: Generator, files: Ints) -> tuple[str, pa.Array]:
    values = {
        "path": _text(generator.paths(files)),
        "deletionTimestamp": pa.array(generator.deleted(files)),
        "dataChange": pa.array(np.zeros(len(files), dtype=bool)),
        "extendedFileMetadata": pa.array(np.ones(len(files), dtype=bool)),
        "partitionValues": _one_entry("date", _text(generator.dates(files))),
        "size": pa.array(generator.size(files)),
    }
    return "remove", _struct(values, _REMOVE)


def _text(values: Any) -> pa.Array:
    """Bytes of one width as an Arrow string array, without a Python object for each."""
    width = values.dtype.itemsize
    offsets = pa.array(np.arange(len(values) + 1, dtype=np.int32) * width)
    return pa.StringArray.from_buffers(len(values), offsets.buffers()[1], pa.py_buffer(values.tobytes()))


def _one_entry(key: str, values: pa.Array) -> pa.Array:
    keys = pa.array([key]).take(pa.array(np.zeros(len(values), dtype=np.int64)))
    return pa.MapArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), keys, values)


def _struct(values: dict[str, pa.Array], kind: pa.DataType) -> pa.Array:
    count = len(next(iter(values.values())))
    return pa.StructArray.from_arrays(
        [values[field.name] if field.name in values else pa.nulls(count, field.type) for field in kind],
        fields=list(kind),
    )


def _parsed(stats: pa.Array) -> pa.Array:
    """The statistics as columns, read out of their text, so that the two cannot differ."""
    text = pc.binary_join(pa.ListArray.from_arrays([0, len(stats)], stats), "\n")[0].as_buffer()
    as_text = pa.struct([(f.name, pa.string() if f.type == _MOMENT else f.type) for f in _BOUNDS])
    read = pa.schema([("numRecords", pa.int64()), ("minValues", as_text), ("maxValues", as_text), _STATS.field(3)])
    found = pj.read_json(pa.BufferReader(text), parse_options=pj.ParseOptions(explicit_schema=read)).combine_chunks()
    columns = {name: found.column(name).cast(_STATS.field(name).type) for name in found.column_names}
    return _struct({name: column.combine_chunks() for name, column in columns.items()}, _STATS)


def _checksum(generator: Generator, version: int) -> bytes:
    """Delta's checksum of a version: from it Delta Spark takes protocol and metadata without a look at the log."""
    live = generator.recipe.live_at(version)
    protocol, metadata = (orjson.loads(line) for line in generator.first_lines().splitlines())
    return orjson.dumps(
        {
            "tableSizeBytes": int(generator.size(live).sum()), "numFiles": len(live), "numMetadata": 1,
            "numProtocol": 1, "setTransactions": [], "domainMetadata": [],
            "metadata": metadata["metaData"], "protocol": protocol["protocol"],
        }
    )  # fmt: skip


_SPARK_NAMES = {
    pa.string(): "string", pa.int64(): "long", pa.int32(): "integer", pa.bool_(): "boolean", pa.float64(): "double",
    pa.date32(): "date", _MOMENT: "timestamp",
}  # fmt: skip


def _spark_type(kind: pa.DataType) -> Any:
    """A type as Delta writes it into `_last_checkpoint`, where it spares Spark a look at the checkpoint's footer."""
    if pa.types.is_map(kind):
        return {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _spark_type(kind.value_type), "containsNull": True}
    if pa.types.is_struct(kind):
        fields = [{"name": f.name, "type": _spark_type(f.type), "nullable": True, "metadata": {}} for f in kind]
        return {"type": "struct", "fields": fields}
    return _SPARK_NAMES[kind]
