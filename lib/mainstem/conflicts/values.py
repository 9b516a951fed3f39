"""Who wants to commit what, who came before, and what may stand between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import orjson

from mainstem.model import (
    Action,
    AddFile,
    CdcFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
)

Rule = Literal[
    "ProtocolChanged",
    "MetadataChanged",
    "ConcurrentTransaction",
    "ConcurrentAppend",
    "ConcurrentDeleteRead",
    "ConcurrentDeleteDelete",
]
# Whether some row of this file may meet a predicate that was read.
MayMatch = Callable[[AddFile | RemoveFile], bool]

ROW_TRACKING_DOMAIN = "delta.rowTracking"
_LEVEL = "delta.isolationLevel"
# By these names Delta takes a commit for a change of data, whatever its files say.
_CHANGES_DATA = frozenset(
    {
        "CLONE", "CONVERT", "CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT", "DELETE", "MERGE",
        "REPLACE TABLE", "REPLACE TABLE AS SELECT", "RESTORE", "STREAMING UPDATE", "TRUNCATE", "UPDATE", "WRITE",
    }
)  # fmt: skip


class Isolation(Enum):
    """How much a commit must have seen of what came before it. The values are Delta's names."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"

    @classmethod
    def of(cls, properties: Mapping[str, str], actions: Iterable[Action], *, operation: str | None = None) -> Isolation:
        """The level for a commit of these actions: `delta.isolationLevel`, WriteSerializable where it is not set.

        A commit of nothing but files with `dataChange` false (OPTIMIZE) needs no more than snapshot isolation; under
        WriteSerializable only if its operation is none that changes data. `operation` is the commitInfo's unless given.
        A level that is not Delta's is taken for the strictest.
        """
        levels = {level.value.lower(): level for level in (cls.SERIALIZABLE, cls.WRITE_SERIALIZABLE)}
        level = levels.get(properties.get(_LEVEL, cls.WRITE_SERIALIZABLE.value).lower(), cls.SERIALIZABLE)
        actions = tuple(actions)
        if not all(_leaves_data_alone(action) for action in actions):
            return level
        name = operation or _operation_of(actions)
        return level if level is cls.WRITE_SERIALIZABLE and name in _CHANGES_DATA else cls.SNAPSHOT


@dataclass(frozen=True, slots=True)
class Reads:
    """What a proposal has read of the table, as far as its producer knows.

    `paths` are the canonical paths (`identity.canonical_path`) of the files that were read. None says that they are not
    known: then every removed file that a predicate may match counts as read. `predicates` decide at the level of
    partitions, as Delta does; `read_predicate` makes one from SQL. `every_append` says that even a blind append must
    have been seen, whatever the table's isolation level: what was found out holds for the rows that were there.
    """

    whole_table: bool = False
    paths: frozenset[str] | None = None
    predicates: tuple[MayMatch, ...] = ()
    app_ids: frozenset[str] = frozenset()
    every_append: bool = False

    @property
    def depends_on_files(self) -> bool:
        """Whether any file of the table was looked at, or looked for."""
        return self.whole_table or bool(self.paths) or bool(self.predicates)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A commit that wants to follow the winners. `metadata` and `protocol` are those of the version that it read.

    `operation` is what its commitInfo calls it, or will.
    """

    actions: tuple[Action, ...]
    reads: Reads
    isolation: Isolation
    blind_append: bool
    metadata: Metadata
    protocol: Protocol
    operation: str | None = None

    @classmethod
    def of(
        cls,
        actions: Iterable[Action],
        *,
        reads: Reads,
        metadata: Metadata,
        protocol: Protocol,
        operation: str | None = None,
    ) -> Proposed:
        """A proposal whose isolation and blindness follow from its actions, its reads and the table's properties."""
        actions = tuple(actions)
        operation = operation or _operation_of(actions)
        changed = next((action for action in actions if isinstance(action, Metadata)), metadata)
        isolation = Isolation.of(properties_of(changed), actions, operation=operation)
        return cls(actions, reads, isolation, is_blind_append(actions, reads=reads), metadata, protocol, operation)

    @property
    def heeds_adds(self) -> bool:
        """Whether the files that a winner added can matter. If not, winners may come without them."""
        return not self.blind_append

    @property
    def heeds_removes(self) -> bool:
        """Whether the files that a winner removed can matter. If not, winners may come without them."""
        return self.reads.depends_on_files or any(map(_touches_files, self.actions))

    @property
    def files_added_again(self) -> Iterable[AddFile]:
        """The adds that may be of files which the table has already: with other metadata, or a deletion vector."""
        return (action for action in self.actions if isinstance(action, AddFile) and _touches_files(action))


@dataclass(frozen=True, slots=True)
class Winner:
    """A version that was committed after the proposal read the table. `actions` have its commitInfo among them.

    `blind_append` is what its commitInfo says (`said_blind_append`); a commit that says nothing counts as none.
    """

    version: int
    operation: str | None
    committer: str | None
    blind_append: bool
    actions: tuple[Action, ...]

    @classmethod
    def of(cls, version: int, actions: Iterable[Action], *, committer: str | None = None) -> Winner:
        """A winner as its own commitInfo describes it."""
        actions = tuple(actions)
        info = info_of(actions)
        if info is None:
            return cls(version, None, committer, False, actions)
        named = committer or info.user_name or info.engine_info
        return cls(version, info.operation, named, bool(said_blind_append(info)), actions)


@dataclass(frozen=True, slots=True)
class Conflict:
    """One rule that forbids the proposal to follow one winner; `files` are the first few that say why."""

    rule: Rule
    version: int
    operation: str | None
    committer: str | None
    files: tuple[str, ...]
    explanation: str


def is_blind_append(actions: Iterable[Action], *, reads: Reads) -> bool:
    """Whether a proposal adds files without having read any; what its commitInfo denies, it is not."""
    if reads.depends_on_files:
        return False
    actions = tuple(actions)
    kinds = set(map(type, actions))  # a large commit is looked through once, and not action by action
    if kinds & {RemoveFile, CdcFile}:
        return False
    return CommitInfo not in kinds or said_blind_append(info_of(actions)) is not False


def said_blind_append(info: CommitInfo | None) -> bool | None:
    """What a commitInfo says about it; None if it says nothing."""
    said = None if info is None else json_object(info.body).get("isBlindAppend")
    return said if isinstance(said, bool) else None


def info_of(actions: Iterable[Action]) -> CommitInfo | None:
    """The commitInfo among the actions."""
    return next((action for action in actions if isinstance(action, CommitInfo)), None)


def properties_of(metadata: Metadata) -> dict[str, str]:
    """The table properties that a metaData sets."""
    return json_object(metadata.table_properties)


def is_true(property_value: str | None) -> bool:
    """Whether a table property is on; one that is not set is not."""
    return (property_value or "").lower() == "true"


def json_object(text: str | None) -> dict[str, Any]:
    """The object that a JSON text holds; an empty one if it holds none."""
    try:
        found = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _touches_files(action: Action) -> bool:
    if isinstance(action, AddFile):
        return not action.data_change or action.dv_id is not None
    return isinstance(action, RemoveFile)


def _leaves_data_alone(action: Action) -> bool:
    if isinstance(action, AddFile | RemoveFile | CdcFile):
        return not action.data_change
    if isinstance(action, DomainMetadata):
        return action.domain == ROW_TRACKING_DOMAIN
    return isinstance(action, CommitInfo)


def _operation_of(actions: Iterable[Action]) -> str | None:
    info = info_of(actions)
    return info.operation if info else None
