"""What somebody wants to commit to one table: a value, checked before any database is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, Self

import orjson

from mainstem.conflicts import Reads
from mainstem.definition import beyond
from mainstem.deltalog.protocol import refuse_unwritable
from mainstem.deltalog.serialize import serialize_commit
from mainstem.errors import ConflictError, UsageError
from mainstem.identity import canonical_path
from mainstem.model import Action, AddFile, CommitInfo, DomainMetadata, Metadata, Protocol, RemoveFile, Txn
from mainstem.partitions import misfit, types_of
from mainstem.store import Row, as_utc

# Before a table's first version.
NO_VERSION = -1
# Of so many actions the text takes 10 ms.
_LARGE = 5000


class Content(NamedTuple):
    """What tells a version from another one that gets its number, when a table is resolved or imported by force."""

    committed_at: datetime
    txn_id: str | None
    content_sha256: str | None

    @classmethod
    def of(cls, row: Row | None) -> Self | None:
        """That of the version whose columns a row has; none, if the version is not there."""
        if row is None or row["committed_at"] is None:
            return None
        return cls(as_utc(row["committed_at"]), row["txn_id"], row["content_sha256"])


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as a proposal has read it. `metadata` and `protocol` are those of `read_version`; a new one has none.

    `content` is the version's, and the commit is a conflict if the number has another one by then. None where nobody
    can have changed it: a new table, or one whose head has been locked since.
    """

    name: str
    table_id: str
    location: str
    root: str
    read_version: int
    metadata: Metadata | None
    protocol: Protocol | None
    content: Content | None = None


def require_same(table: TableState, now: Content | None) -> None:
    """Raise unless the version that was read still has the content by which it was read."""
    if table.content is None or table.content == now:
        return
    raise ConflictError(
        f"{table.name}: version {table.read_version}, which this commit has read, "
        + ("is gone" if now is None else "has another content by now")
        + ": the table was resolved or imported anew meanwhile. Nothing was written.",
        hint="Read the table again and repeat; catalog.run(fn) does both.",
        table=table.name,
        read_version=table.read_version,
    )


@dataclass(frozen=True)
class Commit:
    """One version to be: its actions, what its commitInfo says, and what was read to make it.

    `token` and `group_id` are those of a version that gets another number; a new one has those of its transaction.
    """

    actions: tuple[Action, ...]
    info: Mapping[str, Any]
    reads: Reads = field(default_factory=Reads)
    token: str | None = None
    group_id: str | None = None

    @cached_property
    def body(self) -> bytes:
        """The lines of its commit file after the commitInfo, as long as nothing has to be moved on."""
        begun: Future[bytes] | None = self.__dict__.pop("_begun", None)
        return serialize_commit(self.changes) if begun is None else begun.result()

    def begin(self) -> None:
        """Make the body, so that nobody waits for it while the head is locked; a large one beside all that follows.

        The database takes the rows of a large commit more slowly than they come, which leaves time to make its text.
        """
        if len(self.changes) <= _LARGE:
            _ = self.body
        elif "body" not in self.__dict__ and "_begun" not in self.__dict__:
            beside = ThreadPoolExecutor(1, "mainstem-text")
            self.__dict__["_begun"] = beside.submit(serialize_commit, self.changes)
            beside.shutdown(wait=False)

    @cached_property
    def changes(self) -> tuple[Action, ...]:
        """The actions without commitInfo."""
        return tuple(action for action in self.actions if not isinstance(action, CommitInfo))

    def check(self, table: str, *, root: str, protocol: Protocol, metadata: Metadata) -> None:
        """Raise unless this can be a version of a table that has these after it. What was right is not asked again."""
        if self.__dict__.get("_fits") != (protocol, metadata):
            check(table, self.actions, root=root, protocol=protocol, metadata=metadata)
            self.__dict__["_fits"] = (protocol, metadata)


