"""Rows of Postgres as Arrow tables, by ADBC: on connections of its own, which fetch by binary COPY."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import make_conninfo

from mainstem.engines.pool import Pool

if TYPE_CHECKING:
    import pyarrow as pa

# Rows are decoded in batches that stay in the processor's cache: 100,824 files of 650 bytes took 195 ms by the driver's
# own 16 MB, and take 150 by this.
_BATCH_BYTES = str(4 * 1024 * 1024)


class _Kept:
    """An ADBC database that a connection uses and does not close."""

    def __init__(self, conninfo: str) -> None:
        import adbc_driver_postgresql  # type: ignore[import-untyped]

        self.database = adbc_driver_postgresql.connect(conninfo)

    def close(self) -> None:
        """Others connect through it."""


@lru_cache(maxsize=16)
def _database(process: int, conninfo: str) -> _Kept:
    """ADBC's knowledge of a server's types, which takes 45 ms to gather; a connection takes 4. It holds none open."""
    return _Kept(conninfo)


class _Connection:
    """An ADBC connection that knows whether it failed: ADBC itself does not say."""

    def __init__(self, adbc: Any) -> None:
        self.adbc = adbc
        self.broken = False

    def close(self) -> None:
        self.adbc.close()


class ArrowReader:
    """Fetches the rows of statements that bind nothing. Connects when it is first asked."""

    def __init__(self, conninfo: Callable[[], Mapping[str, Any]], *, size: int, wait: float) -> None:
        self._conninfo = conninfo
        self._pool = Pool(self._connect, lambda connection: not connection.broken, size=size, wait=wait)

    def _connect(self) -> _Connection:
        from adbc_driver_manager import AdbcConnection, dbapi

        kept = _database(os.getpid(), make_conninfo("", **self._conninfo()))
        return _Connection(dbapi.Connection(kept, AdbcConnection(kept.database), autocommit=True))  # type: ignore[arg-type]

    @property
    def idle(self) -> bool:
        """Whether a connection is at hand."""
        return self._pool.idle

    def fetch(self, statement: str) -> pa.Table:
        """All rows of a statement whose values stand in its text: with bound ones ADBC would not fetch by COPY."""
        with self._pool.lease() as connection:
            try:
                cursor = connection.adbc.cursor()
                cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": _BATCH_BYTES})
                cursor.execute(statement)
                return cursor.fetch_arrow_table()
            except BaseException:
                connection.broken = True
                raise

    def close(self) -> None:
        """Close what is idle."""
        self._pool.close()
