"""A state into a log: its files first, `_last_checkpoint` last, so that it never points at what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import orjson
import pyarrow.parquet as pq

from mainstem import observe
from mainstem.checkpoint import driverparts, shape
from mainstem.checkpoint.described import Described, as_lines, as_table, without_nulls
from mainstem.checkpoint.driverparts import Part, TooManyFiles
from mainstem.checkpoint.hint import hint_bytes
from mainstem.checkpoint.parsed import NotParsed
from mainstem.checkpoint.plan import Columns, Kind, TopFormat, columns_of, kind_of
from mainstem.checkpoint.state import ALL_FILES, State
from mainstem.deltalog.files import SIDECARS, LogDirectory
from mainstem.deltalog.names import LogFile, checkpoint_name, part_name, v2_checkpoint_name
from mainstem.deltalog.writing import HINT, LogWriter
from mainstem.errors import CorruptCatalog, MainstemError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How many actions and sidecars Delta repeats in `_last_checkpoint`, which spares a reader the top file.
_MOST_IN_HINT = 30

Hint = dict[str, Any]
WrittenKind = Literal["classic", "multi-part", "v2"]


@dataclass(frozen=True, slots=True)
class WrittenCheckpoint:
    """A checkpoint that is there. `files` are its names in the log, sidecars among them."""

    version: int
    kind: WrittenKind
    files: tuple[str, ...]
    actions: int
    add_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Stored:
    """A part that has its name in the log."""

    file: LogFile
    rows: int
    adds: int


def write_state(
    state: State,
    *,
    writer: LogWriter,
    kind: Kind | None = None,
    top: TopFormat = "json",
    spark: SparkSession | None = None,
) -> WrittenCheckpoint:
    """Write a state as a checkpoint into any log, and let `_last_checkpoint` name it.

    The kind is the table's own unless one is given; `top` is the format of a v2 checkpoint's top file. Up to the
    setting `checkpoint_files` it is written by this process, and beyond it by Spark, if there is a session. Killed at
    any moment, it leaves a log as readable as before, and doing it again completes it.
    """
    job = _Job(state, columns_of(state), kind or kind_of(state), top, writer)
    settings = state.snapshot.store.engine.settings
    with (
        observe.span("checkpoint.write", table=state.snapshot.table, version=state.version, kind=job.kind),
        TemporaryDirectory(prefix="mainstem-", dir=settings.local_scratch) as scratch,
    ):
        try:
            written, hint = _write(job, spark, Path(scratch), settings.checkpoint_files)
        except NotParsed:
            plain = replace(job, columns=columns_of(state, typed=False))
            written, hint = _write(plain, spark, Path(scratch), settings.checkpoint_files)
        if not _hint_is_newer(writer, state.version):
            writer.replace(HINT, hint_bytes(hint))
    observe.event("checkpoint.written", table=state.snapshot.table, version=state.version, kind=written.kind)
    return written


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be written, as what, and where."""

    state: State
    columns: Columns
    kind: Kind
    top: TopFormat
    writer: LogWriter


def _write(job: _Job, spark: SparkSession | None, scratch: Path, limit: int) -> tuple[WrittenCheckpoint, Hint]:
    state = job.state
    able = spark is not None and state.choice.inlined is not None and state.rewrite is None
    if not (able and state.choice == ALL_FILES and state.exceeds(limit)):
        try:
            return _by_driver(job, scratch, limit if able else None)
        except TooManyFiles:
            pass
    return _by_spark(job, spark, scratch)


def _by_driver(job: _Job, scratch: Path, most: int | None) -> tuple[WrittenCheckpoint, Hint]:
    if job.kind == "classic":
        part = driverparts.whole_state(job.state, job.columns, scratch, most=most)
        _check(job.state, [part])
        return _classic(job, [_upload(job.writer, checkpoint_name(job.state.version), part)])
    parts = list(driverparts.file_parts(job.state, job.columns, scratch, most=most))
    _check(job.state, parts)
    return _on_top(job, [_upload(job.writer, _sidecar_name(), part) for part in parts], scratch)


def _by_spark(job: _Job, spark: SparkSession | None, scratch: Path) -> tuple[WrittenCheckpoint, Hint]:
    from mainstem.checkpoint.sparkparts import spark_parts

    assert spark is not None
    with spark_parts(job.state, job.columns, spark=spark, writer=job.writer, kind=job.kind) as parts:
        _check(job.state, parts)
        if job.kind == "v2":
            return _on_top(job, [_adopt(job.writer, _sidecar_name(), part) for part in parts if part.rows], scratch)
        version, count = job.state.version, len(parts)
        names = [part_name(version, place, count) for place in range(1, count + 1)]
        if count == 1:
            names = [checkpoint_name(version)]
        return _classic(job, [_adopt(job.writer, name, part) for name, part in zip(names, parts, strict=True)])


