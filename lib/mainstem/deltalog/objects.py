"""Actions that a caller hands over as Delta's JSON objects, checked as strictly as those of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from mainstem.deltalog.actions import parse_commit
from mainstem.errors import CorruptLog, UsageError
from mainstem.model import Action

_PLACE = "the commit"


def actions_of(objects: Iterable[Mapping[str, Any]], *, table: str, table_root: str) -> list[Action]:
    """The actions that these objects describe, `{"add": {…}}` and so on, in their order.

    Whatever a log could not hold is a `UsageError` that says which object it is: the first is number 1.
    """
    lines = []
    for number, each in enumerate(objects, start=1):
        try:
            lines.append(orjson.dumps(each))
        except TypeError as error:
            raise _refused(table, number, str(error)) from error
    if not lines:
        raise UsageError(f"the commit to {table} has no action.", hint="Nothing was written.", table=table)
    try:
        return parse_commit(b"\n".join(lines), file=_PLACE, table_root=table_root)
    except CorruptLog as error:
        line = error.details.get("line")
        why = error.message.removeprefix(f"{_PLACE}, line {line}: ").rstrip(".")
        raise _refused(table, line, why) from error


def _refused(table: str, number: int | None, why: str) -> UsageError:
    return UsageError(
        f"action {number} of the commit to {table} cannot be taken: {why}.",
        hint="Nothing was written. An action is one object of Delta's JSON, such as {'add': {…}}.",
        table=table,
        action=number,
    )
