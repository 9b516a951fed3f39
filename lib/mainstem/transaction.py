"""Changes of any number of tables that happen together or not at all."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import orjson

from mainstem import observe
from mainstem.checkpoint import keep_up
from mainstem.conflicts import Reads, read_predicate
from mainstem.deltalog.files import has_log
from mainstem.deltalog.location import open_location
from mainstem.deltalog.objects import actions_of
from mainstem.errors import CommitUnknown, MainstemError, TableNotFound, UsageError, VersionNotFound
from mainstem.identity import app_key, canonical_path
from mainstem.model import FIRST_SEQ, Action, Metadata, Protocol, RemoveFile, Txn
from mainstem.naming import require_name
from mainstem.proposal import NO_VERSION, Commit, Proposal, TableState
from mainstem.publish import Publisher, Waiting, publish
from mainstem.ratify import Alongside, Ratified, Terms, nothing_else, ratify
from mainstem.rows import METADATA, PROTOCOL
from mainstem.snapshot import keep_image
from mainstem.store import Store

_IMAGE_EVERY = 50  # versions: whether a new image pays is a question that costs a moment itself
_DELTAS_OWN = frozenset(
    {"version", "timestamp", "inCommitTimestamp", "userName", "operation", "operationParameters", "job", "notebook",
     "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics", "tags", "engineInfo", "txnId"}
)  # fmt: skip
_DELTAS_TEXTS = frozenset({"userMetadata", "userId", "clusterId"})
_WHOLE = ("true", "1 = 1", "1=1")


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit to one table became.

    `repeated` says that an earlier call with the same token or application transaction had done it. `published` says
    that the log has it; otherwise `publish_error` says why not yet, and `publish` brings it there.
    """

    table: str
    version: int
    committed_at: datetime
    txn_id: str
    group_id: str | None
    attempts: int
    repeated: bool
    published: bool
    publish_error: str | None = None
    changed: bool = True  # False where there was nothing to do: no version was made


class StagedTable:
    """One table inside of a transaction: what is staged here is seen by nobody until the transaction commits."""

    def __init__(self, transaction: Transaction, state: TableState) -> None:
        self._transaction = transaction
        self.state = state
        self.commits: list[Commit] = []

    @property
    def name(self) -> str:
        """The table's name in the catalog."""
        return self.state.name

    def stage(
        self,
        actions: Sequence[Mapping[str, Any]],
        *,
        operation: str,
        operation_params: Mapping[str, Any] | None = None,
        read_version: int | None = None,
        read_where: str | None = None,
    ) -> Self:
        """Propose ready actions, as Delta's JSON objects, to be the table's next version.

        `read_version` is the version that they were made from, the table's head at its first use if not given.
        `read_where` says what was read of it to make them: a predicate, or `TRUE` for all of it. Files that they
        remove were read in any case. Without either they are an append that nothing can conflict with but a change of
        the table itself.
        """
        if read_version is not None and read_version != self.state.read_version:
            if self.commits:
                raise UsageError(
                    f"this transaction has read {self.name} at version {self.state.read_version}, not {read_version}.",
                    hint="Nothing was written. One transaction reads one version of a table.",
                )
            self.state = self._transaction.state_at(self.name, read_version)
        parsed = actions_of(actions, table=self.name, table_root=self.state.root)
        self.propose(parsed, operation=operation, operation_params=operation_params, read_where=read_where)
        return self

    def propose(
        self,
        actions: Sequence[Action],
        *,
        operation: str,
        operation_params: Mapping[str, Any] | None = None,
        read_where: str | None = None,
        reads: Reads | None = None,
    ) -> None:
        """The same for actions that are values already, in the order of their `seq`."""
        taken = self._transaction.with_application(actions, first=not self.commits)
        known = self._reads(taken, read_where) if reads is None else reads
        info = {"operation": operation, "operationParameters": dict(operation_params or {})}
        commit = Commit(tuple(taken), {**self._transaction.info, **info}, known)
        Proposal(self.state, (*self.commits, commit))  # refuses what cannot be committed while the caller looks on
        self.commits.append(commit)

    def _reads(self, actions: Sequence[Action], read_where: str | None) -> Reads:
        root = self.state.root
        removed = frozenset(canonical_path(action.path, root) for action in actions if isinstance(action, RemoveFile))
        apps = frozenset(action.app_id for action in actions if isinstance(action, Txn))
        if read_where is None:
            return Reads(paths=removed, app_ids=apps)
        if read_where.strip().lower() in _WHOLE:
            return Reads(whole_table=True, paths=removed, app_ids=apps)
        metadata = self.current_metadata
        if metadata is None:
            raise UsageError(f"{self.name} is new: nothing of it can have been read.", hint="Leave read_where out.")
        return Reads(predicates=(read_predicate(read_where, metadata),), app_ids=apps)

    def unchanged(self) -> Committed:
        """What a change became that had nothing to do."""
        at = datetime.now(UTC)
        token = self._transaction.token
        return Committed(self.name, self.state.read_version, at, token, None, 0, False, True, changed=False)

    @property
    def current_metadata(self) -> Metadata | None:
        """The table's metadata with what is staged so far."""
        staged = [action for commit in self.commits for action in commit.actions if isinstance(action, Metadata)]
        return staged[-1] if staged else self.state.metadata


