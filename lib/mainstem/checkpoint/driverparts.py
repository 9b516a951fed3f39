"""A state into Parquet files on this machine's disk, in bounded memory: a page of rows becomes a row group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mainstem.checkpoint import files
from mainstem.checkpoint.described import as_table
from mainstem.checkpoint.plan import Columns
from mainstem.checkpoint.state import State

SIDECAR_PAGES = 4


class TooManyFiles(Exception):
    """The state has more files than the driver is to write; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a checkpoint before it has its name: its rows, and how many of them are live files."""

    path: Path
    rows: int
    adds: int

    @property
    def size_bytes(self) -> int:
        """How large the file is."""
        return self.path.stat().st_size


@dataclass(slots=True)
class _Open:
    """A file that is being written."""

    path: Path
    columns: Columns
    schema: pa.Schema
    rows: int = 0
    adds: int = 0
    _writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table, adds: int) -> None:
        if self._writer is None:
            # Paths and statistics differ in every row: a dictionary of them costs and gains nothing.
            self._writer = pq.ParquetWriter(
                self.path, self.schema, compression=self.columns.codec, use_dictionary=_few_values(self.schema),
                store_schema=False,
            )  # fmt: skip
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.rows += table.num_rows
        self.adds += adds

    def done(self) -> Part:
        if self._writer is None:
            self.write(self.schema.empty_table(), 0)
        assert self._writer is not None
        self._writer.close()
        return Part(self.path, self.rows, self.adds)


def whole_state(state: State, columns: Columns, folder: Path, *, most: int | None = None) -> Part:
    """All of a state as one file. Raises `TooManyFiles` as soon as there are more than `most` files and tombstones."""
    file = _Open(folder / "whole", columns, columns.classic)
    file.write(as_table(state.described(), columns.classic), 0)
    for table, adds in _pages(state, columns, columns.classic, most):
        file.write(table, adds)
    return file.done()


def file_parts(state: State, columns: Columns, folder: Path, *, most: int | None = None) -> Iterator[Part]:
    """The files and tombstones of a state as sidecars, one after the other; none if there is nothing in them."""
    file: _Open | None = None
    for place, (table, adds) in enumerate(_pages(state, columns, columns.sidecar, most)):
        file = file or _Open(folder / f"sidecar-{place}", columns, columns.sidecar)
        file.write(table, adds)
        if place % SIDECAR_PAGES == SIDECAR_PAGES - 1:
            yield file.done()
            file = None
    if file is not None:
        yield file.done()


def _pages(state: State, columns: Columns, schema: pa.Schema, most: int | None) -> Iterator[tuple[pa.Table, int]]:
    seen = 0
    for gone in state.tombstones():
        seen = _counted(seen + gone.num_rows, most)
        yield files.under(schema, "remove", files.removes(gone)), 0
    for live in state.adds():
        seen = _counted(seen + live.num_rows, most)
        if live.num_rows:
            yield files.under(schema, "add", files.adds(live, columns.add)), live.num_rows


def _counted(seen: int, most: int | None) -> int:
    if most is not None and seen > most:
        raise TooManyFiles
    return seen


def _few_values(schema: pa.Schema) -> list[str]:
    """The leaves whose values repeat."""
    columns = [f"{name}.partitionValues.key_value" for name in ("add", "remove")] + ["add.tags.key_value"]
    leaves = [f"{column}.{part}" for column in columns for part in ("key", "value")]
    return [*leaves, "add.clusteringProvider", "add.deletionVector.storageType"]