def _sidecar_name() -> str:
    return f"{SIDECARS}/{uuid4()}.parquet"


def _upload(writer: LogWriter, name: str, part: Part) -> _Stored:
    writer.upload(name, part.path)
    return _Stored(writer.find(name), part.rows, part.adds)


def _adopt(writer: LogWriter, name: str, part: Part) -> _Stored:
    writer.adopt(str(part.path), name)
    return _Stored(writer.find(name), part.rows, part.adds)


def _classic(job: _Job, parts: Sequence[_Stored]) -> tuple[WrittenCheckpoint, Hint]:
    """What is known of a classic checkpoint whose parts are all there, and what `_last_checkpoint` says of it."""
    written = WrittenCheckpoint(
        version=job.state.version,
        kind="classic" if len(parts) == 1 else "multi-part",
        files=tuple(part.file.name for part in parts),
        actions=sum(part.rows for part in parts),
        add_files=sum(part.adds for part in parts),
        size_bytes=sum(part.file.size_bytes for part in parts),
    )
    hint = _hint(written, parts=len(parts) if len(parts) > 1 else None)
    return written, {**hint, "checkpointSchema": shape.spark_json(job.columns.classic)}


def _on_top(job: _Job, sidecars: Sequence[_Stored], scratch: Path) -> tuple[WrittenCheckpoint, Hint]:
    """Write the top file of a v2 checkpoint whose sidecars are all there; the same two answers as for a classic one."""
    named = [_sidecar(found.file) for found in sidecars]
    about: Described = {
        "checkpointMetadata": {
            "version": job.state.version,
            "tags": {
                "sidecarNumActions": str(sum(found.rows for found in sidecars)),
                "sidecarSizeInBytes": str(sum(found.file.size_bytes for found in sidecars)),
                "numOfAddFiles": str(sum(found.adds for found in sidecars)),
                "sidecarFileSchema": orjson.dumps(shape.spark_json(job.columns.sidecar)).decode(),
            },
        }
    }
    described = job.state.described()
    rows = [about, *named, *described]
    name = v2_checkpoint_name(job.state.version, str(uuid4()), job.top)
    path = scratch / name
    if job.top == "json":
        path.write_bytes(as_lines(rows))
    else:
        pq.write_table(as_table(rows, shape.top_schema()), path, compression=job.columns.codec, store_schema=False)
    job.writer.upload(name, path)
    file = job.writer.find(name)
    written = WrittenCheckpoint(
        version=job.state.version,
        kind="v2",
        files=(name, *(found.file.name for found in sidecars)),
        actions=len(rows) + sum(found.rows for found in sidecars),
        add_files=sum(found.adds for found in sidecars),
        size_bytes=file.size_bytes + sum(found.file.size_bytes for found in sidecars),
    )
    inner = {
        "path": name,
        "sizeInBytes": file.size_bytes,
        "modificationTime": file.modified_ms,
        "nonFileActions": [without_nulls(row) for row in [*described, about]],
        "sidecarFiles": [row["sidecar"] for row in named],
    }
    short = {key: value for key, value in inner.items() if not isinstance(value, list) or len(value) <= _MOST_IN_HINT}
    schema = None if job.top == "json" else shape.spark_json(shape.top_schema())
    return written, {**_hint(written), "checkpointSchema": schema, "v2Checkpoint": short}


def _sidecar(file: LogFile) -> Described:
    path = file.name.removeprefix(f"{SIDECARS}/")
    return {"sidecar": {"path": path, "sizeInBytes": file.size_bytes, "modificationTime": file.modified_ms}}


def _hint(written: WrittenCheckpoint, parts: int | None = None) -> Hint:
    return {
        "version": written.version,
        "size": written.actions,
        "parts": parts,
        "sizeInBytes": written.size_bytes,
        "numOfAddFiles": written.add_files,
    }


def _check(state: State, parts: Sequence[Part]) -> None:
    """A checkpoint that lacks a file, or has one too many, must never be seen."""
    expected, found = state.file_count(), sum(part.adds for part in parts)
    if expected is not None and expected != found:
        raise CorruptCatalog(
            f"a checkpoint of version {state.version} of {state.snapshot.table} would have {found} files, but the "
            f"version has {expected}.",
            hint="Nothing was written. Run: mainstem validate",
        )


def _hint_is_newer(writer: LogWriter, version: int) -> bool:
    """Whether `_last_checkpoint` names a later checkpoint that is there; what says nothing useful is replaced."""
    log = LogDirectory(writer.location)
    try:
        said = orjson.loads(log.read_file(HINT))
        named = said.get("version") if isinstance(said, dict) else None
        if type(named) is not int or not version < named < 2**63:
            return False
        return any(found.version == named for found in log.list(from_version=named).checkpoints)
    except (MainstemError, orjson.JSONDecodeError):
        return False
