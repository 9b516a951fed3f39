"""A transaction over data: DataFrames and SQL, staged on private mounts, committed together."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from mainstem.checkpoint import ALL_FILES
from mainstem.committing import Committed
from mainstem.errors import GateFailed, UsageError
from mainstem.gate import GateResult, check_rows, check_stats
from mainstem.leases import STAGING, Leases
from mainstem.mount import Mount
from mainstem.operations.gates import Gate, require_unmoved, store
from mainstem.operations.staged import DataTable, blind_or_whole
from mainstem.operations.views import temporary_view
from mainstem.proposal import NO_VERSION, TableState
from mainstem.ratified import Alongside, Ratified, nothing_else
from mainstem.session import in_utc
from mainstem.store import Queries, Store
from mainstem.transaction import StagedTable, Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED = re.compile(r"\{(\w+)\}")


class DataTransaction(Transaction):
    """Changes of tables by Delta's own operations, by SQL, or by ready actions: all of them happen, or none."""

    _tables: dict[str, DataTable]  # type: ignore[assignment]

    def __init__(self, store: Store, *, session: Callable[[], SparkSession], **terms: Any) -> None:
        super().__init__(store, **terms)
        self.session = session
        self._gates: list[Gate] = []
        self._began_ms = int(time.time() * 1000)
        self._leases = Leases("stage", lasting=STAGING)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            for table in self._tables.values():
                table.close()

    def table(self, name: str) -> DataTable:
        """The table as this transaction changes it."""
        found = super().table(name)
        assert isinstance(found, DataTable)
        return found

    def create(self, state: TableState) -> DataTable:
        found = super().create(state)
        assert isinstance(found, DataTable)
        return found

    def staged(self, state: TableState) -> DataTable:
        return DataTable(self, state)

    def hold(self, state: TableState, *, version: int | None = None) -> None:
        """Keep expiry and vacuum off what this transaction reads and writes of a table, until it ends."""
        at = state.read_version if version is None else version
        if at != NO_VERSION:
            self._leases.hold(self.store, state.table_id, at)

    @property
    def in_utc(self) -> bool:
        return in_utc(self.session)

    def provisional_ms(self, version: int) -> int:
        """A time for a staged version, later than those before it; ratifying gives it the real one."""
        return self._began_ms + version

    def sql(self, statement: str, **names: str | DataFrame) -> DataFrame | None:
        """Run one statement of SQL in which `{name}` is a table of the catalog, given by its name, or a DataFrame.

        The first table that is named is the one that a MERGE, UPDATE, DELETE or INSERT changes. A query gives its
        rows, with what is staged.
        """
        if not _changes(statement):
            return self._query(statement, names)
        tables, frames = self._named(statement, names)
        [changed, *others] = dict.fromkeys(tables.values())
        with ExitStack() as views:
            texts = {name: views.enter_context(temporary_view(frame)) for name, frame in frames.items()}
            read = {table: table.mounted(ALL_FILES).sql_name for table in others}

            def operate(spark: SparkSession, mount: Mount) -> None:
                known = {name: read.get(table, mount.sql_name) for name, table in tables.items()}
                session = self._session_of(tables.values(), frames.values())
                session.sql(_filled(statement, {**texts, **known})).collect()

            changed.run(ALL_FILES, blind_or_whole, operate)
        return None

    def require(
        self,
        suite: Any,
        *,
        on: str | None = None,
        scope: Literal["table", "added"] = "table",
        query: str | None = None,
        **names: str | DataFrame,
    ) -> GateResult:
        """Let nothing of this transaction be committed unless the staged rows meet a suite of expectations.

        `on` names a table: all of its rows, or with `scope="added"` those in files that this transaction adds. `query`
        asks about several staged tables at once, each as `{name}`. Failing raises `GateFailed`; the result of a gate
        that was passed is stored with the commit. Where more is staged afterwards, the commit asks again. What was
        asked of whole tables was asked of them as they were: a commit that changes their rows meanwhile is a conflict.
        """
        if (on is None) == (query is None):
            raise UsageError("a gate is on one table or on one query.", hint="Give on= or query=.")
        if query is not None:
            tables = {table.name: table for table in self._named(query, names)[0].values()}
            return self._pass(
                Gate(tables, lambda: check_rows(next(iter(tables)), self._query(query, names), suite), whole=True)
            )
        assert on is not None
        staged = self.table(on)
        read = staged.read if scope == "table" else staged.read_added
        return self._pass(Gate({on: staged}, lambda: check_rows(on, read(), suite), whole=scope == "table"))

    def require_stats(
        self,
        on: str,
        *,
        rows: tuple[int | None, int | None] | None = None,
        null_rate: Mapping[str, float] | None = None,
        ranges: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> GateResult:
        """The same by the statistics of the files that this transaction adds to a table; no data is read.

        `rows` bounds how many rows they have, `null_rate` how many of a column may be null, `ranges` its values.
        """
        staged = self.table(on)

        def check() -> GateResult:
            return check_stats(on, staged.added(), staged.columns(), rows=rows, null_rate=null_rate, ranges=ranges)

        return self._pass(Gate({on: staged}, check))

    def commit(self, *, authority: str = "catalog", alongside: Alongside = nothing_else) -> dict[str, Committed]:
        self._require_open()
        try:
            return self._commit_checked(authority, alongside)
        finally:
            self._leases.drop()

    def _commit_checked(self, authority: str, alongside: Alongside) -> dict[str, Committed]:
        for gate in self._gates:
            gate.pass_again()
        for table in self._looked_at().values():
            table.was_read_whole()

        def also(queries: Queries, done: Sequence[Ratified]) -> Sequence[Ratified]:
            require_unmoved(queries, self.only_read())
            for gate in self._gates:
                store(queries, gate, done)
            return alongside(queries, done)

        return super().commit(authority=authority, alongside=also)

    def only_read(self) -> Sequence[TableState]:
        return [table.state for table in self._looked_at().values() if not table.commits]

    def _looked_at(self) -> dict[str, StagedTable]:
        return {name: table for gate in self._gates if gate.whole for name, table in gate.tables.items()}

    def rollback(self) -> None:
        super().rollback()
        self._leases.drop()

    def _pass(self, gate: Gate) -> GateResult:
        try:
            gate.pass_again()
        except GateFailed:
            self._gates.append(gate)  # who catches this may put the rows right, and is asked again
            raise
        self._gates.append(gate)
        return gate.result

    def _query(self, statement: str, names: Mapping[str, str | DataFrame]) -> DataFrame:
        tables, frames = self._named(statement, names)
        texts = {name: table.lent(ALL_FILES).sql_name for name, table in tables.items()}
        with ExitStack() as views:
            texts |= {name: views.enter_context(temporary_view(frame)) for name, frame in frames.items()}
            rows = self._session_of(tables.values(), frames.values()).sql(_filled(statement, texts))
        for table in dict.fromkeys(tables.values()):
            table.take_new(blind_or_whole)  # what follows a WITH may be an INSERT, which Spark has run by now
        return rows

    def _session_of(self, tables: Iterable[DataTable], frames: Iterable[DataFrame]) -> SparkSession:
        """The session that knows the frames' views, and from now on the tables' mounts."""
        session = next((frame.sparkSession for frame in frames), None) or self.session()
        for table in tables:
            table.show_to(session)
        return session

    def _named(
        self, statement: str, names: Mapping[str, str | DataFrame]
    ) -> tuple[dict[str, DataTable], dict[str, DataFrame]]:
        """What a statement names: tables in the order of their first use, and frames."""
        wanted = list(dict.fromkeys(_NAMED.findall(statement)))
        if missing := [name for name in wanted if name not in names]:
            raise UsageError(f"the statement names {{{missing[0]}}}, which was not given.", hint="Give it by name.")
        tables = {name: self.table(value) for name in wanted if isinstance(value := names[name], str)}
        if not tables:
            raise UsageError("the statement names no table of the catalog.", hint="Give one: items='sales.items'.")
        return tables, {name: value for name in wanted if not isinstance(value := names[name], str)}


def _filled(statement: str, texts: Mapping[str, str]) -> str:
    return _NAMED.sub(lambda found: texts[found[1]], statement)


def _changes(statement: str) -> bool:
    return statement.lstrip().split(None, 1)[0].upper() not in ("SELECT", "WITH", "FROM", "VALUES", "DESCRIBE", "SHOW")
