"""What executors do in Python: read files, and what Spark has no function for. Bounded memory, no database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from mainstem.datafiles import inside, list_files, placed, vector_files
from mainstem.deltalog.actions import iter_commit, iter_lines
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.serialize import serialize_action
from mainstem.errors import MainstemError
from mainstem.identity import bucket_and_key
from mainstem.model import Action
from mainstem.recorded import commit_info
from mainstem.rows import SHAPES
from mainstem.validate.data import statistics_of
from mainstem.validate.laid import laid
from mainstem.validate.livefields import FIELDS, differing
from mainstem.validate.report import Finding
from mainstem.validate.typed import TypedColumns

if TYPE_CHECKING:
    import pyarrow as pa

LINES = "version bigint, line binary, sha256 string, error string"
LAID = "version bigint, seq bigint, name string, about string, fields map<string,string>, error string"
HASHES = "version bigint, sha256 string"
KEYED = "version bigint, seq bigint"
LISTED = "path string, size_bytes bigint, modified_ms bigint"
FOUND = "check string, severity string, message string, version bigint, path string, column string, catalog string, log string"  # noqa: E501
NAMED = "on_disk string"
PLACED = "version bigint, path string, size_bytes bigint, num_records bigint, on_disk string, linked_bytes bigint"
DIFFERENT = "path string, dv_id string, side string, column string, catalog string, log string"
VECTORS = "version bigint, path string, file string"
_BATCH_ROWS = 2000
_BATCH_BYTES = 4 * 1024 * 1024
_SHAPES = {shape.table: shape for shape in SHAPES}
_VERSIONS = "dl_table_versions"


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _batches(rows: Iterable[tuple[Any, ...]], schema: str) -> Iterator[pa.RecordBatch]:
    """Rows as batches of a bounded size. The schema is what Spark was told, in Arrow's words."""
    import pyarrow as pa

    kinds = {
        "bigint": pa.int64(), "binary": pa.binary(), "string": pa.string(),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }  # fmt: skip
    arrow = pa.schema([(name, kinds[kind]) for name, kind in (each.split(" ") for each in schema.split(", "))])
    held: list[tuple[Any, ...]] = []
    size = 0

    def batch() -> pa.RecordBatch:
        columns = zip(*held, strict=True)
        return pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)], schema=arrow
        )

    for row in rows:
        held.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(held) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch()
            held, size = [], 0
    if held:
        yield batch()


