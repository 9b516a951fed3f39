"""The difference between the catalog's head and a later checkpoint, where the commits in between are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from mainstem.deltalog.jsontext import decoded
from mainstem.model import (
    FIRST_SEQ,
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    OtherAction,
    Protocol,
    RemoveFile,
    Txn,
)
from mainstem.rows import ADDS, DOMAINS, METADATA, PROTOCOL, TXNS
from mainstem.store import Queries
from mainstem.versions import close_spans

_PLAIN = ("size_bytes", "modification_time", "base_row_id", "default_row_commit_version", "clustering_provider")
_OBJECTS = ("partition_values", "tags", "deletion_vector")


def difference(queries: Queries, table_id: str, version: int, state: Iterable[Action]) -> list[Action]:
    """The actions that turn the table's head into `state`, the contents of a checkpoint at `version`.

    Files that are in both are left alone. What the checkpoint no longer has becomes a remove, with its tombstone where
    there is one. Application transactions that Delta has expired end here without an action: there is none for that.
    """
    state = list(state)
    found = [
        *(action for action in state if isinstance(action, CommitInfo)),
        *_if_changed(queries, table_id, version, state),
        *_files(queries, table_id, state),
        *_domains(queries, table_id, state),
        *_transactions(queries, table_id, version, state),
        *(action for action in state if isinstance(action, OtherAction)),
    ]
    numbered: list[Action] = []
    seq = FIRST_SEQ
    for action in found:
        if isinstance(action, CommitInfo):
            numbered.append(action)
        else:
            numbered.append(replace(action, seq=seq))
            seq += 1
    return numbered


def _if_changed(queries: Queries, table_id: str, version: int, state: list[Action]) -> Iterator[Action]:
    for kind, shape, query in ((Protocol, PROTOCOL, "protocol_at"), (Metadata, METADATA, "metadata_at")):
        row = queries.row(query, table_id=table_id, version=version)
        ours = shape.action(row) if row is not None else None
        assert ours is None or isinstance(ours, kind)
        for action in state:
            # What `extra` tells is how a commit spelled it: a checkpoint has no order of keys.
            if isinstance(action, kind) and (
                ours is None or replace(action, seq=0, extra=None) != replace(ours, seq=0, extra=None)
            ):
                yield action


def _files(queries: Queries, table_id: str, state: list[Action]) -> Iterator[Action]:
    ours: dict[bytes, AddFile] = {}
    for row in queries.rows("live_adds", table_id=table_id):
        add = ADDS.action(row)
        assert isinstance(add, AddFile)
        ours[add.file_key] = add
    tombstones = {action.file_key: action for action in state if isinstance(action, RemoveFile)}
    kept: set[bytes] = set()
    for action in state:
        if isinstance(action, AddFile):
            kept.add(action.file_key)
            known = ours.get(action.file_key)
            if known is None or not _says_the_same(known, action):
                yield action
    for key, add in ours.items():
        if key not in kept:
            yield tombstones.pop(key) if key in tombstones else _gone(add)
    # Removed between our head and the checkpoint without ever having been seen: a published checkpoint needs them.
    for key in tombstones.keys() - {row["file_key"] for row in queries.rows("removed_keys", table_id=table_id)}:
        yield tombstones[key]


def _says_the_same(ours: AddFile, theirs: AddFile) -> bool:
    """Whether a checkpoint's add is the one that we have, which it spells in its own way.

    Checkpoints write `dataChange` as false, have no order of keys, and may leave statistics out: ours stay valid.
    """
    if any(getattr(ours, name) != getattr(theirs, name) for name in _PLAIN):
        return False
    if theirs.stats is not None and not _same_json(ours.stats, theirs.stats):
        return False
    return all(_same_json(getattr(ours, name) or "{}", getattr(theirs, name) or "{}") for name in _OBJECTS)


def _same_json(ours: str | None, theirs: str | None) -> bool:
    if ours == theirs:
        return True
    return ours is not None and theirs is not None and _value(ours) == _value(theirs)


def _value(text: str) -> Any:
    try:
        return decoded(text)
    except ValueError:  # statistics may be any text
        return text


def _gone(add: AddFile) -> RemoveFile:
    """A remove for a file that is no longer there, and whose tombstone has expired: when it went is not known."""
    return RemoveFile(
        seq=add.seq,
        path=add.path,
        path_bucket=add.path_bucket,
        file_key=add.file_key,
        dv_id=add.dv_id,
        deletion_timestamp=None,
        data_change=True,
        deletion_vector=add.deletion_vector,
    )


def _domains(queries: Queries, table_id: str, state: list[Action]) -> Iterator[Action]:
    theirs = {action.app_key: action for action in state if isinstance(action, DomainMetadata)}
    ours: dict[bytes, DomainMetadata] = {}
    for row in queries.rows("live_domains", table_id=table_id):
        domain = DOMAINS.action(row)
        assert isinstance(domain, DomainMetadata)
        ours[domain.app_key] = domain
    for key, action in theirs.items():
        known = ours.get(key)
        if known is None or (known.configuration, known.removed) != (action.configuration, action.removed):
            yield action
    yield from (replace(known, removed=True) for key, known in ours.items() if key not in theirs and not known.removed)


def _transactions(queries: Queries, table_id: str, version: int, state: list[Action]) -> Iterator[Action]:
    theirs = {action.app_key: action for action in state if isinstance(action, Txn)}
    ours: dict[bytes, Txn] = {}
    for row in queries.rows("live_txns", table_id=table_id):
        txn = TXNS.action(row)
        assert isinstance(txn, Txn)
        ours[txn.app_key] = txn
    close_spans(queries, TXNS, table_id, version, ours.keys() - theirs.keys())
    for key, action in theirs.items():
        known = ours.get(key)
        if known is None or (known.txn_version, known.last_updated) != (action.txn_version, action.last_updated):
            yield action
