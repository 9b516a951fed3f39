"""Conflicts as the error that users see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from mainstem.conflicts.values import Conflict
from mainstem.errors import ConflictError

_MOST_TOLD = 3
_LONGEST = 120


def conflict_error(table_name: str, conflicts: Sequence[Conflict]) -> ConflictError:
    """The error for these conflicts: table, rule, versions with operation and committer, first files, next step.

    `details` carry the same as data.
    """
    told = "; ".join(map(_told, conflicts[:_MOST_TOLD]))
    more = f"; and {len(conflicts) - _MOST_TOLD} more conflicts" if conflicts[_MOST_TOLD:] else ""
    return ConflictError(
        f"{table_name}: another commit came first, and this one cannot follow it. {told}{more}. Nothing was written.",
        hint="Read the table again and repeat; catalog.run(fn) does both.",
        table=table_name,
        rule=conflicts[0].rule,
        versions=sorted({conflict.version for conflict in conflicts}),
        conflicts=[asdict(conflict) for conflict in conflicts],
    )


def _told(conflict: Conflict) -> str:
    by = f" by {_short(conflict.committer)}" if conflict.committer else ""
    files = f" ({', '.join(map(_short, conflict.files))})" if conflict.files else ""
    what = _short(conflict.operation or "an operation without a name")
    return f"{conflict.rule}: version {conflict.version} ({what}{by}): {conflict.explanation}{files}"


def _short(text: str) -> str:
    """On one line, whatever a writer has put there."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
