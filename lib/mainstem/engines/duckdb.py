"""DuckDB: one file, one writing process at a time, opened late and closed as soon as nobody uses it.

A process that has the file open for writing shuts out every other process, Spark's JVM among them. Opening costs 30 ms
and closing as much, a query about 1 ms. So an opening is used for a moment by whoever comes: a read-only one until its
time is up, a writing one until nobody has asked for it for 20 ms, and no longer either. Then the file is left free for
long enough that another process gets in. Once Spark has been told where the file is, a writing one is closed at once.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID, uuid4

import duckdb

from mainstem.columns import Column, arrow_schema
from mainstem.engines.base import PATIENCE, Capabilities, Connection, Engine, Jdbc, Outcome, Rows
from mainstem.engines.duckdb_filesql import DuckdbFileSql
from mainstem.engines.turns import file_turn, thread_turn
from mainstem.errors import EngineBusy, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"DUCK"  # at byte 8 of every DuckDB file
_CHUNK = 50_000
_FEW = 16  # up to so many rows are values of a statement; Arrow then takes 5 ms, and less than values from here on
_SHARED_FOR = 0.25  # seconds that the file is kept open, from its opening on
_IDLE_FOR = 0.02  # seconds that a writer keeps it for the next one
_LONGEST_POLL = 0.02  # seconds between two tries to open a file that another process has
_FREE_FOR = 0.03  # seconds that this process then stays out: longer than a poll, so that nobody waits for ever


class _File:
    """One database file in this process: the threads share an instance while at least one of them uses it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.instance: duckdb.DuckDBPyConnection | None = None
        self.writable = False
        self.users = 0
        self.stale = False  # to be closed as soon as nobody uses it
        self.read_by_spark = False  # then a writer keeps it for nobody: a lazy frame may be read at any moment
        self.stale_at = self.left_at = self.free_until = 0.0
        self.timer: threading.Timer | None = None

    def opened(self, instance: duckdb.DuckDBPyConnection, *, write: bool) -> None:
        self.instance, self.writable, self.stale = instance, write, False
        self.stale_at = time.monotonic() + _SHARED_FOR
        self.look_in(_IDLE_FOR if write else _SHARED_FOR)

    def look_in(self, seconds: float) -> None:
        self.timer = threading.Timer(seconds, self.grow_stale, [self.instance])
        self.timer.daemon = True
        self.timer.start()

    def grow_stale(self, instance: duckdb.DuckDBPyConnection) -> None:
        with self.changed:
            if self.instance is not instance:
                return
            now = time.monotonic()
            self.stale = self.stale or now >= self.stale_at
            idle = self.writable and self.users == 0 and now >= self.left_at + _IDLE_FOR
            if self.users == 0 and (self.stale or idle):
                self.close()
            elif not self.stale:
                self.look_in(max(0.001, min(self.stale_at, max(self.left_at, now) + _IDLE_FOR) - now))

    def left(self) -> None:
        self.users -= 1
        self.left_at = time.monotonic()
        self.stale = self.stale or self.left_at >= self.stale_at
        if self.users == 0:
            if self.stale or (self.writable and self.read_by_spark):
                self.close()
            self.changed.notify_all()

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.instance is not None:
            self.instance.close()
            self.free_until = time.monotonic() + _FREE_FOR if self.stale else 0.0
        self.instance = self.timer = None
        self.changed.notify_all()


_files: dict[tuple[int, str], _File] = {}
_files_lock = threading.Lock()


