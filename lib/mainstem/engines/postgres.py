"""Postgres by psycopg 3: many writers, row locks, COPY."""

from __future__ import annotations

import select
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.types.string import TextLoader

from mainstem.engines.base import Capabilities, Connection, Engine, Jdbc, Outcome
from mainstem.engines.pool import Pool
from mainstem.settings import Settings
from mainstem.uri import CatalogUri

# By SQLSTATE or its class: https://www.postgresql.org/docs/current/errcodes-appendix.html
_LOST = {"23505", "40001"}  # unique_violation, serialization_failure
_BUSY = {"40P01", "55P03", "57014", "53300", "57P03"}  # deadlock, lock, cancelled, too many clients, starting up
_GONE = {"57P01", "57P02", "57P05"}  # shut down, crashed, idle too long
_MIGRATION_LOCK = 0x6D61696E  # "main": any constant will do, as long as every process takes the same


class PostgresEngine(Engine):
    name = "postgres"
    title = "Postgres"
    capabilities = Capabilities(many_processes=True, row_locks=True, schemas=True, file=False)
    fragments: ClassVar = {
        "lock_rows": "FOR UPDATE",
        "list_tables": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename ~ '^dl_'",
    }
    double_percent = True

    def __init__(self, uri: CatalogUri, settings: Settings) -> None:
        super().__init__(uri, settings)
        self._pool = Pool(self._connect_patiently, self._usable, size=settings.pool_size, wait=settings.busy_timeout)

    def _connect_patiently(self) -> Connection:
        return self.patiently(self._connect, what="connecting")

    def _connect(self) -> Connection:
        # As start-up options these cost no round trip of their own. A blank or a backslash is escaped for libpq.
        path = '"' + self.uri.schema.replace('"', '""') + '"'
        escaped = path.replace("\\", "\\\\").replace(" ", "\\ ")
        connection = psycopg.connect(
            host=self.uri.host,
            port=self.uri.port,
            dbname=self.uri.database,
            user=self.uri.user,
            password=self.uri.password.reveal() if self.uri.password else None,
            connect_timeout=self.settings.connect_timeout,
            options=f"-c search_path={escaped} -c TimeZone=UTC",
            autocommit=True,
            **{"application_name": "mainstem", **self.uri.options},  # type: ignore[arg-type]
        )
        connection.adapters.register_loader("uuid", TextLoader)  # an id is text on every engine
        return connection

    def _usable(self, connection: psycopg.Connection[Any]) -> bool:
        """Idle, and the server has not hung up: a word from it that nobody asked for is its farewell. Sends nothing."""
        if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            return False
        waiting = select.poll()
        waiting.register(connection.pgconn.socket, select.POLLIN)
        return not waiting.poll(0)

    def lease(self, *, write: bool) -> AbstractContextManager[Connection]:
        return self._pool.lease()

    def placeholder(self, name: str) -> str:
        return f"%({name})s"

    def is_driver_error(self, error: BaseException) -> bool:
        return isinstance(error, psycopg.Error)

    def classify(self, error: BaseException) -> Outcome:
        state = getattr(error, "sqlstate", None)
        if state in _LOST:
            return Outcome.LOST
        if state in _BUSY:
            return Outcome.BUSY
        if state in _GONE or (state or "").startswith("08"):
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

    def now(self, connection: Connection) -> datetime:
        moment: datetime = connection.execute("SELECT clock_timestamp()").fetchone()[0]
        return moment

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
