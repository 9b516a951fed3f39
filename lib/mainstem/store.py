"""Named queries over one catalog: the only place where rows and SQL meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from mainstem import observe, sqltext
from mainstem.engines import Engine, EngineError, Outcome
from mainstem.engines.base import Connection
from mainstem.errors import CommitUnknown, CorruptCatalog, EngineBusy

Row = dict[str, Any]


def as_utc(value: datetime | str) -> datetime:
    """A moment as the engines give it (aware, naive in UTC, or ISO text) as an aware datetime in UTC."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _only(name: str, found: list[Row]) -> Row | None:
    if len(found) > 1:
        raise CorruptCatalog(f"the query {name} found {len(found)} rows where one can be.")
    return found[0] if found else None


class Queries:
    """The named queries on one connection. Inside `Store.writing` they are one transaction."""

    def __init__(self, engine: Engine, connection: Connection) -> None:
        self.engine = engine
        self.connection = connection

    def _execute(self, name: str, values: dict[str, object]) -> Any:
        with observe.span(f"sql.{name}", **{"db.system": self.engine.name, "table": values.get("table_id")}):
            return self.engine.execute(self.connection, sqltext.queries()[name], values)

    def rows(self, name: str, **values: object) -> list[Row]:
        """All rows of a query, each as a dict by column name."""
        cursor = self._execute(name, values)
        columns = [column[0] for column in cursor.description]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def row(self, name: str, **values: object) -> Row | None:
        """The one row of a query, or none; more than one contradicts the catalog's own keys."""
        return _only(name, self.rows(name, **values))

    def scalar(self, name: str, **values: object) -> Any:
        """The one value of a query, or None."""
        found = self.row(name, **values)
        return next(iter(found.values())) if found else None

    def change(self, name: str, **values: object) -> int:
        """Run an INSERT, UPDATE or DELETE; how many rows it touched."""
        return self.engine.affected(self._execute(name, values))

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        """Put many rows into a table by the engine's fastest road."""
        with observe.span("sql.copy", **{"db.system": self.engine.name, "db.table": table}):
            return self.engine.copy(self.connection, table, columns, rows)

    def now(self) -> datetime:
        """The database's clock."""
        return as_utc(self.engine.now(self.connection))


class Store:
    """One catalog's rows. Reads are repeated after a lost connection, within the settings' limit; writes never are."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def reading(self) -> Iterator[Queries]:
        """Several queries on one connection; each sees the newest committed state, so bound them by a version."""
        try:
            with self.engine.reading() as connection:
                yield Queries(self.engine, connection)
        except EngineError as error:
            raise self._passing(error) from error

    @contextmanager
    def writing(self) -> Iterator[Queries]:
        """One transaction: all of it or nothing.

        A connection lost at COMMIT raises CommitUnknown: look the commit's token up before doing it again.
        """
        try:
            with self.engine.writing() as connection:
                yield Queries(self.engine, connection)
        except EngineError as error:
            if error.at_commit and error.outcome is Outcome.UNKNOWN:
                raise CommitUnknown(
                    f"{error.message}: whether the commit took effect is not known.",
                    hint="Repeat with the same token: it commits once.",
                ) from error
            raise self._passing(error) from error

    @staticmethod
    def _passing(error: EngineError) -> Exception:
        if error.outcome in (Outcome.BUSY, Outcome.UNKNOWN):
            return EngineBusy(f"{error.message}.", hint="Nothing was written. Repeat when the database answers.")
        return error

    def rows(self, name: str, **values: object) -> list[Row]:
        """All rows of one query on a connection of its own."""

        def once() -> list[Row]:
            with self.engine.reading() as connection:
                return Queries(self.engine, connection).rows(name, **values)

        return self.engine.patiently(once, what=f"the query {name}")

    def row(self, name: str, **values: object) -> Row | None:
        """The one row of one query, or none."""
        return _only(name, self.rows(name, **values))
