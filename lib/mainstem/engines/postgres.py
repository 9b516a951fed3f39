"""Postgres by psycopg 3: many writers, row locks, COPY."""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.types.string import TextLoader

from mainstem import sqltext
from mainstem.columns import Column, arrow_schema
from mainstem.engines.base import PATIENCE, Asked, Capabilities, Change, Connection, Engine, Found, Jdbc, Outcome, Rows
from mainstem.engines.pool import Pool
from mainstem.engines.postgres_arrow import ArrowReader
from mainstem.engines.postgres_bundle import Bundle, bundled, own_name
from mainstem.engines.postgres_filesql import PostgresFileSql
from mainstem.engines.turns import thread_turn
from mainstem.settings import Settings
from mainstem.uri import CatalogUri

if TYPE_CHECKING:
    import pyarrow as pa

# By SQLSTATE or its class: https://www.postgresql.org/docs/current/errcodes-appendix.html
_LOST = {"23505", "40001"}  # unique_violation, serialization_failure
_BUSY = {"40P01", "55P03", "57014", "53300", "57P03"}  # deadlock, lock, cancelled, too many clients, starting up
_GONE = {"57P01", "57P02", "57P05"}  # shut down, crashed, idle too long
_MIGRATION_LOCK = 0x6D61696E  # "main": any constant will do, as long as every process takes the same
_TURN_LOCK = 0x7475726E  # "turn"

# Up to so many rows are values of a statement; COPY has a round trip more, and half the work from about here on.
_FEW_IN = 4
# Up to so many rows are fetched one by one: that takes 5 microseconds each, another connection for ADBC 6 milliseconds.
_FEW_OUT = 1000


