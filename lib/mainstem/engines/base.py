"""What the library asks of a database, and nothing that only one database has.

An engine opens connections lazily, runs statements with `:name` values, says what an exception means for the
caller, and tells Spark how to reach the same data over JDBC.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from mainstem import observe, sqltext
from mainstem.columns import Column
from mainstem.engines.filesql import FileSql
from mainstem.errors import EngineBusy, MainstemError
from mainstem.settings import Settings
from mainstem.uri import CatalogUri, Secret

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
PATIENCE = 5.0  # seconds that `turn` waits at most
Connection = Any  # psycopg, sqlite3 and duckdb share execute() and no type
Found = list[dict[str, Any]]


class Outcome(Enum):
    """What an exception of a driver means for the one who made the call."""

    LOST = "another writer won"
    BUSY = "the database is busy; later may work"
    UNKNOWN = "the connection was lost; whether the statement took effect is not known"
    FATAL = "the database refused"


class EngineError(MainstemError):
    """The database refused a statement; `outcome` says what that means, `at_commit` whether COMMIT itself failed."""

    code = "engine"

    def __init__(self, message: str, *, outcome: Outcome, at_commit: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.at_commit = at_commit


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What callers may build on; asked by name, never by the engine's name."""

    many_processes: bool  # several processes may hold the catalog open for writing at once
    row_locks: bool  # writers of different tables do not wait for each other
    pipelines: bool  # several statements travel together, so that one more costs no round trip
    schemas: bool  # `?schema=` is honoured
    file: bool  # the catalog is a file on this machine's disk


@dataclass(frozen=True, slots=True)
class Jdbc:
    """How Spark reaches the catalog. The password is in `options()` alone, never in the URL."""

    url: str
    driver: str
    properties: Mapping[str, str] = field(default_factory=dict)
    password: Secret | None = None

    def options(self) -> dict[str, str]:
        """The options of Spark's JDBC source; Spark masks `password` in plans."""
        secret = {"password": self.password.reveal()} if self.password else {}
        return {"url": self.url, "driver": self.driver, **self.properties, **secret}