class Transaction:
    """Changes of tables, staged one by one and committed together: all heads move, or none.

    Leaving the `with` block commits; an exception in it, or `rollback()`, leaves nothing behind. May be used once.
    """

    def __init__(
        self,
        store: Store,
        *,
        committer: str | None = None,
        info: Mapping[str, Any] | None = None,
        txn: tuple[str, int] | None = None,
        txn_id: str | None = None,
    ) -> None:
        self.store = store
        self.token = txn_id or str(uuid4())
        self.info = {
            **_usable(_standing_info(store)),
            **_usable(info or {}),
            "userName": committer or _user(),
            "engineInfo": f"Mainstem/{_own_version()}",
        }
        self.committed: dict[str, Committed] = {}
        self._application = None if txn is None else _application(txn)
        self._tables: dict[str, StagedTable] = {}
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.rollback()
        elif not self._ended:
            self.commit()

    def table(self, name: str) -> StagedTable:
        """The table as this transaction changes it. It is read at its head, once, when it is first named."""
        self._require_open()
        if name not in self._tables:
            self._tables[name] = self.staged(table_state(self.store, name))
        return self._tables[name]

    def create(self, state: TableState) -> StagedTable:
        """A table in a state that the caller knows: one that does not exist yet, or one that was read before."""
        self._require_open()
        if state.name in self._tables:
            raise UsageError(f"this transaction has a table {state.name} already.", hint="Nothing was written.")
        self._tables[state.name] = self.staged(state)
        return self._tables[state.name]

    def staged(self, state: TableState) -> StagedTable:
        """How this transaction stages changes of one table."""
        return StagedTable(self, state)

    def state_at(self, name: str, version: int) -> TableState:
        """A table as it was at a version."""
        return table_state(self.store, name, version=version)

    def with_application(self, actions: Sequence[Action], *, first: bool) -> Sequence[Action]:
        """The actions with the transaction's own application transaction, in the first commit of each table."""
        if self._application is None or not first:
            return actions
        last = max((action.seq for action in actions), default=FIRST_SEQ - 1)
        app_id, number = self._application
        return [*actions, Txn(last + 1, app_id, app_key(app_id), number)]

    def rollback(self) -> None:
        """Forget everything that was staged."""
        self._ended = True

    def commit(self, *, authority: str = "catalog", alongside: Alongside = nothing_else) -> dict[str, Committed]:
        """Ratify everything that was staged, then publish it. What each table's commit became, by its name.

        `authority` is who must lead every table; `alongside` runs in the same database transaction, at its end.
        """
        self._require_open()
        self._ended = True
        proposals = [Proposal(each.state, tuple(each.commits)) for each in self._tables.values() if each.commits]
        if proposals:
            self.committed = commit(self.store, proposals, token=self.token, authority=authority, alongside=alongside)
        return self.committed

    def _require_open(self) -> None:
        if self._ended:
            raise UsageError("this transaction has ended.", hint="Begin another one: catalog.transaction().")


def commit(
    store: Store,
    proposals: Sequence[Proposal],
    *,
    token: str,
    authority: str = "catalog",
    alongside: Alongside = nothing_else,
) -> dict[str, Committed]:
    """Ratify proposals as one step and publish them, as the settings say. A lost connection is looked into.

    The database decides by the token: however often this is repeated, it happens once.
    """
    settings = store.engine.settings
    terms = Terms(
        token=token,
        group_id=str(uuid4()) if len(proposals) > 1 else None,
        authority=authority,
        most_unpublished=settings.max_unpublished or None,
        publishing=settings.publish_on_commit,
        alongside=alongside,
    )
    for proposal in proposals:
        proposal.prepare()
    names = ",".join(each.table.name for each in proposals)
    with observe.span("commit", tables=names), observe.timed("commit_latency_ms", tables=len(proposals)):
        done, attempts = _ratified(store, proposals, terms)
    for each in done:
        if not each.repeated:
            observe.count("versions_committed_total", len(each.entries), table=each.name)
    committed = {each.name: _published(store, each, terms, attempts) for each in done}
    for each, proposal in zip(done, proposals, strict=True):
        first, last = each.entries[0].version, each.entries[-1].version
        # Where a log leads after its table was handed over, it is kept up by others.
        if committed[each.name].published and each.published_version < first and not each.repeated:
            keep_up(store, each.name, first=first, last=last, properties=proposal.properties)
    for each in done:
        if any(entry.version % _IMAGE_EVERY == 0 for entry in each.entries):
            keep_image(store, each.name, each.table_id)
    return committed


