"""A transaction over data: DataFrames and SQL, staged on private mounts, committed together."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from mainstem.checkpoint import ALL_FILES
from mainstem.committing import Committed
from mainstem.errors import UsageError
from mainstem.gate import GateResult, check_rows, check_stats
from mainstem.mount import Mount
from mainstem.operations.staged import DataTable, blind_or_whole
from mainstem.operations.views import temporary_view
from mainstem.proposal import TableState
from mainstem.ratified import Alongside, Ratified, nothing_else
from mainstem.store import Queries, Store
from mainstem.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED = re.compile(r"\{(\w+)\}")


class DataTransaction(Transaction):
    """Changes of tables by Delta's own operations, by SQL, or by ready actions: all of them happen, or none."""

    _tables: dict[str, DataTable]  # type: ignore[assignment]

    def __init__(self, store: Store, *, session: Callable[[], SparkSession], **terms: Any) -> None:
        super().__init__(store, **terms)
        self.session = session
        self.gates: list[GateResult] = []
        self._began_ms = int(time.time() * 1000)

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
        that was passed is stored with the commit.
        """
        if (on is None) == (query is None):
            raise UsageError("a gate is on one table or on one query.", hint="Give on= or query=.")
        if query is not None:
            rows, table = self._query(query, names), next(iter(self._named(query, names)[0].values())).name
        else:
            assert on is not None
            staged = self.table(on)
            rows, table = (staged.read() if scope == "table" else staged.read_added()), on
        return self._passed(check_rows(table, rows, suite))

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
        adds = self.table(on).added()
        return self._passed(check_stats(on, adds, rows=rows, null_rate=null_rate, ranges=ranges))

    def commit(self, *, authority: str = "catalog", alongside: Alongside = nothing_else) -> dict[str, Committed]:
        def also(queries: Queries, done: Sequence[Ratified]) -> Sequence[Ratified]:
            for gate in self.gates:
                _store(queries, gate, done)
            return alongside(queries, done)

        return super().commit(authority=authority, alongside=also)

    def _passed(self, result: GateResult) -> GateResult:
        result.require()
        self.gates.append(result)
        return result

    def _query(self, statement: str, names: Mapping[str, str | DataFrame]) -> DataFrame:
        tables, frames = self._named(statement, names)
        texts = {name: table.mounted(ALL_FILES).sql_name for name, table in tables.items()}
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


def _store(queries: Queries, gate: GateResult, done: Sequence[Ratified]) -> None:
    """A gate's result beside the version that it let pass; a table that was only looked at has none."""
    version = next((each for each in done if each.name == gate.table), None)
    if version is None or version.repeated:
        return
    queries.change(
        "validation_run_insert", run_id=str(uuid4()), table_id=version.table_id, version=version.entries[-1].version,
        group_id=None, suite=gate.suite, started_at=gate.started_at, finished_at=gate.finished_at, success=True,
        findings="[]",
    )  # fmt: skip


def _changes(statement: str) -> bool:
    return statement.lstrip().split(None, 1)[0].upper() not in ("SELECT", "WITH", "FROM", "VALUES", "DESCRIBE", "SHOW")
