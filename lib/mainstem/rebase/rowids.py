"""Row tracking: which ids the rows of a file have, and since which version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mainstem.conflicts.features import ROW_TRACKING, features
from mainstem.conflicts.values import ROW_TRACKING_DOMAIN, is_true, json_object, properties_of
from mainstem.deltalog.edit import with_fields
from mainstem.errors import UsageError
from mainstem.identity import app_key
from mainstem.model import FIRST_SEQ, Action, AddFile, DomainMetadata, Metadata, Protocol

NO_ROW_ID = -1  # the high water mark of a table without rows
_SUSPENDED = "delta.rowTrackingSuspended"


def high_water_mark(actions: Iterable[Action]) -> int | None:
    """The highest row id in use, as the last row tracking domain among these actions says; None if none says it."""
    found = None
    for action in actions:
        if isinstance(action, DomainMetadata) and is_mark(action) and not action.removed:
            mark = json_object(action.configuration).get("rowIdHighWaterMark")
            found = mark if type(mark) is int else found  # and no truth value
    return found


def is_mark(action: Action) -> bool:
    """Whether this is the row tracking domain, which holds the high water mark."""
    return isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN


def assign_row_ids(
    actions: Sequence[Action], *, protocol: Protocol, metadata: Metadata, high_water_mark: int | None, version: int
) -> tuple[Action, ...]:
    """The actions with a base row id and a default row commit version in every add, as Delta assigns them.

    An add that has them keeps them. The row tracking domain is there if the high water mark has risen, whatever was
    said of it: a mark that is lowered or removed would give an id twice. `protocol` and `metadata` are those after the
    commit. Nothing changes unless the protocol supports row tracking; while it is suspended, files have neither. A new
    file whose statistics do not count its records is a `UsageError`.
    """
    if ROW_TRACKING not in features(protocol):
        return tuple(actions)
    before = NO_ROW_ID if high_water_mark is None else high_water_mark
    suspended = is_true(properties_of(metadata).get(_SUSPENDED))
    if suspended:
        actions = [_bare(action) if isinstance(action, AddFile) else action for action in actions]
    mark = max([before, *(last for action in actions if (last := _last_row_id(action)) is not None)])
    if suspended:
        return _with_mark(actions, mark, before=before)
    numbered: list[Action] = []
    for action in actions:
        if isinstance(action, AddFile) and (action.base_row_id is None or action.default_row_commit_version is None):
            base, since = action.base_row_id, action.default_row_commit_version
            if base is None:
                base, mark = mark + 1, mark + _records(action)
            numbered.append(
                with_fields(action, base_row_id=base, default_row_commit_version=version if since is None else since)
            )
        else:
            numbered.append(action)
    return _with_mark(numbered, mark, before=before)


def _bare(add: AddFile) -> AddFile:
    if add.base_row_id is None and add.default_row_commit_version is None:
        return add
    return with_fields(add, base_row_id=None, default_row_commit_version=None)


def _last_row_id(action: Action) -> int | None:
    """The highest row id that an action already takes, as far as it says."""
    if isinstance(action, AddFile):
        return None if action.base_row_id is None else action.base_row_id + (action.num_records or 0) - 1
    return high_water_mark([action])


def _records(add: AddFile) -> int:
    if add.num_records is None:
        raise UsageError(
            f"the table tracks rows, but the statistics of {add.path[:200]!r} do not say how many records it has.",
            hint="Nothing was written. Write the file with statistics: numRecords is enough.",
            path=add.path[:1000],
        )
    return add.num_records


def _with_mark(actions: Sequence[Action], mark: int, *, before: int) -> tuple[Action, ...]:
    """The actions with one row tracking domain, in its place or at the end; with none, if the mark has not risen."""
    found = next((action for action in actions if isinstance(action, DomainMetadata) and is_mark(action)), None)
    if mark == before:
        return tuple(action for action in actions if not is_mark(action)) if found else tuple(actions)
    configuration = f'{{"rowIdHighWaterMark":{mark}}}'
    if found is not None:
        moved = found
        if high_water_mark([found]) != mark:  # one that says it already stays as it was written
            moved = with_fields(found, configuration=configuration, removed=False)
        return tuple(
            moved if action is found else action for action in actions if action is found or not is_mark(action)
        )
    seq = max([FIRST_SEQ, *(action.seq + 1 for action in actions)])
    return (*actions, DomainMetadata(seq, ROW_TRACKING_DOMAIN, app_key(ROW_TRACKING_DOMAIN), configuration, False))
