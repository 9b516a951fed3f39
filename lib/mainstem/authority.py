"""Who leads a table: its log, or the catalog. Each change is one step, with an entry in the table's history.

The entry's file is written while the head is locked and before the database commits: if the log has moved on, nothing
happens; if this process dies in between, the log has one commit more, as if any engine had written it. Then a table
whose log leads is followed, and one that the catalog leads is resolved, and the step can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mainstem import observe
from mainstem.chronicle import properties
from mainstem.committing import Committed
from mainstem.conflicts.features import IN_COMMIT_TIMESTAMP, with_writer_features, without_writer_features
from mainstem.deltalog.edit import with_properties
from mainstem.deltalog.history import ENABLED, ENABLED_AT, ENABLED_FROM, in_commit_timestamps_from
from mainstem.deltalog.location import open_location
from mainstem.deltalog.protocol import FENCE, writer_features
from mainstem.errors import ConflictError, ForeignCommit, UsageError
from mainstem.follower import follow
from mainstem.model import FIRST_SEQ, Action, Metadata, Protocol
from mainstem.places import refuse_second_name
from mainstem.proposal import TableState
from mainstem.publish import publish, put_commit
from mainstem.ratified import Alongside, Ratified
from mainstem.store import Queries, Store
from mainstem.tablestate import table_state
from mainstem.transaction import Transaction
from mainstem.validate import require_agreement

Leader = Literal["log", "catalog"]
CUTOVER, ROLLBACK = "MAINSTEM CUTOVER", "MAINSTEM ROLLBACK"
# A table that others commit to all the time may move on between publishing everything and the step.
_ATTEMPTS = 10


def cutover(
    store: Store,
    name: str,
    *,
    fence: bool = False,
    in_commit_timestamps: bool = True,
    committer: str | None = None,
) -> Committed:
    """Let the catalog lead, from the next version on. Only when it has what the log has, no more and no less.

    In-commit timestamps are turned on, so that the catalog's time is the time of every version for every engine. With
    `fence`, outside writers are refused by their own check of the protocol, while readers go on. Both concern writers
    alone: whoever could read the table before can read it afterwards.
    """
    with observe.span("cutover", table=name):
        _require_leader(store, name, "log")
        follow(store, name)
        state = table_state(store, name)
        refuse_second_name(store.rows("tables_all"), state.location, name=name, leads=True)
        require_agreement(store, name)
        metadata, protocol = _described(state)
        features = [FENCE] if fence else []
        after = metadata
        if in_commit_timestamps and properties(metadata).get(ENABLED, "false").lower() != "true":
            features.append(IN_COMMIT_TIMESTAMP)
            after = with_properties(metadata, {ENABLED: "true"})  # since when is told where the version is known
        changed = _changed(state, with_writer_features(protocol, features), after)
        return _step(store, state, changed, CUTOVER, leader="log", then="catalog", by=committer, said={"fence": fence})


def rollback(store: Store, name: str, *, committer: str | None = None) -> Committed:
    """Let the log lead again: everything is published first, and what the cut-over put up is taken down.

    That is the fence, and in-commit timestamps if it was the cut-over that turned them on: whoever could write the
    table before can write it again. A fence that stands where the log leads already is taken down, too.
    """
    with observe.span("rollback", table=name):
        if store.table(name)["authority"] == "log":
            follow(store, name)
            state = table_state(store, name)
            if FENCE not in writer_features(_described(state)[1]):
                _require_leader(store, name, "catalog")
            return _take_down(store, state, "log", committer)
        for attempt in range(1, _ATTEMPTS + 1):
            publish(store, name)
            state = table_state(store, name)
            try:
                return _take_down(store, state, "catalog", committer)
            except ConflictError:
                if attempt == _ATTEMPTS or store.table(name)["current_version"] == state.read_version:
                    raise
    raise AssertionError("unreachable")


def _take_down(store: Store, state: TableState, leader: Leader, committer: str | None) -> Committed:
    metadata, protocol = _described(state)
    gone, after = [FENCE], metadata
    since = in_commit_timestamps_from(properties(metadata))
    if since is not None and _operation(store, state, since) == CUTOVER:
        gone.append(IN_COMMIT_TIMESTAMP)
        after = with_properties(metadata, {ENABLED: None, ENABLED_FROM: None, ENABLED_AT: None})
    changed = _changed(state, without_writer_features(protocol, gone), after)
    return _step(store, state, changed, ROLLBACK, leader=leader, then="log", by=committer)


def _operation(store: Store, state: TableState, version: int) -> str | None:
    found = store.rows("versions_between", table_id=state.table_id, first=version, last=version)
    return found[0]["operation"] if found else None


def _require_leader(store: Store, name: str, leader: Leader) -> None:
    if store.table(name)["authority"] != leader:
        now = f"the log of {name} leads" if leader == "catalog" else f"the catalog leads {name}"
        raise UsageError(f"{now} already.", hint="Nothing was changed.", table=name)


def _described(state: TableState) -> tuple[Metadata, Protocol]:
    assert state.metadata is not None
    assert state.protocol is not None
    return state.metadata, state.protocol


def _changed(state: TableState, protocol: Protocol, metadata: Metadata) -> list[Action]:
    """The actions that make the table's protocol and metadata these."""
    both: list[tuple[Action, Action | None]] = [(protocol, state.protocol), (metadata, state.metadata)]
    changed = [after for after, before in both if after is not before]
    return [replace(action, seq=FIRST_SEQ + place) for place, action in enumerate(changed)]


def _step(
    store: Store,
    state: TableState,
    actions: Sequence[Action],
    operation: str,
    *,
    leader: Leader,
    then: Leader,
    by: str | None,
    said: Mapping[str, object] | None = None,
) -> Committed:
    transaction = Transaction(store, committer=by)
    transaction.create(state).propose(actions, operation=operation, operation_params=said or {})
    return transaction.commit(authority=leader, alongside=_put_and_lead(state, then))[state.name]


def _put_and_lead(state: TableState, leader: Leader) -> Alongside:
    def alongside(queries: Queries, done: Sequence[Ratified]) -> Sequence[Ratified]:
        [ratified] = done
        [entry] = ratified.entries
        if entry.version != state.read_version + 1 or ratified.published_version != state.read_version:
            raise ForeignCommit(
                f"{state.name} moved on to version {entry.version - 1} meanwhile.",
                hint="Nothing was changed. Do it again.",
                table=state.name,
            )
        if put_commit(open_location(state.location), entry.version, entry.data) == "foreign":
            raise ForeignCommit(
                f"an outside engine has just written version {entry.version} of {state.name} into its log.",
                hint="Nothing was changed. Do it again"
                + (f", after: mainstem resolve {state.name}" if leader == "log" else "."),
                table=state.name,
                version=entry.version,
            )
        queries.change("mirror_complete", table_id=state.table_id, first=entry.version, last=entry.version)
        queries.change("head_published", table_id=state.table_id, version=entry.version)
        queries.change("table_authority", table_id=state.table_id, authority=leader)
        return [replace(ratified, published_version=entry.version)]

    return alongside
