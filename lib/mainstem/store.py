"""Named queries over one catalog: the only place where rows and SQL meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from mainstem import observe, sqltext
from mainstem.columns import Column
from mainstem.engines import Change, Engine, EngineError, Outcome, Statement
from mainstem.engines.base import Asked, Connection
from mainstem.errors import CommitUnknown, CorruptCatalog, EngineBusy, TableNotFound

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Pieces = Mapping[str, str] | None


def as_utc(value: datetime | str) -> datetime:
    """A moment as the engines give it (aware, naive in UTC, or ISO text) as an aware datetime in UTC."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _only(name: str, found: list[Row]) -> Row | None:
    if len(found) > 1:
        raise CorruptCatalog(f"the query {name} found {len(found)} rows where one can be.")
    return found[0] if found else None


def _with_pieces(name: str, columns: Sequence[Column], condition: str) -> str:
    """A query with its list of columns and its condition, both made by us: users' values are bound, never here."""
    pieces = {"columns": ", ".join(column.name for column in columns), "condition": condition}
    return sqltext.render(sqltext.queries()[name], pieces, others="keep")


def _list_of(piece: str, items: Sequence[object]) -> tuple[dict[str, str], dict[str, object]]:
    """A list of values as a piece of SQL that names each, and the values by those names."""
    names = [f"{piece}_{place}" for place in range(len(items))]
    return {piece: ", ".join(f":{name}" for name in names)}, dict(zip(names, items, strict=True))


@lru_cache(maxsize=1024)
def _with_names(name: str, pieces: tuple[tuple[str, str], ...]) -> str:
    return sqltext.render(sqltext.queries()[name], dict(pieces), others="keep")


def statement(name: str, pieces: Pieces = None, /, **values: object) -> Statement:
    """A named statement with its values, for `Queries.together` and `Store.note`."""
    sql = _with_names(name, tuple(pieces.items())) if pieces else sqltext.queries()[name]
    # For engines whose {{clock}} is this process's.
    return Statement(sql, {"process_clock": datetime.now(UTC), **values})


def asked(name: str, /, **values: object) -> tuple[str, Asked]:
    """A query that a transaction begins with."""
    return name, partial(statement, name, **values)


def asked_among(name: str, piece: str, items: Sequence[object], /, **values: object) -> tuple[str, Asked]:
    """The same for one that names a list of values, each bound, as `{{piece}}`."""
    pieces, named = _list_of(piece, items)
    return name, partial(statement, name, pieces, **values, **named)


def statement_of_keys(name: str, keys: Sequence[bytes], /, **values: object) -> Statement:
    """The same for one that names several keys, each bound."""
    pieces, named = _list_of("keys", keys)
    return statement(name, pieces, **values, **named)


class Queries:
    """The named queries on one connection. Inside `Store.writing` they are one transaction."""

    def __init__(self, engine: Engine, connection: Connection, first: Sequence[list[Row]] = ()) -> None:
        self.engine = engine
        self.connection = connection
        self.first = first  # what the queries have found that the transaction was begun with

    def arrow(self, name: str, columns: Sequence[Column], *, condition: str = "TRUE", **values: object) -> pa.Table:
        """The rows of a query over files as an Arrow table with exactly these columns."""
        return self._arrow(name, columns, condition, values, few=False)

    def arrow_few(self, name: str, columns: Sequence[Column], **values: object) -> pa.Table:
        """The same where hundreds of rows are expected, and not thousands."""
        return self._arrow(name, columns, "TRUE", values, few=True)

    def _arrow(
        self, name: str, columns: Sequence[Column], condition: str, values: Mapping[str, object], *, few: bool
    ) -> pa.Table:
        sql = _with_pieces(name, columns, condition)
        with self._span(name, values):
            found = self.engine.arrow(self.connection, sql, values, columns, few=few)
        observe.count("rows_scanned", found.num_rows, query=name)
        return found

    def page(self, name: str, columns: Sequence[Column], *, condition: str = "TRUE", **values: object) -> list[Row]:
        """One page of a query over files, each row as a dict."""
        with self._span(name, values):
            cursor = self.engine.execute(self.connection, _with_pieces(name, columns, condition), values)
            return self._counted(name, self.engine.fetched(cursor))

    def _execute(self, name: str, values: dict[str, object], pieces: Pieces = None) -> Any:
        found = statement(name, pieces, **values)
        with self._span(name, values):
            return self.engine.execute(self.connection, found.sql, found.values)

    def _span(self, name: str, values: Mapping[str, object]) -> AbstractContextManager[object]:
        return observe.span(f"sql.{name}", **{"db.system": self.engine.name, "table": values.get("table_id")})

    def rows(self, name: str, pieces: Pieces = None, /, **values: object) -> list[Row]:
        """All rows of a query, each as a dict by column name. `pieces` are names of ours that the text leaves open."""
        return self._counted(name, self.engine.fetched(self._execute(name, values, pieces)))

    @staticmethod
    def _counted(name: str, found: list[Row]) -> list[Row]:
        observe.count("rows_scanned", len(found), query=name)
        return found

    def row(self, name: str, /, **values: object) -> Row | None:
        """The one row of a query, or none; more than one contradicts the catalog's own keys."""
        return _only(name, self.rows(name, **values))

    def blobs(self, name: str, /, **values: object) -> list[tuple[int, bytes]]:
        """All rows of a query that gives a number and long bytes."""
        with self._span(name, values):
            return self.engine.blobs(self.connection, sqltext.queries()[name], values)

    def scalar(self, name: str, /, **values: object) -> Any:
        """The one value of a query, or None."""
        found = self.row(name, **values)
        return next(iter(found.values())) if found else None

    def run(self, name: str, pieces: Pieces = None, /, **values: object) -> None:
        """Run a statement that touches no row, such as one that creates a temporary table."""
        self._execute(name, values, pieces)

    def change(self, name: str, pieces: Pieces = None, /, **values: object) -> int:
        """Run an INSERT, UPDATE or DELETE; how many rows it touched."""
        return self.engine.affected(self._execute(name, values, pieces))

    def change_among(self, name: str, piece: str, items: Sequence[object], /, **values: object) -> int:
        """Run a statement that names a list of values, each bound, as `{{piece}}`; how many rows it touched."""
        pieces, named = _list_of(piece, items)
        return self.change(name, pieces, **values, **named)

    def rows_among(self, name: str, piece: str, items: Sequence[object], /, **values: object) -> list[Row]:
        """All rows of a query that names a list of values, each bound, as `{{piece}}`."""
        pieces, named = _list_of(piece, items)
        return self.rows(name, pieces, **values, **named)

    def together(self, changes: Sequence[Change]) -> list[int]:
        """Make changes of which none builds on another one's outcome; how many rows each touched, in their order."""
        with observe.span("sql.together", **{"db.system": self.engine.name, "changes": len(changes)}):
            return self.engine.together(self.connection, changes)

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        """Put many rows into a table by the engine's fastest road."""
        with observe.span("sql.copy", **{"db.system": self.engine.name, "db.table": table}):
            return self.engine.copy(self.connection, table, columns, rows)

    def now(self) -> datetime:
        """The database's clock."""
        return as_utc(self.engine.now(self.connection))


