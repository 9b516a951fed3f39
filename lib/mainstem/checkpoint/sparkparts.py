"""A state into Parquet files by Spark's executors, which read it over JDBC: no row passes the driver.

Spark writes into a folder of its own inside of the log, where no reader looks; a finished file is then given its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from mainstem import frames
from mainstem.checkpoint import shape
from mainstem.checkpoint.described import as_table
from mainstem.checkpoint.driverparts import Part
from mainstem.checkpoint.files import OBJECTS, PLAIN, REMOVE_COLUMNS
from mainstem.checkpoint.parsed import NotParsed
from mainstem.checkpoint.parsedtypes import PARTITION, STATS
from mainstem.checkpoint.plan import Columns, Kind
from mainstem.checkpoint.state import State
from mainstem.deltalog.files import LOG, LogDirectory
from mainstem.deltalog.writing import SCRATCH, LogWriter

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PART = re.compile(r"part-(\d+)-.*\.parquet")
_FORMAT_CHECK = "spark.databricks.delta.formatCheck.enabled"
_STRICT = {"mode": "FAILFAST"}  # what cannot be read must not become null


@contextmanager
def spark_parts(
    state: State, columns: Columns, *, spark: SparkSession, writer: LogWriter, kind: Kind
) -> Iterator[list[Part]]:
    """The files of a checkpoint, each with its place inside of the log; those that nobody adopts are gone afterwards.

    For a classic checkpoint all of its parts, in their order; for a v2 one its sidecars.
    """
    from pyspark.errors import PySparkException

    folder = f"{SCRATCH}{uuid4()}"
    try:
        frame = _file_rows(state, columns, spark)
        if kind == "classic":
            frame = _in_parts(frame, state, columns, spark)
        try:
            _write(frame, f"{writer.location.hadoop_path}/{LOG}/{folder}", columns.codec, spark)
        except PySparkException as error:
            if columns.typed:
                raise NotParsed from error  # perhaps; if it is not the reason, the next attempt says what is
            raise
        schema = columns.classic if kind == "classic" else columns.sidecar
        count = len(frames.slices(spark, state.snapshot.store.engine)) if kind == "classic" else 0
        yield _parts(writer, folder, schema, count)
    finally:
        writer.discard(folder)


def _file_rows(state: State, columns: Columns, spark: SparkSession) -> DataFrame:
    """Live files and tombstones under the columns of a sidecar."""
    snapshot = state.snapshot
    engine = snapshot.store.engine
    adds = frames.spans(spark, engine, snapshot.table_id, state.version, condition=state.choice.inlined)
    rows = _under(adds, columns.sidecar, "add")
    if state.tombstones_since is not None:
        gone = frames.tombstones(
            spark,
            engine,
            snapshot.table_id,
            state.version,
            since_ms=state.tombstones_since,
            columns=REMOVE_COLUMNS,
        )
        rows = rows.unionAll(_under(gone, columns.sidecar, "remove"))
    return rows


def _in_parts(files: DataFrame, state: State, columns: Columns, spark: SparkSession) -> DataFrame:
    """All rows in as many parts as there are slices, clustered as the protocol demands of parts and as Delta does it.

    Whoever writes the same version in the same number of parts then puts the same rows into each, so that parts of two
    writers make a whole.
    """
    from pyspark.sql import functions as f

    described = spark.createDataFrame(as_table(state.described(), columns.classic))
    rows = described.unionByName(files, allowMissingColumns=True)
    count = len(frames.slices(spark, state.snapshot.store.engine))
    return rows.repartition(count, f.coalesce(f.col("add.path"), f.col("remove.path")))


def _under(rows: DataFrame, schema: pa.Schema, name: str) -> DataFrame:
    from pyspark.sql import functions as f

    types = _spark_schema(schema)
    filled = [
        _struct(schema.field(column.name).type).cast(column.dataType).alias(column.name)
        if column.name == name
        else f.lit(None).cast(column.dataType).alias(column.name)
        for column in types
    ]
    return rows.select(*filled)


def _struct(kind: pa.StructType) -> Column:
    from pyspark.sql import functions as f

    fields = []
    for field in kind:
        if field.name == "dataChange":
            value = f.lit(False)  # a state changes no data
        elif field.name in OBJECTS:
            value = f.from_json(f.col(OBJECTS[field.name]), _spark_type(field.type), _STRICT)
        elif field.name == STATS:
            value = f.from_json(f.col("stats"), _spark_type(field.type))
        elif field.name == PARTITION:
            value = f.struct(*map(_partition_value, field.type))
        else:
            value = f.col(PLAIN[field.name])
        fields.append(value.alias(field.name))
    return f.struct(*fields)


def _partition_value(field: pa.Field) -> Column:
    """A typed partition value. One that is not of its type fails the job: null would be another value."""
    from pyspark.sql import functions as f

    text = f.from_json(f.col("partition_values"), _spark_type(shape.TEXTS), _STRICT)[field.name]
    kind = _spark_type(field.type)
    typed = f.coalesce(text.try_cast(kind), f.raise_error(f.lit(f"a value of {field.name}")).cast(kind))
    return f.when(text != "", typed).alias(field.name)


def _spark_type(kind: pa.DataType) -> Any:
    [field] = _spark_schema(pa.schema([("value", kind)]))
    return field.dataType


def _spark_schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(shape.spark_json(schema))


def _write(frame: DataFrame, place: str, codec: str, spark: SparkSession) -> None:
    # Delta refuses other formats below a Delta table's folder, which is what its log is.
    before = spark.conf.get(_FORMAT_CHECK, None)
    spark.conf.set(_FORMAT_CHECK, "false")
    try:
        frame.write.option("compression", codec).option("maxRecordsPerFile", 0).parquet(place)
    finally:
        if before is None:
            spark.conf.unset(_FORMAT_CHECK)
        else:
            spark.conf.set(_FORMAT_CHECK, before)


def _parts(writer: LogWriter, folder: str, schema: pa.Schema, count: int) -> list[Part]:
    """What Spark wrote. Where a number of parts is asked for, an empty one is missing, and is written here."""
    log = LogDirectory(writer.location)
    numbered = {int(found[1]): name for name in writer.scratch_files(folder) if (found := _PART.fullmatch(name))}
    if not count:
        return [_measured(log, f"{folder}/{numbered[place]}") for place in sorted(numbered)]
    for place in set(range(count)) - numbered.keys():
        numbered[place] = f"part-{place:05d}-empty.parquet"
        writer.scratch_write(f"{folder}/{numbered[place]}", _empty(schema))
    return [_measured(log, f"{folder}/{numbered[place]}") for place in range(count)]


def _empty(schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink, store_schema=False)
    return bytes(sink.getvalue())


def _measured(log: LogDirectory, name: str) -> Part:
    """Rows and live files by the file's own footer: every add has a size, and nothing else has one there."""
    with log.open_file(name) as source:
        footer = pq.ParquetFile(source).metadata
        adds = sum(_values(footer.row_group(place), "add.size") for place in range(footer.num_row_groups))
    return Part(Path(name), footer.num_rows, adds)


def _values(group: pq.RowGroupMetaData, path: str) -> int:
    columns = (group.column(place) for place in range(group.num_columns))
    found = next(column for column in columns if column.path_in_schema == path)
    return int(group.num_rows - found.statistics.null_count) if group.num_rows else 0
