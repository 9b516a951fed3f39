"""The commitInfo of a commit, and in-commit timestamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.conflicts.values import info_of, is_true, properties_of
from mainstem.deltalog.edit import with_info, with_properties
from mainstem.deltalog.history import ENABLED, ENABLED_AT, ENABLED_FROM
from mainstem.model import Action, CommitInfo, Metadata


def with_commit_info(
    actions: Sequence[Action],
    *,
    fields: Mapping[str, Any],
    now_ms: int,
    previous_ms: int | None,
    version: int,
    metadata_before: Metadata | None,
    metadata: Metadata,
) -> tuple[Action, ...]:
    """The actions with one commitInfo, first. Its `fields` win over those that a commitInfo among the actions has.

    Its timestamp is `now_ms`. Where `metadata` (after the commit) has in-commit timestamps on, it gets one of those:
    `now_ms`, but later than `previous_ms`, the time of the version before. Where this commit turns them on and
    `metadata_before` (None if there was no table) had them off, its metaData tells since which version and timestamp.
    """
    on = is_true(properties_of(metadata).get(ENABLED))
    moment = now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
    own = {"inCommitTimestamp": moment if on else None, "timestamp": now_ms}
    info = with_info(info_of(actions), **{**own, **fields})
    rest = [action for action in actions if not isinstance(action, CommitInfo)]
    if on and metadata_before is not None:
        since = _enabled_since(metadata_before, version=version, moment=moment)
        rest = [_told(action, since) if isinstance(action, Metadata) else action for action in rest]
    return (info, *rest)


def _enabled_since(before: Metadata, *, version: int, moment: int) -> dict[str, str]:
    known = properties_of(before)
    if not is_true(known.get(ENABLED)):
        return {ENABLED_FROM: str(version), ENABLED_AT: str(moment)}
    # They were on before: a metaData that says nothing about it must not make the table forget since when.
    return {key: known[key] for key in (ENABLED_FROM, ENABLED_AT) if key in known}


def _told(metadata: Metadata, since: Mapping[str, str]) -> Metadata:
    return metadata if since.items() <= properties_of(metadata).items() else with_properties(metadata, since)
