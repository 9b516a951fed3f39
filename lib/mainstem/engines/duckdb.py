"""DuckDB: one file, one writing process at a time, opened late and closed as soon as nobody uses it.

A process that has the file open for writing shuts out every other process, Spark's JVM among them. So the file is
open only while a statement runs; other processes that come in between wait, up to `busy_timeout`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import duckdb

from mainstem.engines.base import Capabilities, Connection, Engine, Jdbc, Outcome
from mainstem.errors import EngineBusy, UsageError

_MAGIC = b"DUCK"  # at byte 8 of every DuckDB file
_CHUNK = 50_000


class _File:
    """One database file in this process: the threads share an instance while at least one of them uses it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.instance: duckdb.DuckDBPyConnection | None = None
        self.writable = False
        self.users = 0


_files: dict[tuple[int, str], _File] = {}
_files_lock = threading.Lock()


class DuckdbEngine(Engine):
    name = "duckdb"
    title = "DuckDB"
    capabilities = Capabilities(many_processes=False, row_locks=False, schemas=False, file=True)
    fragments: ClassVar = {
        "lock_rows": "",  # the process that may write is alone; its threads are kept apart by the writer lock below
        "list_tables": "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'dl\\_%' ESCAPE '\\'",
    }
    _writer = threading.RLock()

    @contextmanager
    def lease(self, *, write: bool) -> Iterator[Connection]:
        if not write and not Path(self.uri.database).exists():
            write = True  # the first look at a new catalog creates the file, as the other engines do
        deadline = time.monotonic() + self.settings.busy_timeout
        with self._alone(deadline) if write else self._together():
            file = self._join(deadline, write=write)
            try:
                assert file.instance is not None
                cursor = file.instance.cursor()
                try:
                    yield cursor
                finally:
                    cursor.close()
            finally:
                self._leave(file)

    @contextmanager
    def _alone(self, deadline: float) -> Iterator[None]:
        # DuckDB ends one of two writing threads by an exception; waiting in line loses no work.
        if not self._writer.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise self._busy("another thread of this process is writing")
        try:
            yield
        finally:
            self._writer.release()

    @contextmanager
    def _together(self) -> Iterator[None]:
        yield

    def _join(self, deadline: float, *, write: bool) -> _File:
        with _files_lock:
            file = _files.setdefault((os.getpid(), self.uri.database), _File())
        with file.changed:
            # An instance is read-only or not, for its whole life: a writer waits until the readers are done.
            while file.instance is not None and write and not file.writable:
                if not file.changed.wait(timeout=max(0.0, deadline - time.monotonic())):
                    raise self._busy("this process is still reading it")
            if file.instance is None:
                file.instance = self._open(deadline, write=write)
                file.writable = write
            file.users += 1
        return file

    @staticmethod
    def _leave(file: _File) -> None:
        with file.changed:
            file.users -= 1
            if file.users == 0 and file.instance is not None:
                file.instance.close()
                file.instance = None
                file.changed.notify_all()

    def _open(self, deadline: float, *, write: bool) -> duckdb.DuckDBPyConnection:
        path = Path(self.uri.database)
        if not path.parent.is_dir():
            raise UsageError(
                f"the catalog file {path} cannot be opened: the folder {path.parent} does not exist.",
                hint="Create the folder, or name another file.",
            )
        if path.exists() and path.stat().st_size and path.open("rb").read(12)[8:] != _MAGIC:
            raise UsageError(f"{path} is not a DuckDB file.", hint="Name the catalog's own file.")
        wait = 0.005
        while True:
            try:
                return duckdb.connect(str(path), read_only=not write)
            except duckdb.IOException as error:
                if time.monotonic() + wait > deadline or not os.access(path.parent, os.W_OK):
                    raise self._busy(" ".join(str(error).split())) from error
                time.sleep(wait)
                wait = min(wait * 1.5, 0.1)

    def _busy(self, why: str) -> EngineBusy:
        return EngineBusy(
            f"the catalog {self.uri.database} could not be opened within {self.settings.busy_timeout:g} s: {why}.",
            hint="DuckDB lets one process write at a time: end the other one, or raise busy_timeout.",
        )

    def placeholder(self, name: str) -> str:
        return f"${name}"

    def adapt(self, value: object) -> object:
        if isinstance(value, datetime):
            return value.astimezone(UTC).replace(tzinfo=None)
        return str(value) if isinstance(value, UUID) else value

    def affected(self, cursor: Any) -> int:
        return int(cursor.fetchone()[0])

    def is_driver_error(self, error: BaseException) -> bool:
        return isinstance(error, duckdb.Error)

    def classify(self, error: BaseException) -> Outcome:
        if isinstance(error, duckdb.TransactionException | duckdb.ConstraintException):
            return Outcome.LOST
        if isinstance(error, duckdb.ConnectionException | duckdb.IOException):
            return Outcome.BUSY
        return Outcome.FATAL

    def copy(self, connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        import pyarrow as pa

        kinds = _arrow_types()
        fields = {row[0]: row[1] for row in connection.execute(f'DESCRIBE "{table}"').fetchall()}
        schema = pa.schema([(column, kinds[fields[column]]) for column in columns])
        names, copied, pending = ", ".join(f'"{column}"' for column in columns), 0, iter(rows)
        while batch := [tuple(map(self.adapt, row)) for _, row in zip(range(_CHUNK), pending, strict=False)]:
            arrays = [
                pa.array(values, kind.type) for values, kind in zip(zip(*batch, strict=True), schema, strict=True)
            ]
            connection.register("incoming", pa.Table.from_arrays(arrays, schema=schema))
            connection.execute(f'INSERT INTO "{table}" ({names}) SELECT * FROM incoming')  # noqa: S608  names are ours
            connection.unregister("incoming")
            copied += len(batch)
        return copied

    def jdbc(self) -> Jdbc:
        return Jdbc(
            url=f"jdbc:duckdb:{self.uri.database}",
            driver="org.duckdb.DuckDBDriver",
            properties={"duckdb.read_only": "true"},
        )

    def close(self) -> None:
        """Nothing stays open between two uses."""


def _arrow_types() -> dict[str, Any]:
    import pyarrow as pa

    return {
        "VARCHAR": pa.string(), "BIGINT": pa.int64(), "INTEGER": pa.int32(), "SMALLINT": pa.int16(),
        "BOOLEAN": pa.bool_(), "BLOB": pa.binary(), "TIMESTAMP": pa.timestamp("us"),
    }  # fmt: skip