@dataclass(frozen=True)
class Proposal:
    """Commits to one table, each following the one before, on top of the version that was read.

    Checked when it is made: whatever Delta's protocol forbids raises and names the table and the file.
    """

    table: TableState
    commits: tuple[Commit, ...]

    def __post_init__(self) -> None:
        protocol, metadata = self.table.protocol, self.table.metadata
        for commit in self.commits:
            protocol = _only(commit.actions, Protocol) or protocol
            metadata = _only(commit.actions, Metadata) or metadata
            if protocol is None or metadata is None:
                raise _refused(self.table.name, "its first commit needs a protocol and a metaData action")
            commit.check(self.table.name, root=self.table.root, protocol=protocol, metadata=metadata)

    def prepare(self) -> None:
        """Do what needs no database, so that nobody waits for it while the head is locked."""
        for commit in self.commits:
            commit.begin()

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table's properties after its commits."""
        staged = [_only(commit.actions, Metadata) for commit in self.commits]
        metadata = next((found for found in reversed(staged) if found is not None), self.table.metadata)
        found: dict[str, str] = orjson.loads((metadata and metadata.table_properties) or "{}")
        return found

    @cached_property
    def applications(self) -> dict[bytes, Txn]:
        """How far the applications have come that this proposal speaks for, by their keys."""
        return {action.app_key: action for commit in self.commits for action in commit.actions if type(action) is Txn}


def check(table: str, actions: Sequence[Action], *, root: str, protocol: Protocol, metadata: Metadata) -> None:
    """Raise unless these actions can be one version of a table that has this protocol and metadata after it."""
    refuse_unwritable(protocol, table=table)
    _check_once(table, actions)
    if wrong := beyond(actions, protocol):
        raise _refused(table, wrong)
    adds = [action for action in actions if type(action) is AddFile]
    removes = [action for action in actions if type(action) is RemoveFile]
    _check_files(table, adds, removes, root)
    types = types_of(metadata)
    usual = None  # the files of one partition come together: their values are looked at once
    for add in adds:
        if add.partition_values != usual:
            if wrong := misfit(add.partition_values, types):
                raise _refused(table, f"the file {add.path!r} does not fit: {wrong}", path=add.path)
            usual = add.partition_values
    properties = orjson.loads(metadata.table_properties or "{}")
    if properties.get("delta.appendOnly", "false").lower() == "true":
        gone = next((remove for remove in removes if remove.data_change), None)
        if gone is not None:
            raise _refused(table, f"the table takes appends only, and it removes {gone.path!r}", path=gone.path)


def _check_files(table: str, adds: Sequence[AddFile], removes: Sequence[RemoveFile], root: str) -> None:
    added, removed = {add.file_key: add.path for add in adds}, {remove.file_key: remove.path for remove in removes}
    for named, files, verb in ((added, adds, "adds"), (removed, removes, "removes")):
        if len(named) != len(files):
            twice = named[Counter(file.file_key for file in files).most_common(1)[0][0]]
            raise _refused(table, f"it {verb} the file {twice!r} twice", path=twice)
    if both := added.keys() & removed.keys():
        path = added[min(both)]
        raise _refused(table, f"it adds and removes the file {path!r} with the same deletion vector", path=path)
    # A path may come back with another deletion vector; two live files of one path would count its rows twice. Without
    # a deletion vector the keys above are those of the paths.
    if any(add.dv_id is not None for add in adds):
        [(path, count)] = Counter(canonical_path(add.path, root) for add in adds).most_common(1)
        if count > 1:
            raise _refused(table, f"it adds the path {path!r} twice")


def _check_once(table: str, actions: Iterable[Action]) -> None:
    seen: set[object] = set()
    for action in actions:
        if isinstance(action, Protocol | Metadata):
            key: object = type(action)
        elif isinstance(action, Txn | DomainMetadata):
            key = (type(action), action.app_key)
        else:
            continue
        if key in seen:
            what = type(action).__name__ if not isinstance(action, Txn | DomainMetadata) else "application or domain"
            raise _refused(table, f"it has two actions of one {what}")
        seen.add(key)


def _only(actions: Iterable[Action], kind: type[Any]) -> Any:
    return next((action for action in actions if type(action) is kind), None)


def _refused(table: str, why: str, **details: Any) -> UsageError:
    return UsageError(f"the commit to {table} is refused: {why}.", hint="Nothing was written.", table=table, **details)