class DuckdbEngine(Engine):
    name = "duckdb"
    title = "DuckDB"
    capabilities = Capabilities(many_processes=False, row_locks=False, pipelines=False, schemas=False, file=True)
    file_sql = DuckdbFileSql()
    fragments: ClassVar = {
        "bytes": "BLOB",
        "text": "VARCHAR",
        "uuid": "VARCHAR",
        "number_or_error": "CAST(said AS smallint)",
        "unlogged": "",
        "list_staging": "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'stg\\_%' ESCAPE '\\'",
        "clock": ":process_clock",  # an embedded database has this process's
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
                with file.changed:
                    file.left()

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
        file = self._file()
        with file.changed:
            # An instance is read-only or not, for its whole life: a writer waits until the readers are done.
            while file.instance is not None and write and not file.writable:
                if file.users == 0:
                    file.close()
                elif not file.changed.wait(timeout=max(0.0, deadline - time.monotonic())):
                    raise self._busy("this process is still reading it")
            if file.instance is None:
                time.sleep(max(0.0, file.free_until - time.monotonic()))
                file.opened(self._open(deadline, write=write), write=write)
            file.users += 1
        return file

    def _file(self) -> _File:
        with _files_lock:
            return _files.setdefault((os.getpid(), self.uri.database), _File())

    def _open(self, deadline: float, *, write: bool) -> duckdb.DuckDBPyConnection:
        path = Path(self.uri.database)
        if not path.parent.is_dir():
            raise UsageError(
                f"the catalog file {path} cannot be opened: the folder {path.parent} does not exist.",
                hint="Create the folder, or name another file.",
            )
        if write and not path.exists():
            _create(path)
        if path.exists() and path.open("rb").read(12)[8:] != _MAGIC:
            raise UsageError(f"{path} is not a DuckDB file.", hint="Name the catalog's own file.")
        wait = 0.005
        while True:
            try:
                if time.monotonic() + wait > deadline or _is_free(path, write=write):
                    return duckdb.connect(str(path), read_only=not write)
            except duckdb.IOException as error:
                if time.monotonic() + wait > deadline or not os.access(path.parent, os.W_OK):
                    raise self._busy(" ".join(str(error).split())) from error
            time.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_POLL)

    def _busy(self, why: str) -> EngineBusy:
        return EngineBusy(
            f"the catalog {self.uri.database} could not be opened within {self.settings.busy_timeout:g} s: {why}.",
            hint="DuckDB lets one process write at a time: end the other one, or raise busy_timeout.",
        )

    @staticmethod
    def placeholder(name: str) -> str:
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
        if isinstance(rows, Sequence) and 0 < len(rows) <= _FEW:
            insert = Rows(table, tuple(columns), rows).statement()
            return self.affected(self.execute(connection, insert.sql, insert.values))
        return self._copy_arrow(connection, table, columns, rows)

    def _copy_arrow(
        self, connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> int:
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

    def arrow(
        self,
        connection: Connection,
        sql: str,
        values: Mapping[str, object],
        columns: Sequence[Column],
        *,
        few: bool = False,
    ) -> pa.Table:
        found: pa.Table = self.execute(connection, sql, values).to_arrow_table()
        return found.cast(arrow_schema(columns))

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        place = Path(f"{self.uri.database}-turn")
        with thread_turn(f"{place} {key}", patience=PATIENCE), file_turn(place, patience=PATIENCE):
            yield

    def jdbc(self) -> Jdbc:
        self._file().read_by_spark = True
        return Jdbc(
            url=f"jdbc:duckdb:{self.uri.database}",
            driver="org.duckdb.DuckDBDriver",
            properties={"duckdb.read_only": "true"},
        )

    def close(self) -> None:
        """Let go of the file, unless a thread is still using it."""
        file = self._file()
        with file.changed:
            file.stale = True
            if file.users == 0:
                file.close()


def _create(path: Path) -> None:
    """An empty catalog at its place, whole or not at all; who comes second takes the first one's.

    DuckDB makes a file of no bytes, locks it and writes into it. Killed there, out of room, or its lock taken by a
    process that was quicker, it leaves the file as it is, and never opens an empty one again.
    """
    new = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        duckdb.connect(str(new)).close()
        os.link(new, path)
    except FileExistsError:
        return
    except (duckdb.Error, OSError) as error:
        raise UsageError(
            f"the catalog file {path} cannot be created: {' '.join(str(error).split())}.",
            hint="Check that the folder may be written to, that its disk has room and that it takes hard links.",
        ) from error
    finally:
        new.unlink(missing_ok=True)


def _is_free(path: Path, *, write: bool) -> bool:
    """Whether DuckDB could lock the file now: asked so, it takes 15 µs, and 4 ms of work if DuckDB itself finds out.

    Only while this process does not have it open: closing any handle of a file ends all of a process's locks on it.
    """
    try:
        with path.open("r+b" if write else "rb") as file:
            fcntl.lockf(file, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # not there yet, or not for us: DuckDB says it better
    return True


def _arrow_types() -> dict[str, Any]:
    import pyarrow as pa

    return {
        "VARCHAR": pa.string(), "BIGINT": pa.int64(), "INTEGER": pa.int32(), "SMALLINT": pa.int16(),
        "BOOLEAN": pa.bool_(), "BLOB": pa.binary(), "TIMESTAMP": pa.timestamp("us"),
    }  # fmt: skip
