"""A MERGE, clause by clause, as Delta's own SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from mainstem.checkpoint import ALL_FILES, Choice, matching
from mainstem.conflicts import Reads
from mainstem.errors import UsageError
from mainstem.model import Action
from mainstem.mount import Mount
from mainstem.operations.bounds import bounds_of, source_bounds
from mainstem.operations.collected import unchanging
from mainstem.operations.sqltexts import assignments, expression, quoted
from mainstem.operations.views import temporary_view
from mainstem.pruning import table_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mainstem.operations.staged import DataTable

T = TypeVar("T")
TARGET, SOURCE = "t", "s"


class Merge(Generic[T]):
    """Clauses in the order in which they are added, as in SQL. Nothing happens before `execute`."""

    def __init__(self, run: Callable[[Merge[T]], T], source: DataFrame, on: str) -> None:
        self._run = run
        self._source = source
        self._on = on
        self._clauses: list[str] = []
        self._evolution = False
        self._by_source = False

    def when_matched_update_all(self, *, condition: str | None = None) -> Self:
        return self._clause("MATCHED", condition, "UPDATE SET *")

    def when_matched_update(self, *, set: Mapping[str, Any], condition: str | None = None) -> Self:  # noqa: A002
        return self._clause("MATCHED", condition, f"UPDATE SET {assignments(set)}")

    def when_matched_delete(self, *, condition: str | None = None) -> Self:
        return self._clause("MATCHED", condition, "DELETE")

    def when_not_matched_insert_all(self, *, condition: str | None = None) -> Self:
        return self._clause("NOT MATCHED", condition, "INSERT *")

    def when_not_matched_insert(self, *, values: Mapping[str, Any], condition: str | None = None) -> Self:
        columns, given = ", ".join(map(quoted, values)), ", ".join(map(expression, values.values()))
        return self._clause("NOT MATCHED", condition, f"INSERT ({columns}) VALUES ({given})")

    def when_not_matched_by_source_update(
        self,
        *,
        set: Mapping[str, Any],  # noqa: A002
        condition: str | None = None,
    ) -> Self:
        self._by_source = True
        return self._clause("NOT MATCHED BY SOURCE", condition, f"UPDATE SET {assignments(set)}")

    def when_not_matched_by_source_delete(self, *, condition: str | None = None) -> Self:
        self._by_source = True
        return self._clause("NOT MATCHED BY SOURCE", condition, "DELETE")

    def with_schema_evolution(self) -> Self:
        """Let columns that only the source has be added to the table."""
        self._evolution = True
        return self

    def execute(self) -> T:
        """Run it. Inside of a transaction it is staged; for a table alone, it is committed."""
        if not self._clauses:
            raise UsageError("the merge has no clause.", hint="Add one, such as when_matched_update_all().")
        return self._run(self)

    def stage(self, table: DataTable) -> DataTable:
        """Stage it on a table of a transaction."""
        with ExitStack() as kept:
            choice, predicate = self._bounded(table, kept)
            return self._staged(table, choice, predicate)

    def _staged(self, table: DataTable, choice: Choice, predicate: str | None) -> DataTable:
        def operate(spark: SparkSession, mount: Mount) -> None:
            session = self._source.sparkSession  # the view is known there alone
            mount.show_to(session)
            with temporary_view(self._source) as view:
                evolution = "WITH SCHEMA EVOLUTION " if self._evolution else ""
                session.sql(
                    f"MERGE {evolution}INTO {mount.sql_name} AS {TARGET} USING {view} AS {SOURCE} ON {self._on} "
                    + " ".join(self._clauses)
                ).collect()

        def reads(actions: Sequence[Action]) -> Reads:
            return table.read_by(predicate, by=self._source.sparkSession)(actions)

        return table.run(choice, reads, operate)

    def _clause(self, when: str, condition: str | None, then: str) -> Self:
        self._clauses.append(f"WHEN {when}{'' if condition is None else f' AND ({condition})'} THEN {then}")
        return self

    def _bounded(self, table: DataTable, kept: ExitStack) -> tuple[Choice, str | None]:
        """The files that can match, and the predicate that says so. What was looked at for it is `kept` as it was."""
        if self._by_source or table.state.read_version < 0 or table.redefined:
            return ALL_FILES, None
        bounds = bounds_of(self._on, target=TARGET, source=SOURCE)
        snapshot = table.snapshot_at(table.state.read_version, by=self._source.sparkSession)
        conditions = list(bounds.target)
        if bounds.pairs and snapshot.has_more_files_than(snapshot.store.engine.settings.mount_files):
            columns = table_columns(snapshot.schema_json, snapshot.partition_columns, snapshot.properties)
            if kept.enter_context(unchanging(self._source)):
                conditions += source_bounds(self._source, bounds, columns)
        if not conditions:
            return ALL_FILES, None
        where = " AND ".join(f"({each})" for each in conditions)
        return matching(where, snapshot), where
