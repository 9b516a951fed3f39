"""Changes of any number of tables that happen together or not at all."""

from __future__ import annotations

import getpass
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import orjson

from mainstem.committing import Committed, commit
from mainstem.conflicts import Reads, read_predicate
from mainstem.definition import require_sound
from mainstem.deltalog.objects import actions_of
from mainstem.errors import UsageError
from mainstem.identity import app_key, canonical_path
from mainstem.model import FIRST_SEQ, Action, Metadata, Protocol, RemoveFile, Txn
from mainstem.proposal import Commit, Proposal, TableState
from mainstem.provenance import require_readable_info, usable
from mainstem.ratified import Alongside, nothing_else
from mainstem.store import Store
from mainstem.tablestate import table_state
from mainstem.versions import to_millis

_WHOLE = ("true", "1 = 1", "1=1")


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
        require_readable_info(parsed, table=self.name)
        require_sound(parsed, table=self.name, metadata=self.current_metadata, protocol=self.current_protocol)
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
        predicate = read_predicate(read_where, metadata, in_utc=self._transaction.in_utc)
        return Reads(predicates=(predicate,), app_ids=apps)

    def was_read_whole(self) -> None:
        """Note that what is staged here stands or falls with every row of the table as it was read."""
        self.commits = [
            replace(each, reads=replace(each.reads, whole_table=True, every_append=True)) for each in self.commits
        ]

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

    @property
    def current_protocol(self) -> Protocol | None:
        """The table's protocol with what is staged so far."""
        staged = [action for commit in self.commits for action in commit.actions if isinstance(action, Protocol)]
        return staged[-1] if staged else self.state.protocol


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
        self.token = _token(txn_id)
        self.info = {
            **usable(_standing_info(store)),
            **usable(info or {}),
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

    @property
    def in_utc(self) -> bool:
        """Whether a moment in a predicate that names no zone is in UTC, as it is without a session."""
        return True

    def state_at(self, name: str, version: int) -> TableState:
        """A table as it was at a version."""
        return table_state(self.store, name, version=version)

    def with_application(self, actions: Sequence[Action], *, first: bool) -> Sequence[Action]:
        """The actions with the transaction's own application transaction, in the first commit of each table."""
        if self._application is None or not first:
            return actions
        last = max((action.seq for action in actions), default=FIRST_SEQ - 1)
        app_id, number = self._application
        # Without a time, a table that forgets old applications takes this one for one of them.
        now_ms = to_millis(datetime.now(UTC))
        return [*actions, Txn(last + 1, app_id, app_key(app_id), number, now_ms)]

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
            self.committed = commit(
                self.store, proposals, token=self.token, authority=authority, alongside=alongside,
                only_read=self.only_read(),
            )  # fmt: skip
        return self.committed

    def only_read(self) -> Sequence[TableState]:
        """Tables to which nothing is committed here, and nobody else may commit while this does."""
        return ()

    def _require_open(self) -> None:
        if self._ended:
            raise UsageError("this transaction has ended.", hint="Begin another one: catalog.transaction().")


def _token(txn_id: str | None) -> str:
    """The token that the caller gives, or a new one. The controls are ours: by one the commits of a token differ."""
    if txn_id and any(unicodedata.category(letter) in ("Cc", "Cs") for letter in txn_id):
        raise UsageError(
            f"the txn_id {txn_id!r} has a control character or half of a surrogate pair.",
            hint="Nothing was written. Give one of printable characters.",
        )
    return txn_id or str(uuid4())


def _application(txn: tuple[str, int]) -> tuple[str, int]:
    app_id, number = txn
    if not app_id or not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63:
        raise UsageError(f"{txn!r} is no application transaction.", hint="Give txn=('application', number).")
    return app_id, number


def _standing_info(store: Store) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(store.engine.settings.commit_info or "{}")
    return found


@lru_cache(maxsize=1)
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
