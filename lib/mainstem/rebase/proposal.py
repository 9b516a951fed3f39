"""A proposal, moved behind the commits that came first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from mainstem.conflicts import Winner
from mainstem.conflicts.features import ROW_TRACKING, features
from mainstem.conflicts.metadata import turns_on_row_tracking
from mainstem.conflicts.values import json_object
from mainstem.deltalog.edit import with_fields, with_info
from mainstem.identity import canonical_path
from mainstem.model import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from mainstem.rebase.rowids import NO_ROW_ID, assign_row_ids, is_mark
from mainstem.rebase.rowids import high_water_mark as mark_of

_BACKFILL = "ROW TRACKING BACKFILL"
_NOT_PRESERVED = {"delta.rowTracking.preserved": "false"}


def rebase(
    actions: Sequence[Action],
    *,
    winners: Sequence[Winner],
    earlier: Sequence[Action] = (),
    read_version: int,
    new_version: int,
    protocol: Protocol,
    metadata: Metadata,
    metadata_read: Metadata,
    high_water_mark: int | None,
    table_root: str,
) -> tuple[Action, ...]:
    """The actions of a proposal that read `read_version`, as they have to be to become `new_version` after the winners.

    `protocol` and `metadata` are those after the winners and this commit, `metadata_read` and `high_water_mark` those
    of the version that was read. Row ids beyond the mark were assigned by the proposal and go behind those of the
    winners; default row commit versions beyond `read_version` become `new_version`. What was there before stays.
    `earlier` are the actions, moved already, of the commits before this one in the same transaction: their rows have
    their numbers. The proposal has no conflict with the winners. The in-commit timestamp is for `with_commit_info`,
    called after this.
    """
    moved = [_with_type_changes_at(action, read_version, new_version) for action in actions]
    if turns_on_row_tracking(metadata_read, metadata) and not any(isinstance(action, Metadata) for action in actions):
        # The rows were written before anybody asked to keep their ids.
        moved = [_not_preserving(action) if isinstance(action, CommitInfo) else action for action in moved]
    if ROW_TRACKING not in features(protocol):
        return tuple(moved)
    mark = NO_ROW_ID if high_water_mark is None else high_water_mark
    moved = [_forgotten(action, mark, read_version) for action in moved if not is_mark(action)]
    numbered = _numbered(winners, earlier, table_root)
    moved = [_like(action, numbered, table_root) for action in moved] if numbered else moved
    before = [*(winner.actions for winner in winners), earlier]
    marks = [found for found in map(mark_of, before) if found is not None]
    return assign_row_ids(
        moved,
        protocol=protocol,
        metadata=metadata,
        high_water_mark=marks[-1] if marks else high_water_mark,
        version=new_version,
    )


def _forgotten(action: Action, mark: int, read_version: int) -> Action:
    """The action without what the proposal has numbered by itself."""
    if not isinstance(action, AddFile):
        return action
    base, since = action.base_row_id, action.default_row_commit_version
    kept = (
        None if base is not None and base > mark else base,
        None if since is not None and since > read_version else since,
    )
    return (
        action
        if kept == (base, since)
        else with_fields(action, base_row_id=kept[0], default_row_commit_version=kept[1])
    )


def _numbered(winners: Iterable[Winner], earlier: Iterable[Action], table_root: str) -> dict[str, AddFile]:
    """The files that have got row ids since the proposal read the table, and may be named by it."""
    backfills = (winner.actions for winner in winners if winner.operation == _BACKFILL)
    return {
        canonical_path(action.path, table_root): action
        for actions in (*backfills, earlier)
        for action in actions
        if isinstance(action, AddFile)
    }


def _like(action: Action, numbered: Mapping[str, AddFile], table_root: str) -> Action:
    """A file that has got row ids keeps them, whoever adds it again or removes it."""
    if isinstance(action, AddFile) and (theirs := numbered.get(canonical_path(action.path, table_root))):
        return with_fields(
            action,
            base_row_id=theirs.base_row_id,
            default_row_commit_version=theirs.default_row_commit_version,
        )
    if isinstance(action, RemoveFile) and (theirs := numbered.get(canonical_path(action.path, table_root))):
        return with_fields(
            action,
            base_row_id=theirs.base_row_id,
            default_row_commit_version=theirs.default_row_commit_version,
        )
    return action


def _not_preserving(info: CommitInfo) -> CommitInfo:
    tags = json_object(info.body).get("tags")
    return with_info(info, tags={**(tags if isinstance(tags, dict) else {}), **_NOT_PRESERVED})


def _with_type_changes_at(action: Action, read_version: int, new_version: int) -> Action:
    """A schema may say in which version the type of a column was widened."""
    if not isinstance(action, Metadata) or '"tableVersion"' not in (action.schema_json or ""):
        return action
    schema = orjson.loads(action.schema_json or "{}")
    changes = [change for change in _type_changes(schema) if change.get("tableVersion", 0) > read_version]
    for change in changes:
        change["tableVersion"] = new_version
    return with_fields(action, schema_json=orjson.dumps(schema).decode()) if changes else action


def _type_changes(node: Any) -> Iterable[dict[str, Any]]:
    if isinstance(node, dict):
        yield from node.get("delta.typeChanges") or ()
        for inner in node.values():
            yield from _type_changes(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _type_changes(inner)
