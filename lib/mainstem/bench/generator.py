"""Synthetic actions, made by column: the text of commits, and the same values as rows. Same recipe, same bytes.

Every number has a fixed count of digits, so that a line is a row of a matrix of bytes and millions are made in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mainstem.bench.recipe import START_MS, Ints, Recipe

Matrix = npt.NDArray[np.uint8]
Texts = npt.NDArray[np.bytes_]

ROWS = 1000  # rows in a data file: its ids are its own, so that a range of ids is a range of files
_CHUNK = 50_000  # actions made at a time: a hundred megabytes of text

SCHEMA = (
    '{"type":"struct","fields":['
    + ",".join(
        f'{{"name":"{name}","type":"{kind}","nullable":true,"metadata":{{}}}}'
        for name, kind in (
            ("id", "long"), ("customer", "string"), ("amount", "double"), ("quantity", "integer"),
            ("event_time", "timestamp"), ("product", "string"), ("date", "date"),
        )
    )
    + "]}"
)  # fmt: skip


@dataclass(frozen=True)
class Chunk:
    """The versions from `start` up to and without `stop`: the files that they add, and those that they remove."""

    generator: Generator
    start: int
    stop: int

    @property
    def versions(self) -> range:
        return range(self.start, self.stop)

    @cached_property
    def added(self) -> Ints:
        return self.generator.recipe.files_of(self.start, self.stop)

    @cached_property
    def gone(self) -> Ints:
        return self.generator.recipe.gone_of(self.start, self.stop)

    @cached_property
    def added_until(self) -> Ints:
        """How many of `added` belong to the versions up to each."""
        return self._until(self.generator.recipe.version_of(self.added))

    @cached_property
    def gone_until(self) -> Ints:
        """How many of `gone` belong to the versions up to each."""
        return self._until(self.generator.recipe.removed_of(self.gone))

    def _until(self, owners: Ints) -> Ints:
        return np.searchsorted(owners, np.arange(self.start, self.stop), side="right").astype(np.int64)

    def commits(self) -> Iterator[bytes]:
        """The file of each version, in order: commitInfo, then protocol and metadata or adds, then removes."""
        generator = self.generator
        adds, removes = generator.add_lines(self.added), generator.remove_lines(self.gone)
        infos = generator.info_lines(np.arange(self.start, self.stop, dtype=np.int64))
        adding, removing = 0, 0
        for place, version in enumerate(self.versions):
            head = infos[place].tobytes() + (generator.first_lines() if version == 0 else b"")
            to_add, to_remove = int(self.added_until[place]), int(self.gone_until[place])
            yield head + adds[adding:to_add].tobytes() + removes[removing:to_remove].tobytes()
            adding, removing = to_add, to_remove


class Generator:
    """The actions of a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        first = date(1970, 1, 1) + timedelta(milliseconds=START_MS)
        days = "".join((first + timedelta(days=day)).isoformat() for day in range(recipe.days))
        self._days: Matrix = np.frombuffer(days.encode(), dtype=np.uint8).reshape(recipe.days, 10)

    def chunks(self, *, start: int = 0) -> Iterator[Chunk]:
        """All versions from `start` on, in pieces that fit in memory."""
        step = max(1, _CHUNK * self.recipe.commits // self.recipe.actions)
        for first in range(start, self.recipe.commits, step):
            yield Chunk(self, first, min(first + step, self.recipe.commits))

    # The lines of commits.

    def first_lines(self) -> bytes:
        """Protocol and metadata, as version 0 has them."""
        schema = SCHEMA.replace('"', '\\"')
        return (
            '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
            f'{{"metaData":{{"id":"{self.table_id}","format":{{"provider":"parquet","options":{{}}}},'
            f'"schemaString":"{schema}","partitionColumns":["date"],"configuration":{{}},"createdTime":{START_MS}}}}}\n'
        ).encode()

    @property
    def table_id(self) -> str:
        """Delta's own id of the table."""
        return bytes(_uuids(np.array([-1]), self.recipe.seed)[0]).decode()

    def info_lines(self, versions: Ints) -> Matrix:
        return _joined(
            len(versions),
            b'{"commitInfo":{"timestamp":', _digits(self.recipe.time_of(versions), 13),
            b',"operation":"WRITE","operationParameters":{"mode":"Append","partitionBy":"[]"},'
            b'"isolationLevel":"Serializable","isBlindAppend":false,"operationMetrics":{"numFiles":"72",'
            b'"numOutputRows":"72000","numOutputBytes":"9437184"},'
            b'"engineInfo":"Apache-Spark/4.2.0 Delta-Lake/4.4.0","txnId":"',
            _uuids(-2 - versions, self.recipe.seed), b'"}}\n',
        )  # fmt: skip

    def add_lines(self, files: Ints) -> Matrix:
        return _joined(
            len(files),
            b'{"add":{"path":"', self._path(files), b'","partitionValues":{"date":"', self._date(files),
            b'"},"size":', _digits(self.size(files), 8), b',"modificationTime":', _digits(self.time(files), 13),
            b',"dataChange":true,"stats":"', *self._stats(files, quote=b'\\"'), b'"}}\n',
        )  # fmt: skip

    def remove_lines(self, files: Ints) -> Matrix:
        return _joined(
            len(files),
            b'{"remove":{"path":"', self._path(files), b'","deletionTimestamp":', _digits(self.deleted(files), 13),
            b',"dataChange":true,"extendedFileMetadata":true,"partitionValues":{"date":"', self._date(files),
            b'"},"size":', _digits(self.size(files), 8), b"}}\n",
        )  # fmt: skip

    # The same as columns.

    def paths(self, files: Ints) -> Texts:
        return _texts(self._path(files))

    def dates(self, files: Ints) -> Texts:
        return _texts(self._date(files))

    def stats(self, files: Ints) -> Texts:
        return _texts(_joined(len(files), *self._stats(files, quote=b'"')))

    def size(self, files: Ints) -> Ints:
        return 10_000_000 + (_mixed(files, self.recipe.seed + 1) % np.uint64(80_000_000)).astype(np.int64)

    def time(self, files: Ints) -> Ints:
        """When a file was written: a second before its commit."""
        return self.recipe.time_of(self.recipe.version_of(files)) - 1000

    def deleted(self, files: Ints) -> Ints:
        """When a file was removed."""
        return self.recipe.time_of(self.recipe.removed_of(files))

    def _date(self, files: Ints) -> Matrix:
        found: Matrix = self._days[self.recipe.day_of(files)]
        return found

    def _path(self, files: Ints) -> Matrix:
        return _joined(
            len(files),
            b"date=", self._date(files), b"/part-", _digits(files % 100_000, 5), b"-",
            _uuids(files, self.recipe.seed), b".c000.snappy.parquet",
        )  # fmt: skip

    def _stats(self, files: Ints, *, quote: bytes) -> tuple[bytes | Matrix, ...]:
        """Bounds and counts of seven columns: about 500 bytes, which is what Delta writes for such a table."""
        random = _mixed(files, self.recipe.seed + 2)
        low, high = _hex(random), _hex(_mixed(files, self.recipe.seed + 3))
        cents = (random % np.uint64(800)).astype(np.int64)
        ids, day = first_id(files), self._date(files)

        def bounds(which: bytes, row: int, digit: bytes, amount: int, clock: bytes) -> tuple[bytes | Matrix, ...]:
            return (
                b',"' + which + b'":{"id":', _digits(ids + row, 12), b',"customer":"' + digit, low, high[:, :15],
                b'","amount":', _digits(amount + cents, 4), b".", _digits(10 + cents % 89, 2)[:, :1], b"5",
                b',"quantity":', _digits(amount + cents, 4), b',"event_time":"', day, clock,
                b'","product":"' + digit + b" product ", high, b'"}',
            )  # fmt: skip

        parts = (
            b'{"numRecords":%d' % ROWS,
            *bounds(b"minValues", 0, b"0", 1000, b"T00:00:01.000Z"),
            *bounds(b"maxValues", ROWS - 1, b"f", 9000, b"T23:59:59.000Z"),
            b',"nullCount":{"id":0,"customer":0,"amount":', _digits(10 + cents % 90, 2),
            b',"quantity":0,"event_time":0,"product":0}}',
        )  # fmt: skip
        return tuple(part.replace(b'"', quote) if isinstance(part, bytes) else part for part in parts)


def first_id(files: Ints) -> Ints:
    """The smallest id in each file; the largest is `ROWS - 1` more."""
    return 100_000_000_000 + files * ROWS


def _mixed(numbers: Ints, seed: int) -> npt.NDArray[np.uint64]:
    """Numbers without a pattern, from numbers in order: the finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


_HEX: Matrix = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint8).reshape(256, 2)


def _hex(numbers: npt.NDArray[np.uint64]) -> Matrix:
    """Sixteen hexadecimal digits of each number, the same on machines of either byte order."""
    found: Matrix = _HEX[numbers.astype(">u8").view(np.uint8).reshape(-1, 8)].reshape(-1, 16)
    return found


def _uuids(numbers: Ints, seed: int) -> Matrix:
    digits = np.hstack([_hex(_mixed(numbers, seed + 4)), _hex(_mixed(numbers, seed + 5))])
    dash = b"-"
    return _joined(
        len(numbers), digits[:, :8], dash, digits[:, 8:12], dash, digits[:, 12:16], dash, digits[:, 16:20], dash,
        digits[:, 20:],
    )  # fmt: skip


def _digits(numbers: Ints, count: int) -> Matrix:
    found = np.empty((len(numbers), count), dtype=np.uint8)
    for place in range(count - 1, -1, -1):
        numbers, digit = np.divmod(numbers, 10)
        found[:, place] = digit + ord("0")
    return found


def _joined(rows: int, *parts: bytes | Matrix) -> Matrix:
    """Parts side by side; one that is the same in every row is given once."""
    widths = [len(part) if isinstance(part, bytes) else part.shape[1] for part in parts]
    found = np.empty((rows, sum(widths)), dtype=np.uint8)
    at = 0
    for part, width in zip(parts, widths, strict=True):
        found[:, at : at + width] = np.frombuffer(part, dtype=np.uint8) if isinstance(part, bytes) else part
        at += width
    return found


def _texts(matrix: Matrix) -> Texts:
    return np.ascontiguousarray(matrix).view(f"S{matrix.shape[1]}").ravel()
