"""The gates of a transaction: passed when they are set, and again before it commits, if more was staged since."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

from mainstem.errors import ConflictError
from mainstem.gate import GateResult
from mainstem.proposal import NO_VERSION, TableState
from mainstem.ratified import Ratified
from mainstem.store import Queries
from mainstem.transaction import StagedTable


class Gate:
    """One check of what is staged on some tables; `whole` says that it looks at all of their rows."""

    def __init__(
        self, tables: Mapping[str, StagedTable], check: Callable[[], GateResult], *, whole: bool = False
    ) -> None:
        self.tables = tables
        self.whole = whole
        self._check = check
        self._result: GateResult | None = None
        self._seen: dict[str, int] = {}  # how much was staged when it was passed

    @property
    def result(self) -> GateResult:
        """What it has found last."""
        assert self._result is not None
        return self._result

    def pass_again(self) -> None:
        """Check, unless nothing was staged since the last time. Raises `GateFailed` if it is not passed."""
        staged = {name: len(table.commits) for name, table in self.tables.items()}
        if self._result is None or staged != self._seen:
            result = self._check()
            result.require()
            self._result, self._seen = result, staged


def require_unmoved(queries: Queries, looked_at: Sequence[TableState]) -> None:
    """Raise unless these tables, which a gate has looked at and nothing is committed to, are where they were.

    Inside of the transaction that commits. Their heads are locked: who commits to them meanwhile comes after it.
    """
    known = {state.table_id: state for state in looked_at if state.read_version != NO_VERSION}
    if not known:
        return
    queries.rows_among("heads_lock", "ids", list(known))
    found = queries.rows_among("heads_now", "ids", list(known), txn_id="")
    heads = {row["table_id"]: row["current_version"] for row in found}
    for table_id, state in known.items():
        if heads.get(table_id) != state.read_version:
            raise ConflictError(
                f"{state.name}: a gate of this transaction has looked at version {state.read_version}, and the table "
                f"is at {heads.get(table_id, 'none')} by now. Nothing was written.",
                hint="Read the tables again and repeat; catalog.run(fn) does both.",
                table=state.name,
            )


def store(queries: Queries, gate: GateResult, done: Sequence[Ratified]) -> None:
    """A gate's result beside the version that it let pass; a table that was only looked at has none."""
    version = next((each for each in done if each.name == gate.table), None)
    if version is None or version.repeated:
        return
    queries.change(
        "validation_run_insert", run_id=str(uuid4()), table_id=version.table_id, version=version.entries[-1].version,
        group_id=None, suite=gate.suite, started_at=gate.started_at, finished_at=gate.finished_at, success=True,
        findings="[]",
    )  # fmt: skip