class Store:
    """One catalog's rows. Reads are repeated after a lost connection, within the settings' limit; writes never are.

    `session` gives the Spark session that whoever opened the catalog has, if there is one: it never starts one. It is
    for what can be done without, and by Spark in parallel.
    """

    def __init__(self, engine: Engine, *, session: Callable[[], SparkSession | None] = lambda: None) -> None:
        self.engine = engine
        self.session = session

    @contextmanager
    def reading(self) -> Iterator[Queries]:
        """Several queries on one connection; each sees the newest committed state, so bound them by a version."""
        try:
            with self.engine.reading() as connection:
                yield Queries(self.engine, connection)
        except EngineError as error:
            raise self._passing(error) from error

    @contextmanager
    def reading_to_write(self) -> Iterator[Queries]:
        """The same for a caller who will write what comes of it."""
        try:
            with self.engine.reading_to_write() as connection:
                yield Queries(self.engine, connection)
        except EngineError as error:
            raise self._passing(error) from error

    @contextmanager
    def writing(self, first: Sequence[tuple[str, Asked]] = ()) -> Iterator[Queries]:
        """One transaction: all of it or nothing. It begins with these queries; `Queries.first` has what they found.

        A connection lost at COMMIT raises CommitUnknown: look the commit's token up before doing it again.
        """
        try:
            with self.engine.writing_after([each for _, each in first]) as (connection, found):
                yield Queries(self.engine, connection, found)
        except EngineError as error:
            if error.at_commit and error.outcome is Outcome.UNKNOWN:
                raise CommitUnknown(
                    f"{error.message}: whether the commit took effect is not known.",
                    hint="Look whether it did before you do it again.",
                ) from error
            raise self._passing(error) from error

    def note(self, changes: Sequence[Change]) -> datetime:
        """Changes that may be made twice, and found out again if a crash of the database loses them: all or nothing.

        The database's time of it.
        """
        with observe.span("sql.note", **{"db.system": self.engine.name}):
            return as_utc(self.engine.patiently(lambda: self.engine.note(changes), what="noting a change"))

    @staticmethod
    def _passing(error: EngineError) -> Exception:
        if error.outcome in (Outcome.BUSY, Outcome.UNKNOWN):
            return EngineBusy(f"{error.message}.", hint="Nothing was written. Repeat when the database answers.")
        return error

    def rows(self, name: str, /, **values: object) -> list[Row]:
        """All rows of one query on a connection of its own."""
        return self._rows(self.engine.reading, name, values)

    def _rows(
        self, leased: Callable[[], AbstractContextManager[Connection]], name: str, values: Mapping[str, object]
    ) -> list[Row]:
        def once() -> list[Row]:
            with leased() as connection:
                return Queries(self.engine, connection).rows(name, **values)

        return self.engine.patiently(once, what=f"the query {name}")

    def row_to_change(self, name: str, /, **values: object) -> Row | None:
        """The one row of a query by which a change begins, or none."""
        return _only(name, self._rows(self.engine.reading_to_write, name, values))

    def row(self, name: str, /, **values: object) -> Row | None:
        """The one row of one query, or none."""
        return _only(name, self.rows(name, **values))

    def table(self, name: str) -> Row:
        """A table with its head, by its name. Raises `TableNotFound`."""
        return self._found(name, self.row("table_by_name", name=name))

    def table_to_change(self, name: str) -> Row:
        """The same for a caller who will write soon."""
        return self._found(name, self.row_to_change("table_by_name", name=name))

    @staticmethod
    def _found(name: str, row: Row | None) -> Row:
        if row is None:
            raise TableNotFound(f"the catalog has no table {name}.", hint="See: mainstem tables", table=name)
        return row