def _ratified(store: Store, proposals: Sequence[Proposal], terms: Terms) -> tuple[list[Ratified], int]:
    most = max(1, store.engine.settings.reconnect_attempts)
    for attempt in range(1, most + 1):
        try:
            with store.writing() as queries:
                return ratify(queries, proposals, terms), attempt
        except CommitUnknown:
            # Ratifying again asks for the token first, behind the lock that the lost transaction held: if it took
            # effect, this finds it; if not, this does it.
            if attempt == most:
                raise
            observe.event("commit.unknown", level=30, token=terms.token, attempt=attempt)
    raise AssertionError("unreachable")


def _published(store: Store, done: Ratified, terms: Terms, attempts: int) -> Committed:
    last = done.entries[-1]
    error: str | None = None
    reached = done.published_version >= last.version
    if terms.publishing and not reached:
        try:
            _publish(store, done)
            reached = True
        except MainstemError as failure:
            # The commit is durable; that the log does not have it yet is no reason to report it as failed.
            error = str(failure)
    return Committed(
        done.name, last.version, last.committed_at, terms.token, terms.group_id, attempts, done.repeated, reached, error
    )


def _publish(store: Store, done: Ratified) -> None:
    first = done.entries[0]
    if done.repeated or done.published_version != first.version - 1:
        publish(store, done.name)
        return
    row = {"name": done.name, "table_id": done.table_id, "location": done.location}
    waiting = [Waiting(each.version, each.committed_at, partial(bytes, each.data)) for each in done.entries]
    Publisher(store, row).publish(waiting, begun=True)


def table_state(store: Store, name: str, *, version: int | None = None) -> TableState:
    """A table as a proposal reads it: at its head, or at an older version that is still readable."""
    row = store.row("table_to_change", name=name)
    if row is None:
        raise TableNotFound(f"the catalog has no table {name}.", hint="See: mainstem tables", table=name)
    metadata, protocol = METADATA.prefixed(row, "m_"), PROTOCOL.prefixed(row, "p_")
    head = int(row["current_version"])
    at = head if version is None else version
    if not row["min_readable_version"] <= at <= head:
        raise VersionNotFound(
            f"the table {name} has no version {at}.",
            hint=f"It has versions {row['min_readable_version']} to {head}.",
            table=name,
        )
    if at != head:
        bounds = {"table_id": row["table_id"], "version": at}
        with store.reading() as queries:
            metadata_row, protocol_row = queries.row("metadata_at", **bounds), queries.row("protocol_at", **bounds)
        assert metadata_row is not None
        assert protocol_row is not None
        metadata, protocol = METADATA.action(metadata_row), PROTOCOL.action(protocol_row)
    assert isinstance(metadata, Metadata)
    assert isinstance(protocol, Protocol)
    return TableState(name, row["table_id"], row["location"], root_of(row["location"]), at, metadata, protocol)


def root_of(location: str) -> str:
    """A table's location, as the catalog has it, as the URI by which paths are compared."""
    return Path(location).as_uri() if location.startswith("/") else location


def new_table(store: Store, name: str, location: str) -> TableState:
    """A table that shall be: a free name, and a folder or URI without a log. The folder is made if it is not there."""
    require_name(name)
    if (known := store.row("table_by_name", name=name)) is not None:
        raise UsageError(
            f"the catalog already has a table {name}, at {known['location']}.", hint="Nothing was written.", table=name
        )
    if "://" not in location and not location.startswith("file:"):
        Path(location).mkdir(parents=True, exist_ok=True)
    place = open_location(location)
    if has_log(place):
        raise UsageError(
            f"{place.uri} has a _delta_log already: it is a table.",
            hint=f"Bring it in by: mainstem import {location} --name {name}",
            table=name,
        )
    stored = str(place.local) if place.local is not None else place.uri
    return TableState(name, str(uuid4()), stored, place.uri, NO_VERSION, None, None)


def _application(txn: tuple[str, int]) -> tuple[str, int]:
    app_id, number = txn
    if not app_id or not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63:
        raise UsageError(f"{txn!r} is no application transaction.", hint="Give txn=('application', number).")
    return app_id, number


def _standing_info(store: Store) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(store.engine.settings.commit_info or "{}")
    return found


def _usable(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a user adds to commitInfo, unless Delta gives the name a meaning: a value of another type than it expects
    makes the whole log unreadable to Delta, and one of the right type says something that is not so."""
    for name, value in info.items():
        if name in _DELTAS_OWN or (name in _DELTAS_TEXTS and not isinstance(value, str)):
            raise UsageError(
                f"info names {name!r}, which is a field of Delta's own.",
                hint="Nothing was written. Choose another name, or give a text as userMetadata.",
            )
    return info


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


@lru_cache(maxsize=1)
def _own_version() -> str:
    try:
        return version("mainstem")
    except PackageNotFoundError:
        return "unknown"
