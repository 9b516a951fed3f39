"""Checkpoints of every kind to the same actions that commits hold, batch by batch in bounded memory.

A checkpoint is a state, not a commit: an action's `seq` only counts where it stood. Columns that Delta adds for its own
speed (`stats_parsed`, `partitionValues_parsed`) are not kept, but statistics that exist only there become text again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NoReturn
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from mainstem.deltalog.actions import iter_commit
from mainstem.deltalog.bodies import BUILDERS
from mainstem.deltalog.fields import Refused
from mainstem.deltalog.files import LOG, SIDECARS, LogDirectory
from mainstem.deltalog.layout import KNOWN_KEYS, usual_order
from mainstem.deltalog.names import Checkpoint, CheckpointKind
from mainstem.deltalog.protocol import require_protocol_and_metadata
from mainstem.deltalog.statsjson import stats_texts
from mainstem.errors import CorruptLog, VersionNotFound
from mainstem.identity import bucket_and_key, canonical_path, dv_unique_id, is_absolute
from mainstem.model import FIRST_SEQ, Action, AddFile, CdcFile, CommitInfo, Metadata, OtherAction, Protocol, RemoveFile

BATCH_ROWS = 8192
_DERIVED = frozenset({"stats_parsed", "partitionValues_parsed"})
_STATS_PARSED = "add.stats_parsed."
_NOT_STATE = frozenset({"commitInfo", "cdc"})  # some writers have the columns; a state has neither
_NEVER = frozenset({CommitInfo, CdcFile})
_ONCE = frozenset({Protocol, Metadata})


def read_checkpoint(log: LogDirectory, checkpoint: Checkpoint, *, batch_rows: int = BATCH_ROWS) -> Iterator[Action]:
    """The state at the checkpoint's version: live files, tombstones, metadata, protocol, transactions, domains.

    Raises `CorruptLog`, with the file, for what cannot be read, for a sidecar elsewhere than in `_sidecars`, and at the
    end if there was no protocol or no metadata.
    """
    seq = FIRST_SEQ
    once: dict[type[Action], Action] = {}
    sidecars: dict[str, None] = {}
    for file in checkpoint.files:
        for action in _read_file(log, file.name, seq, batch_rows):
            kind = type(action)
            if kind in _NEVER or (isinstance(action, OtherAction) and action.name == "checkpointMetadata"):
                continue
            if isinstance(action, OtherAction) and action.name == "sidecar":
                name = _sidecar_name(log, action.body, file.name)
                if name in sidecars:
                    _refuse(file.name, f"the sidecar {name[:200]!r} is named twice")
                sidecars[name] = None
                continue
            if kind in _ONCE:
                if kind in once:
                    _refuse(file.name, f"a second {kind.__name__} in one checkpoint")
                once[kind] = action
            yield action
            seq = action.seq + 1
    for name in sidecars:
        for action in _read_sidecar(log, name, checkpoint, seq, batch_rows):
            yield action
            seq = action.seq + 1
    _require(once, checkpoint.files[0].name)


def checkpoint_files(log: LogDirectory, checkpoint: Checkpoint) -> dict[bytes, str]:
    """The path of every live file in a checkpoint by its `file_key`, for a third of the price of reading it all.

    Raises `CorruptLog` as `read_checkpoint` does where there is no protocol or metadata, but looks at no other field.
    """
    if checkpoint.kind is not CheckpointKind.V2:
        found: dict[bytes, str] = {}
        kinds = [_collect_files(log, file.name, found) for file in checkpoint.files]
        if {"protocol", "metaData"} <= set().union(*kinds) and not any("sidecar" in seen for seen in kinds):
            return found
    return {action.file_key: action.path for action in read_checkpoint(log, checkpoint) if type(action) is AddFile}


def top_actions(log: LogDirectory, checkpoint: Checkpoint) -> Iterator[Action]:
    """What stands in the checkpoint's own files, sidecars and its own metadata as they are named there."""
    for file in checkpoint.files:
        yield from _read_file(log, file.name, FIRST_SEQ, BATCH_ROWS)


