"""SQLite by the standard library: one file, many readers, one writer at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from mainstem.columns import Column, arrow_schema
from mainstem.engines.base import PATIENCE, Capabilities, Change, Connection, Engine, Jdbc, Outcome
from mainstem.engines.pool import Pool
from mainstem.engines.sqlite_filesql import SqliteFileSql
from mainstem.engines.turns import file_turn, thread_turn
from mainstem.errors import UsageError
from mainstem.settings import Settings
from mainstem.uri import CatalogUri

if TYPE_CHECKING:
    import pyarrow as pa

_LOST = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqliteEngine(Engine):
    name = "sqlite"
    title = "SQLite"
    capabilities = Capabilities(many_processes=True, row_locks=False, pipelines=False, schemas=False, file=True)
    file_sql = SqliteFileSql()
    fragments: ClassVar = {
        "bytes": "BLOB",
        "text": "TEXT",
        "uuid": "TEXT",
        # No cast fails here, and a path into JSON that is none does.
        "number_or_error": "CAST(CASE WHEN said = '-1' THEN -1 ELSE json_extract('{}', said) END AS integer)",
        "unlogged": "",
        "list_staging": "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'stg_*'",
        "clock": ":process_clock",  # an embedded database has this process's
        "lock_rows": "",  # BEGIN IMMEDIATE has locked the whole database already
        "list_tables": "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'dl_*'",
    }
    # Taking the write lock at BEGIN: a transaction that read first and then wrote could never wait for another writer.
    begin_write = "BEGIN IMMEDIATE"

    def __init__(self, uri: CatalogUri, settings: Settings) -> None:
        super().__init__(uri, settings)
        self._pool = Pool(self._connect, self._usable, size=settings.pool_size, wait=settings.busy_timeout)

    def _connect(self) -> sqlite3.Connection:
        path = Path(self.uri.database)
        if not path.parent.is_dir():
            raise UsageError(
                f"the catalog file {path} cannot be opened: the folder {path.parent} does not exist.",
                hint="Create the folder, or name another file.",
            )
        connection = sqlite3.connect(
            path, timeout=self.settings.busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            # WAL lets the JVM and other processes read while this one writes; FULL keeps a commit through a power cut.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _usable(connection: sqlite3.Connection) -> bool:
        try:
            return not connection.in_transaction
        except sqlite3.ProgrammingError:
            return False

    def lease(self, *, write: bool) -> AbstractContextManager[Connection]:
        return self._pool.lease()

    @staticmethod
    def placeholder(name: str) -> str:
        return f":{name}"

    def adapt(self, value: object) -> object:
        # Text of fixed width in UTC: it sorts as time does, and SQLite's own date functions read it.
        if isinstance(value, datetime):
            return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return str(value) if isinstance(value, UUID) else value

    def is_driver_error(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error)

    def classify(self, error: BaseException) -> Outcome:
        code: int | None = getattr(error, "sqlite_errorcode", None)
        if code in _LOST:
            return Outcome.LOST
        if code is not None and code & 0xFF in _BUSY:  # the low byte is the primary code
            return Outcome.BUSY
        return Outcome.FATAL

    def copy(self, connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        names, marks = ", ".join(f'"{column}"' for column in columns), ", ".join("?" * len(columns))
        statement = f'INSERT INTO "{table}" ({names}) VALUES ({marks})'  # noqa: S608  names are ours, values are bound
        cursor: sqlite3.Cursor = connection.executemany(statement, (tuple(map(self.adapt, row)) for row in rows))
        return cursor.rowcount

    def note(self, changes: Sequence[Change]) -> datetime:
        with self.failures(), self.lease(write=True) as connection:
            connection.execute("PRAGMA synchronous = NORMAL")  # in WAL mode: no word to the disk at COMMIT
            try:
                with self.transaction(connection):
                    self.together(connection, changes)
            finally:
                connection.execute("PRAGMA synchronous = FULL")
        return self.now(connection)

    def arrow(
        self,
        connection: Connection,
        sql: str,
        values: Mapping[str, object],
        columns: Sequence[Column],
        *,
        few: bool = False,
    ) -> pa.Table:
        import pyarrow as pa

        schema = arrow_schema(columns)
        rows = self.execute(connection, sql, values).fetchall()
        found = zip(*rows, strict=True) if rows else ([] for _ in columns)
        # SQLite has no booleans: 0 and 1 become what they mean.
        plain = [pa.int64() if field.type == pa.bool_() else field.type for field in schema]
        arrays = [pa.array(values, kind) for values, kind in zip(found, plain, strict=True)]
        return pa.Table.from_arrays(arrays, names=schema.names).cast(schema)

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        place = Path(f"{self.uri.database}-turn")
        with thread_turn(f"{place} {key}", patience=PATIENCE), file_turn(place, patience=PATIENCE):
            yield

    def jdbc(self) -> Jdbc:
        # The milliseconds are SQLite's own patience while another process writes.
        patience = {"busy_timeout": str(int(self.settings.busy_timeout * 1000))}
        return Jdbc(url=f"jdbc:sqlite:{self.uri.database}", driver="org.sqlite.JDBC", properties=patience)

    def close(self) -> None:
        self._pool.close()