@dataclass(frozen=True, slots=True)
class Statement:
    """An INSERT, UPDATE or DELETE, and the values that it names."""

    sql: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows on their way into a table."""

    table: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]

    def statement(self) -> Statement:
        """The same as one INSERT, for a handful of them."""
        named = {f"r{place}_{at}": value for place, row in enumerate(self.rows) for at, value in enumerate(row)}
        return Statement(_insert(self.table, self.columns, len(self.rows)), named)


Change = Statement | Rows
# A statement that is made when its turn comes: one that names this process's clock must not name it before a wait.
Asked = Callable[[], Statement]


@lru_cache(maxsize=512)
def _insert(table: str, columns: tuple[str, ...], count: int) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    marks = ", ".join("(" + ", ".join(f":r{place}_{at}" for at in range(len(columns))) + ")" for place in range(count))
    return f'INSERT INTO "{table}" ({names}) VALUES {marks}'  # noqa: S608  names are ours, values are bound


class Engine(ABC):
    """One database that holds a catalog. Opening is lazy: building an engine touches nothing."""

    name: ClassVar[str]
    title: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    fragments: ClassVar[Mapping[str, str]]
    file_sql: ClassVar[FileSql]

    def __init__(self, uri: CatalogUri, settings: Settings) -> None:
        self.uri = uri
        self.settings = settings

    # What each engine does in its own way.

    @abstractmethod
    def lease(self, *, write: bool) -> AbstractContextManager[Connection]:
        """A connection outside any transaction, waiting for one within the settings' limits."""

    @staticmethod
    @abstractmethod
    def placeholder(name: str) -> str: ...

    @abstractmethod
    def classify(self, error: BaseException) -> Outcome:
        """What this exception means, by its type or code, never by its words."""

    @abstractmethod
    def copy(self, connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        """Put many rows into a table by the fastest road that this database has; how many they were."""

    @abstractmethod
    def arrow(
        self,
        connection: Connection,
        sql: str,
        values: Mapping[str, object],
        columns: Sequence[Column],
        *,
        few: bool = False,
    ) -> pa.Table:
        """The rows of a query as an Arrow table with exactly these columns and types.

        `few` says that the caller expects hundreds and not thousands; it is a hint, and the rows are all there anyway.
        """

    @abstractmethod
    def jdbc(self) -> Jdbc: ...

    @abstractmethod
    def close(self) -> None:
        """Give back every idle connection. The engine may be used again afterwards."""

    @abstractmethod
    def turn(self, key: str) -> AbstractContextManager[None]:
        """One at a time among all who use this catalog and name the same key, in this process and in others.

        To spare work that two would do twice, never to be right: after `PATIENCE` it goes on without.
        """

    def together(self, connection: Connection, changes: Sequence[Change]) -> list[int]:
        """Make changes of which none builds on another one's outcome; how many rows each touched, in their order."""
        return [self._change(connection, change) for change in changes]

    def _change(self, connection: Connection, change: Change) -> int:
        if isinstance(change, Rows):
            return self.copy(connection, change.table, change.columns, change.rows)
        return self.affected(self.execute(connection, change.sql, change.values))

    def note(self, changes: Sequence[Change]) -> datetime:
        """Make changes as one transaction that a crash of the database itself may lose; the database's time of it.

        For what can be found out again: where it can, the engine does not wait for the disk.
        """
        with self.writing() as connection:
            self.together(connection, changes)
            return self.now(connection)

    begin_write: ClassVar[str] = "BEGIN"
    double_percent: ClassVar[bool] = False

    def adapt(self, value: object) -> object:
        """A value as this database's driver wants it."""
        return value

    def affected(self, cursor: Any) -> int:
        """How many rows the last INSERT, UPDATE or DELETE touched."""
        return int(cursor.rowcount)

    def now(self, connection: Connection) -> datetime:
        """The database's clock. An embedded database has this process's."""
        return datetime.now(UTC)

    def migration_lock(self, connection: Connection) -> None:
        """Held from here to the end of the transaction, so that two processes never migrate at once."""
        return  # a file that one process writes at a time needs no lock of ours

    def tables(self, connection: Connection) -> set[str]:
        """The `dl_*` tables that are there."""
        return {row[0] for row in self.execute(connection, self.fragments["list_tables"], {}).fetchall()}

    def has_table(self, connection: Connection, name: str) -> bool:
        """Whether one of the `dl_*` tables is there."""
        return name in self.tables(connection)

    def staging_tables(self, connection: Connection) -> set[str]:
        """The tables that imports in progress, or broken off, have made."""
        return {row[0] for row in self.execute(connection, self.fragments["list_staging"], {}).fetchall()}

    # What is the same for all of them.

    @classmethod
    @lru_cache(maxsize=1024)
    def bound(cls, sql: str) -> sqltext.Bound:
        """A statement in the driver's own style; worked out once a process, however many catalogs it opens."""
        rendered = sqltext.render(sql, cls.fragments)
        return sqltext.bind(rendered, cls.placeholder, double_percent=cls.double_percent)

    def execute(self, connection: Connection, sql: str, values: Mapping[str, object]) -> Any:
        """Run one statement with bound values; the driver's cursor."""
        bound = self.bound(sql)
        if not bound.names:
            return connection.execute(bound.text.replace("%%", "%") if self.double_percent else bound.text)
        return connection.execute(bound.text, {name: self.adapt(value) for name, value in bound.pick(values).items()})

    def fetched(self, cursor: Any) -> Found:
        """All rows that a statement has found, each by column name."""
        columns = [column[0] for column in cursor.description]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def blobs(self, connection: Connection, sql: str, values: Mapping[str, object]) -> list[tuple[int, bytes]]:
        """All rows of a query that gives a number and long bytes."""
        found: list[tuple[int, bytes]] = self.execute(connection, sql, values).fetchall()
        return found

    @contextmanager
    def failures(self, *, at_commit: bool = False) -> Iterator[None]:
        """Turn the driver's exceptions into `EngineError`, with the outcome decided here and once."""
        try:
            yield
        except MainstemError:
            raise
        except Exception as error:
            if not self.is_driver_error(error):
                raise
            outcome = self.classify(error)
            said = " ".join(str(error).split())
            raise EngineError(f"{self.title} at {self.uri}: {said}", outcome=outcome, at_commit=at_commit) from error

    @abstractmethod
    def is_driver_error(self, error: BaseException) -> bool: ...

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for statements that each see the newest committed state."""
        with self.failures(), self.lease(write=False) as connection:
            yield connection

    @contextmanager
    def reading_to_write(self) -> Iterator[Connection]:
        """The same for a caller who will write soon: where one process has the file, it is opened once for both."""
        with self.failures(), self.lease(write=not self.capabilities.many_processes) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: all of the block or nothing of it."""
        with self.writing_after(()) as (connection, _):
            yield connection

    @contextmanager
    def writing_after(self, first: Sequence[Asked]) -> Iterator[tuple[Connection, list[Found]]]:
        """The same, begun by statements in their order, each of which sees what was committed before it; their rows.

        Where the engine pipelines, they take one round trip together with the beginning.
        """
        with (
            self.failures(),
            self.lease(write=True) as connection,
            self.transaction(connection, first) as answers,
        ):
            yield connection, answers

    @contextmanager
    def transaction(self, connection: Connection, first: Sequence[Asked] = ()) -> Iterator[list[Found]]:
        """The same on a connection that is there; the rows of its first statements."""
        try:
            yield self.begin(connection, first)
        except BaseException:
            self.rollback(connection)
            raise
        with self.failures(at_commit=True):
            try:
                connection.execute("COMMIT")
            except BaseException:
                self.rollback(connection)
                raise

    def begin(self, connection: Connection, first: Sequence[Asked]) -> list[Found]:
        """Begin a transaction that writes, and run its first statements; their rows."""
        connection.execute(self.begin_write)
        return [self.fetched(self.execute(connection, asked.sql, asked.values)) for asked in (each() for each in first)]

    def rollback(self, connection: Connection) -> None:
        """End the transaction; a connection that is gone has ended it already."""
        try:
            connection.execute("ROLLBACK")
        except Exception as error:
            if not self.is_driver_error(error):
                raise

    def patiently(self, call: Callable[[], T], *, what: str) -> T:
        """Repeat what failed for a passing reason, with growing, jittered waits, up to the settings' limit.

        For calls that may be repeated: connecting, and statements that only read.
        """
        attempts = max(1, self.settings.reconnect_attempts)
        for attempt in range(1, attempts + 1):
            try:
                with self.failures():
                    return call()
            except EngineError as error:
                if error.outcome is Outcome.FATAL:
                    raise
                if attempt == attempts:
                    raise EngineBusy(
                        f"{what} failed {attempts} times; the last time {error.message}.",
                        hint="Nothing was written. Check that the database answers, then repeat; "
                        "the limits are the settings reconnect_attempts and busy_timeout.",
                    ) from error
                wait = min(self.settings.reconnect_max_wait, 0.05 * 2**attempt) * random.uniform(0.5, 1.0)
                observe.event("engine.retry", engine=self.name, attempt=attempt, wait=round(wait, 3), error=error)
                time.sleep(wait)
        raise AssertionError("unreachable")