def checkpoint_sidecars(log: LogDirectory, checkpoint: Checkpoint) -> list[str]:
    """The names of its sidecars in `_sidecars`, without a look at anything else in it.

    Raises `CorruptLog` for a file that cannot be opened, so that it also says whether the checkpoint is there at all.
    """
    found: list[str] = []
    for file in checkpoint.files:
        if file.name.endswith(".json"):
            actions = _read_file(log, file.name, FIRST_SEQ, BATCH_ROWS)
            bodies = [action.body for action in actions if isinstance(action, OtherAction) and action.name == "sidecar"]
        else:
            bodies = _sidecar_bodies(log, file.name)
        found += [_sidecar_name(log, body, file.name) for body in bodies]
    return found


def _sidecar_bodies(log: LogDirectory, name: str) -> list[str]:
    with closing(log.open_file(name)) as source:
        try:
            parquet = pq.ParquetFile(source)
            if "sidecar" not in parquet.schema_arrow.names:
                return []
            column = parquet.read(columns=["sidecar.path"]).column("sidecar")
            return [orjson.dumps(row).decode() for row in column.to_pylist() if row is not None]
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            _refuse(name, f"it is not a readable checkpoint: {error}")


def _collect_files(log: LogDirectory, name: str, found: dict[bytes, str]) -> set[str]:
    """Add the live files of one Parquet file; which other kinds of action that matter to a state it has."""
    with closing(log.open_file(name)) as source:
        try:
            parquet = pq.ParquetFile(source)
            _refuse_odd_columns(parquet.schema_arrow)
            seen = {"sidecar"} & set(parquet.schema_arrow.names)
            columns = ["add.path", "add.deletionVector", "protocol.minReaderVersion", "metaData.id"]
            for batch in parquet.iter_batches(columns=columns):
                for kind, column in zip(batch.schema.names, batch.columns, strict=True):
                    if kind == "add":
                        found.update(_file_keys(column.drop_null(), log.root))
                    elif column.null_count < len(column):
                        seen.add(kind)
        except Refused as error:
            _refuse(name, str(error))
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            _refuse(name, f"it is not a readable checkpoint: {error}")
    return seen


def _file_keys(adds: pa.StructArray, root: str) -> Iterator[tuple[bytes, str]]:
    fields = dict(zip([field.name for field in adds.type], adds.flatten(), strict=True))
    paths = fields["path"].to_pylist()
    vectors = fields["deletionVector"].to_pylist() if "deletionVector" in fields else [None] * len(paths)
    for path, vector in zip(paths, vectors, strict=True):
        dv_id = vector and dv_unique_id(vector["storageType"], vector["pathOrInlineDv"], vector.get("offset"))
        yield bucket_and_key(path, dv_id, root)[1], path


def _require(once: dict[type[Action], Action], where: str) -> None:
    protocol, metadata = once.get(Protocol), once.get(Metadata)
    assert protocol is None or isinstance(protocol, Protocol)
    assert metadata is None or isinstance(metadata, Metadata)
    require_protocol_and_metadata(protocol, metadata, where=where)


def _read_file(log: LogDirectory, name: str, seq: int, batch_rows: int) -> Iterator[Action]:
    if name.endswith(".json"):
        return iter_commit(log.stream_file(name), file=name, table_root=log.root)
    return _read_parquet(log, name, seq, batch_rows)


def _read_sidecar(log: LogDirectory, name: str, checkpoint: Checkpoint, seq: int, batch_rows: int) -> Iterator[Action]:
    try:
        for action in _read_parquet(log, f"{SIDECARS}/{name}", seq, batch_rows):
            if type(action) is not AddFile and type(action) is not RemoveFile:
                _refuse(f"{SIDECARS}/{name}", "a sidecar may hold only files and tombstones")
            yield action
    except VersionNotFound:
        _refuse(checkpoint.files[0].name, f"its sidecar {name} is not there")


def _read_parquet(log: LogDirectory, name: str, seq: int, batch_rows: int) -> Iterator[Action]:
    with closing(log.open_file(name)) as source:
        row = 0
        try:
            # INT96 as nanoseconds, which is the default, silently wraps around outside of 1677 to 2262.
            parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="ms")
            instants = _int96(parquet.schema)
            columns = [column.name for column in parquet.schema_arrow if column.name not in _NOT_STATE]
            _refuse_odd_columns(parquet.schema_arrow)
            for batch in parquet.iter_batches(batch_size=batch_rows, columns=columns):
                for kind, values in _rows(batch, instants):
                    yield _action(kind, values, seq, log.root)
                    seq += 1
                row += batch.num_rows
        except Refused as error:
            _refuse(name, f"{error} (within {batch_rows} rows after row {row})")
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            _refuse(name, f"it is not a readable Parquet file: {error}")


