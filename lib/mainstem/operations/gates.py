"""The gates of a transaction: passed when they are set, and again before it commits, if more was staged since."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

from mainstem.console import to_json
from mainstem.errors import ConflictError
from mainstem.gate import GateResult
from mainstem.proposal import NO_VERSION, Content, TableState
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

    Inside of the transaction that commits, which has locked their heads with all others: who commits to them meanwhile
    comes after it.
    """
    known = {state.table_id: state for state in looked_at if state.read_version != NO_VERSION}
    if not known:
        return
    found = queries.rows_among("heads_now", "ids", list(known), txn_id="")
    heads = {row["table_id"]: row for row in found}
    for table_id, state in known.items():
        head = heads.get(table_id)
        at = None if head is None else head["current_version"]
        if at != state.read_version or Content.of(head) != state.content:
            other = ", with another content," if at == state.read_version else ""
            raise ConflictError(
                f"{state.name}: a gate of this transaction has looked at version {state.read_version}, and the table "
                f"is at {'none' if at is None else at}{other} by now. Nothing was written.",
                hint="Read the tables again and repeat; catalog.run(fn) does both.",
                table=state.name,
            )


def store(queries: Queries, gate: Gate, done: Sequence[Ratified]) -> None:
    """A gate's result, with its warnings, beside each version that it let pass.

    A table that was only looked at has none.
    """
    result = gate.result
    for version in done:
        if version.name in gate.tables and not version.repeated:
            queries.change(
                "validation_run_insert", run_id=str(uuid4()), table_id=version.table_id,
                version=version.entries[-1].version, group_id=None, suite=result.suite, started_at=result.started_at,
                finished_at=result.finished_at, success=True, findings=to_json(list(result.warnings)),
            )  # fmt: skip