@dataclass(frozen=True)
class ReadLines:
    """The lines of commits as they are, unread, and at the end of each commit the hash of its bytes."""

    location: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(self._lines(_rows(batches)), LINES)

    def _lines(self, commits: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
        log = LogDirectory.open(self.location)
        for commit in commits:
            version, digest = commit["version"], sha256()

            def chunks(version: int = version, digest: Any = digest) -> Iterator[bytes]:
                for chunk in log.stream(version):
                    digest.update(chunk)
                    yield chunk

            try:
                for _, _, line in iter_lines(chunks(), file=commit_name(version)):
                    yield version, line, None, None
            except MainstemError as error:
                yield version, None, None, error.message
            yield version, None, digest.hexdigest(), None


@dataclass(frozen=True)
class ReadActions:
    """The actions of commits, laid out, by our own parser; one that cannot be read is told by its error instead."""

    location: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(self._actions(_rows(batches)), LAID)

    def _actions(self, commits: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
        log = LogDirectory.open(self.location)
        for commit in commits:
            version = commit["version"]
            try:
                chunks = log.stream(version)
                for action in iter_commit(chunks, file=commit_name(version), table_root=log.root):
                    yield _laid_row(version, action)
            except MainstemError as error:
                yield version, None, None, None, None, error.message


def _laid_row(version: int, action: Action) -> tuple[Any, ...]:
    found = laid(action)
    return version, action.seq, found.name, found.about, list(found.fields.items()), None


def _recorded(row: dict[str, Any]) -> Action | None:
    """The action of a row that came as the JSON of its columns; commitInfo from the row of its version."""
    values = orjson.loads(row["values"])
    if row["kind"] == _VERSIONS:
        return commit_info(values.get("commit_info"), version=row["version"])
    shape = _SHAPES[row["kind"]]
    given = {column: values.get(column) for column in shape.columns}
    for column in ("file_key", "app_key", "domain_key"):
        if given.get(column) is not None:
            given[column] = bytes.fromhex(given[column])
    return shape.action(given)


class LayRecorded:
    """The catalog's rows, laid out as the log's actions are."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _rows(batches)
        found = ((row["version"], _recorded(row)) for row in rows)
        return _batches((_laid_row(version, action) for version, action in found if action is not None), LAID)


class HashRecorded:
    """The hash of what the catalog's rows are written as; they come by version, and within it by their place."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(self._hashes(_rows(batches)), HASHES)

    def _hashes(self, rows: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
        for version, of_version in groupby(rows, key=lambda row: row["version"]):
            digest = sha256()
            for row in of_version:
                action = _recorded(row)
                if action is not None:
                    digest.update(serialize_action(action) + b"\n")
            yield version, digest.hexdigest()


@dataclass(frozen=True)
class WrongKeys:
    """Of the catalog's files, those whose key or bucket is not that of their path and deletion vector."""

    root: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(self._wrong(batches), KEYED)

    def _wrong(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        names = ("version", "seq", "path", "dv_id", "path_bucket", "file_key")
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in names]
            for version, seq, path, dv_id, bucket, key in zip(*columns, strict=True):
                if bucket_and_key(path, dv_id, self.root) != (bucket, key):
                    yield version, seq


@dataclass(frozen=True)
class AddKeys:
    """The same rows with `file_key`, from `path` and `dv_id`. Other columns stay as they are."""

    root: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            pairs = zip(batch.column("path").to_pylist(), batch.column("dv_id").to_pylist(), strict=True)
            keys = pa.array([bucket_and_key(path, dv_id, self.root)[1] for path, dv_id in pairs], pa.binary())
            yield batch.append_column("file_key", keys)


@dataclass(frozen=True)
class ListFolders:
    """The files below folders of a table."""

    location: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = open_location(self.location)
        found = (file for row in _rows(batches) for file in list_files(place, folder=row["folder"]))
        return _batches(((file.path, file.size_bytes, file.modified_ms) for file in found), LISTED)


@dataclass(frozen=True)
class CompareFiles:
    """Pairs of the catalog's row of a file, `ours_`, and a state's, `theirs_`, as rows of what is not the same.

    `side` is who alone has the file; null where both have it and say otherwise in a column.
    """

    columns: TypedColumns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches((found for row in _rows(batches) for found in self._of(row)), DIFFERENT)

    def _of(self, row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        if row["ours"] is None or row["theirs"] is None:
            side = "catalog" if row["theirs"] is None else "log"
            owner = "ours" if row["theirs"] is None else "theirs"
            yield row[f"{owner}_path"], row[f"{owner}_dv_id"], side, None, None, None
            return
        ours, theirs = ({name: row[f"{side}_{name}"] for name in FIELDS} for side in ("ours", "theirs"))
        for column, left, right in differing(ours, theirs, self.columns):
            yield row["ours_path"], row["ours_dv_id"], None, column, _told(left), _told(right)


def _told(value: Any) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True)
class CheckStatistics:
    """What is wrong with the statistics of files."""

    columns: TypedColumns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = (
            finding
            for row in _rows(batches)
            for finding in statistics_of(row["version"], row["path"], row["num_records"], row["stats"], self.columns)
        )
        return _batches(map(found_row, found), FOUND)


@dataclass(frozen=True)
class VectorFiles:
    """The files that hold the deletion vectors of rows."""

    location: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = open_location(self.location)
        rows = (
            (row["version"], row["path"], file)
            for row in _rows(batches)
            # The last of its names is the one that a listing shows.
            for file in list(vector_files(row["deletion_vector"], place))[-1:]
        )
        return _batches(rows, VECTORS)


@dataclass(frozen=True)
class PlaceFiles:
    """The same rows with how their file is called in a listing of the table's folder, null for one that is elsewhere;
    and with its size, where only a link leads to it.
    """

    location: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        place = open_location(self.location)
        for batch in batches:
            found = [placed(path, place) for path in batch.column("path").to_pylist()]
            named = batch.append_column("on_disk", pa.array([each.name for each in found], pa.string()))
            yield named.append_column("linked_bytes", pa.array([each.size_bytes for each in found], pa.int64()))


@dataclass(frozen=True)
class NamedFiles:
    """The files that rows name by a whole address, and those of their deletion vectors, inside of the folder."""

    location: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = open_location(self.location)
        return _batches(((file,) for row in _rows(batches) for file in self._of(row, place)), NAMED)

    def _of(self, row: dict[str, Any], place: Location) -> Iterator[str]:
        yield from inside(row["path"], place)
        if row["deletion_vector"]:
            yield from vector_files(row["deletion_vector"], place)


def found_row(finding: Finding) -> tuple[Any, ...]:
    """A finding as a row; what catalog and log say becomes text."""
    values = ((field.name, getattr(finding, field.name)) for field in fields(Finding))
    return tuple(value if value is None or name == "version" else str(value) for name, value in values)