def _refuse_odd_columns(schema: pa.Schema) -> None:
    """What would be passed over in silence, or taken for something else, is refused before it is read."""
    if len(set(schema.names)) != len(schema.names):
        raise Refused("a column appears twice")
    for column in schema:
        if column.name not in BUILDERS and column.name != "sidecar":
            continue
        if not pa.types.is_struct(column.type) or column.type.num_fields == 0:
            raise Refused(f"the column {column.name} must be a struct")
        fields = [field.name for field in column.type]
        if len(set(fields)) != len(fields):
            raise Refused(f"a field of {column.name} appears twice")


def _int96(schema: pq.ParquetSchema) -> frozenset[str]:
    """The statistics of type INT96: they are always UTC, though their Arrow type names no zone."""
    columns = (schema.column(place) for place in range(len(schema)))
    return frozenset(
        column.path.removeprefix(_STATS_PARSED)
        for column in columns
        if column.physical_type == "INT96" and column.path.startswith(_STATS_PARSED)
    )


def _rows(batch: pa.RecordBatch, instants: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each action of a batch with its fields that are not null, one kind of action after the other."""
    for kind, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_struct(column.type) or column.null_count == len(column):
            continue
        present = column.filter(column.is_valid()) if column.null_count else column
        arrays = dict(zip([field.name for field in present.type], present.flatten(), strict=True))
        parsed = arrays.get("stats_parsed") if kind == "add" else None
        values = {name: _values(array) for name, array in arrays.items() if name not in _DERIVED}
        if parsed is not None:
            values["stats"] = _stats(values.get("stats"), parsed, instants)
        # A checkpoint has no order of keys to keep; the usual one needs no `extra`.
        keys = usual_order(kind, values)
        for row in zip(*(values[key] for key in keys), strict=True):
            yield kind, {key: value for key, value in zip(keys, row, strict=True) if value is not None}


def _values(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    convert = _converter(array.type)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """How a value gets its maps as objects, which is what they are in a log; None if it has none.

    Arrow gives them as lists of pairs, that only the type tells from other lists.
    """
    if pa.types.is_map(kind):
        return _object
    if not pa.types.is_struct(kind):
        return None
    inner = {field.name: convert for field in kind if (convert := _converter(field.type))}
    if not inner:
        return None

    def convert_fields(value: dict[str, Any]) -> dict[str, Any]:
        return {key: inner[key](item) if item is not None and key in inner else item for key, item in value.items()}

    return convert_fields


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Refused("a key of a map appears twice")
    return result


def _stats(texts: list[str | None] | None, parsed: pa.StructArray, instants: frozenset[str]) -> list[str | None]:
    if texts is not None and None not in texts:
        return texts
    derived = stats_texts(parsed, instants=instants)
    return (
        derived
        if texts is None
        else [text if text is not None else also for text, also in zip(texts, derived, strict=True)]
    )


def _action(kind: str, values: dict[str, Any], seq: int, root: str) -> Action:
    builder = BUILDERS.get(kind)
    if builder is None:
        return OtherAction(seq, kind, orjson.dumps(values, default=str).decode())
    vector = values.get("deletionVector")
    if type(vector) is dict:
        values["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
    if not KNOWN_KEYS[kind].issuperset(values):
        # A field of a newer writer: it survives as JSON, so it must be something that JSON can say.
        values = orjson.loads(orjson.dumps(values, default=str))
    return builder(values, None, seq, root)


def _sidecar_name(log: LogDirectory, body: str, file: str) -> str:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:  # legal JSON all the same, with a number or a character that no path has
        fields = None
    path = fields.get("path") if type(fields) is dict else None
    if type(path) is not str:
        _refuse(file, "a sidecar without a path")
    name = path
    if is_absolute(path):
        # The whole address is allowed, as long as it is this table's own folder of sidecars.
        own = canonical_path(f"{log.root}/{LOG}/{SIDECARS}/-", log.root)[:-1]
        name = canonical_path(path, log.root).removeprefix(own)
    name = unquote(name)
    if not name or "/" in name or "\\" in name or "\0" in name or name.startswith("."):
        _refuse(file, f"the sidecar {path[:200]!r} is not a file of {LOG}/{SIDECARS}")
    return name


def _refuse(file: str, why: str) -> NoReturn:
    raise CorruptLog(f"{file}: {why}.", hint="Nothing was imported.", file=file, line=None)