class PostgresEngine(Engine):
    name = "postgres"
    title = "Postgres"
    capabilities = Capabilities(many_processes=True, row_locks=True, pipelines=True, schemas=True, file=False)
    file_sql = PostgresFileSql()
    fragments: ClassVar = {
        "bytes": "bytea",
        "text": "text",
        "uuid": "uuid",
        "number_or_error": "CAST(said AS smallint)",
        "unlogged": "UNLOGGED",
        "list_staging": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename ~ '^stg_'",
        "clock": "clock_timestamp()",  # now() is the start of the transaction
        "lock_rows": "FOR UPDATE",
        "list_tables": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename ~ '^dl_'",
    }
    double_percent = True

    def __init__(self, uri: CatalogUri, settings: Settings) -> None:
        super().__init__(uri, settings)
        self._bundle = lru_cache(maxsize=512)(self._bundled)
        self._pool = Pool(self._connect_patiently, self._usable, size=settings.pool_size, wait=settings.busy_timeout)

        self._turns = Pool(self._connect_for_turns, self._usable, size=settings.pool_size, wait=settings.busy_timeout)
        self._arrow = ArrowReader(self._conninfo, size=settings.pool_size, wait=settings.busy_timeout)

    def _connect_patiently(self) -> Connection:
        return self.patiently(self._connect, what="connecting")

    def _connect(self) -> Connection:
        connection = psycopg.connect(autocommit=True, **self._conninfo())
        connection.adapters.register_loader("uuid", TextLoader)  # an id is text on every engine
        return connection

    def _conninfo(self) -> dict[str, Any]:
        # As start-up options these cost no round trip of their own. A blank or a backslash is escaped for libpq.
        path = '"' + self.uri.schema.replace('"', '""') + '"'
        escaped = path.replace("\\", "\\\\").replace(" ", "\\ ")
        return {
            "host": self.uri.host,
            "port": self.uri.port,
            "dbname": self.uri.database,
            "user": self.uri.user,
            "password": self.uri.password.reveal() if self.uri.password else None,
            "connect_timeout": self.settings.connect_timeout,
            "options": f"-c search_path={escaped} -c TimeZone=UTC",
            "application_name": "mainstem",
            **self.uri.options,
        }

    def _usable(self, connection: psycopg.Connection[Any]) -> bool:
        """Idle, and the server has not hung up: a word from it that nobody asked for is its farewell. Sends nothing."""
        if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            return False
        waiting = select.poll()
        waiting.register(connection.pgconn.socket, select.POLLIN)
        return not waiting.poll(0)

    def lease(self, *, write: bool) -> AbstractContextManager[Connection]:
        return self._pool.lease()

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        # On connections of their own: one who waits for its turn must not keep the one who has it from the database.
        # The threads of this process wait for each other here, so that each key takes one of them.
        values = {"lock": _TURN_LOCK, "key": f"{self.uri.schema} {key}"}
        with (
            thread_turn(f"{self.uri} {key}", patience=PATIENCE),
            self.failures(),
            self._turns.lease() as connection,
        ):
            mine = self._take_turn(connection, values)
            try:
                yield
            finally:
                if mine:
                    with suppress(psycopg.Error):  # a session that is gone has given it back
                        connection.execute("SELECT pg_advisory_unlock(%(lock)s, hashtext(%(key)s))", values)

    @staticmethod
    def _take_turn(connection: Connection, values: Mapping[str, object]) -> bool:
        try:
            connection.execute("SELECT pg_advisory_lock(%(lock)s, hashtext(%(key)s))", values)
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def _connect_for_turns(self) -> Connection:
        connection = self._connect_patiently()
        connection.execute(f"SET lock_timeout = {int(PATIENCE * 1000)}")
        return connection

    @staticmethod
    def placeholder(name: str) -> str:
        return f"%({name})s"

    def is_driver_error(self, error: BaseException) -> bool:
        # ADBC's errors are PEP 249's too; their module is named, not imported, since most calls never need it.
        return isinstance(error, psycopg.Error) or type(error).__module__.startswith("adbc_driver_manager")

    def classify(self, error: BaseException) -> Outcome:
        state = getattr(error, "sqlstate", None)
        if state in _LOST:
            return Outcome.LOST
        if state in _BUSY:
            return Outcome.BUSY
        if state in _GONE or (state or "").startswith("08"):
            return Outcome.UNKNOWN
        if not isinstance(error, psycopg.Error) and not state:
            return Outcome.UNKNOWN
        if state is None and isinstance(error, psycopg.OperationalError):
            # libpq gives no SQLSTATE for a failed connection. Once a password was asked for, the server has
            # answered and will say the same again; before that it may just not be up.
            pgconn = error.pgconn
            refused = pgconn is not None and (pgconn.used_password or pgconn.needs_password)
            return Outcome.FATAL if refused and not self._was_open(pgconn) else Outcome.UNKNOWN
        return Outcome.FATAL

    @staticmethod
    def _was_open(pgconn: Any) -> bool:
        # The server reports its version only after it has let us in.
        try:
            return bool(pgconn.server_version)
        except psycopg.Error:
            return False

    def copy(self, connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        copied = 0
        with connection.cursor() as cursor, cursor.copy(statement) as target:
            for copied, row in enumerate(rows, start=1):  # noqa: B007
                target.write_row(row)
        return copied

    def blobs(self, connection: Connection, sql: str, values: Mapping[str, object]) -> list[tuple[int, bytes]]:
        # By COPY: 15 MB took 25 ms, and 43 as a result, which libpq gathers before it hands anything out.
        statement = f"COPY ({self._bound_literals(sql, values).rstrip().rstrip(';')}) TO STDOUT (FORMAT BINARY)"
        with connection.cursor() as cursor, cursor.copy(statement) as source:
            source.set_types(["integer", "bytea"])
            return list(source.rows())

    def begin(self, connection: Connection, first: Sequence[Asked]) -> list[Found]:
        if not first:
            return super().begin(connection, first)
        with connection.pipeline():
            connection.execute(self.begin_write)
            asked = [each() for each in first]
            cursors = [self.execute(connection, each.sql, each.values) for each in asked]
        return [self.fetched(cursor) for cursor in cursors]

    def fetched(self, cursor: Any) -> Found:
        result = cursor.pgresult  # psycopg's own description makes an object a column, each time
        columns = [result.fname(place).decode() for place in range(result.nfields)]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def together(self, connection: Connection, changes: Sequence[Change]) -> list[int]:
        return list(self._at_once(connection, changes)[:-1])

    def note(self, changes: Sequence[Change]) -> datetime:
        # One statement is a transaction of its own. It must not hold many rows, which would go by COPY, another one.
        with self.failures(), self.lease(write=True) as connection:
            moment: datetime = self._at_once(connection, changes, durable=False)[-1]
            return moment

    def _at_once(self, connection: Connection, changes: Sequence[Change], *, durable: bool = True) -> list[Any]:
        """The counts of all changes, and the clock: everything but COPY in one statement, so in one round trip."""
        many = {
            place: each for place, each in enumerate(changes) if isinstance(each, Rows) and len(each.rows) > _FEW_IN
        }
        statements = {
            place: each.statement() if isinstance(each, Rows) else each
            for place, each in enumerate(changes)
            if place not in many
        }
        bundle = self._bundle(tuple(each.sql for each in statements.values()), durable)
        values = {
            own_name(place, name): value
            for place, each in enumerate(statements.values())
            for name, value in bundle.parts[place].pick(each.values).items()
        }
        *found, clock = connection.execute(bundle.text, values).fetchone()
        counts: dict[int, Any] = dict(zip(statements, found, strict=True))
        # Only now: the statement would have seen these rows, and ended spans that have just begun.
        for place, each in many.items():
            counts[place] = self.copy(connection, each.table, each.columns, each.rows)
        return [*(counts[place] for place in range(len(changes))), clock]

    def _bundled(self, statements: tuple[str, ...], durable: bool) -> Bundle:
        return bundled([sqltext.render(each, self.fragments) for each in statements], durable=durable)

    def arrow(
        self,
        connection: Connection,
        sql: str,
        values: Mapping[str, object],
        columns: Sequence[Column],
        *,
        few: bool = False,
    ) -> pa.Table:
        if few and not self._arrow.idle:
            by_row = self._few(connection, sql, values, columns)
            if by_row is not None:
                return by_row
        literal = self._bound_literals(sql, values)
        found: pa.Table = self.patiently(lambda: self._arrow.fetch(literal), what="reading")
        return found.cast(arrow_schema(columns))

    def _few(
        self, connection: Connection, statement: str, values: Mapping[str, object], columns: Sequence[Column]
    ) -> pa.Table | None:
        """Up to so many rows by the connection that is there: another one for ADBC takes longer. None if more came."""
        import pyarrow as pa

        limited = f"SELECT * FROM ({statement}) AS rows_of_query LIMIT {_FEW_OUT + 1}"  # noqa: S608  our own SQL, values are bound
        rows = self.execute(connection, limited, values).fetchall()
        if len(rows) > _FEW_OUT:
            return None
        found = zip(*rows, strict=True) if rows else ([] for _ in columns)
        arrays = [pa.array(each, field.type) for each, field in zip(found, arrow_schema(columns), strict=True)]
        return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))

    def _bound_literals(self, statement: str, values: Mapping[str, object]) -> str:
        """The statement with its values quoted by libpq's own rules."""
        rendered = sqltext.render(statement, self.fragments)
        wanted = sqltext.bind(rendered, self.placeholder).pick(values)
        quoted = {name: sql.Literal(value).as_string(None) for name, value in wanted.items()}
        return sqltext.bind(rendered, quoted.__getitem__).text

    def now(self, connection: Connection) -> datetime:
        moment: datetime = connection.execute("SELECT clock_timestamp()").fetchone()[0]
        return moment

    def has_table(self, connection: Connection, name: str) -> bool:
        # On a new connection the list of all tables takes 2 ms, and this a tenth of one.
        return bool(connection.execute("SELECT to_regclass(%(name)s) IS NOT NULL", {"name": name}).fetchone()[0])

    def migration_lock(self, connection: Connection) -> None:
        # Keyed by schema too: two catalogs in one database do not wait for each other.
        connection.execute(
            "SELECT pg_advisory_xact_lock(%(lock)s, hashtext(%(schema)s))",
            {"lock": _MIGRATION_LOCK, "schema": self.uri.schema},
        )
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.uri.schema)))

    def jdbc(self) -> Jdbc:
        host = f"[{self.uri.host}]" if self.uri.host and ":" in self.uri.host else self.uri.host
        renamed = {"application_name": "ApplicationName", "target_session_attrs": "targetServerType"}
        passed = {renamed.get(key, key): value for key, value in self.uri.options.items()}
        quoted_schema = '"' + self.uri.schema.replace('"', '""') + '"'
        options = {"ApplicationName": "mainstem", **passed, "currentSchema": quoted_schema}
        options["connectTimeout"] = str(self.settings.connect_timeout)
        return Jdbc(
            url=f"jdbc:postgresql://{host}:{self.uri.port}/{quote(self.uri.database, safe='')}?{urlencode(options)}",
            driver="org.postgresql.Driver",
            properties={"user": self.uri.user} if self.uri.user else {},
            password=self.uri.password,
        )

    def close(self) -> None:
        self._pool.close()
        self._turns.close()
        self._arrow.close()
