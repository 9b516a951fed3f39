"""Commits from proposal to log: ratified as one step, then published as the settings say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import uuid4

from mainstem import observe
from mainstem.checkpoint import keep_up
from mainstem.engines import EngineError
from mainstem.errors import CommitUnknown, EngineBusy, told
from mainstem.proposal import Proposal, TableState
from mainstem.publish import Publisher, Waiting, write_waiting
from mainstem.ratified import Alongside, NameTaken, Ratified, Terms, nothing_else
from mainstem.ratify import opening, ratify
from mainstem.snapshot import keep_image
from mainstem.store import Store

_IMAGE_EVERY = 50  # versions: whether a new image pays is a question that costs a moment itself


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit to one table became.

    `repeated` says that an earlier call with the same token or application transaction had done it. `published` says
    that the log has it; otherwise `publish_error` says why not yet, and `publish` brings it there. `txn_id` and
    `group_id` are those of the call that did it. Of a version that has expired since they are not known: `committed_at`
    is that of the oldest one that is left, `txn_id` this call's.
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


def commit(
    store: Store,
    proposals: Sequence[Proposal],
    *,
    token: str,
    authority: str = "catalog",
    alongside: Alongside = nothing_else,
    only_read: Sequence[TableState] = (),
) -> dict[str, Committed]:
    """Ratify proposals as one step and publish them, as the settings say. A lost connection is looked into.

    The database decides by the token: however often this is repeated, it happens once. Nobody commits to the tables
    that are `only_read` in between; where they are is for `alongside` to look at.
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
        done, attempts = _ratified(store, proposals, terms, only_read)
    for each in done:
        if not each.repeated:
            observe.count("versions_committed_total", len(each.entries), table=each.name)
    committed = {
        each.name: _published(store, each, proposal, terms, attempts)
        for each, proposal in zip(done, proposals, strict=True)
    }
    for each in done:
        if any(entry.version % _IMAGE_EVERY == 0 for entry in each.entries):
            _keep_image(store, each)
    return committed


def _keep_image(store: Store, done: Ratified) -> None:
    try:
        keep_image(store, done.name, done.table_id)
    except Exception as error:  # noqa: BLE001  it makes opening faster, and the commit is durable without it
        observe.event("image.failed", level=30, table=done.name, error=told(error))


def _ratified(
    store: Store, proposals: Sequence[Proposal], terms: Terms, only_read: Sequence[TableState]
) -> tuple[list[Ratified], int]:
    most = max(1, store.engine.settings.reconnect_attempts)
    first = opening(proposals, terms.token, kinds=store.engine.capabilities.pipelines, only_read=only_read)
    unknown: CommitUnknown | None = None
    taken = False
    for attempt in range(1, most + 1):
        try:
            with store.writing(first) as queries:
                return ratify(queries, proposals, terms), attempt
        except CommitUnknown as error:
            # Ratifying again asks for the token first, behind the lock that the lost transaction held: if it took
            # effect, this finds it; if not, this does it.
            unknown = error
            observe.event("commit.unknown", level=30, token=terms.token, attempt=attempt)
        except NameTaken:
            # A table that is being made has no lock to wait at: this attempt may have run into the lost one.
            if unknown is None or taken:
                raise
            taken = True
        except (EngineBusy, EngineError) as error:
            # That this attempt has written nothing says nothing of the one before.
            if unknown is None:
                raise
            raise _unknown(unknown, proposals, terms, then=f" Looking it up failed: {error.message}") from error
    assert unknown is not None
    raise _unknown(unknown, proposals, terms) from unknown


def _unknown(error: CommitUnknown, proposals: Sequence[Proposal], terms: Terms, *, then: str = "") -> CommitUnknown:
    return CommitUnknown(
        f"{error.message}{then}",
        hint=f"Repeat it with the same txn_id, {terms.token!r}, and it commits once.",
        txn_id=terms.token,
        tables=[each.table.name for each in proposals],
    )


def _published(store: Store, done: Ratified, proposal: Proposal, terms: Terms, attempts: int) -> Committed:
    last = done.entries[-1]
    error: str | None = None
    reached = done.published_version >= last.version
    if terms.publishing and not reached:
        try:
            _publish(store, done, proposal)
            reached = True
        except Exception as failure:  # noqa: BLE001
            # The commit is durable; that the log does not have it yet is no reason to report it as failed.
            error = told(failure)
    token = last.txn_id or terms.token
    return Committed(
        done.name, last.version, last.committed_at, token, last.group_id, attempts, done.repeated, reached, error
    )


def _publish(store: Store, done: Ratified, proposal: Proposal) -> None:
    first, last = done.entries[0].version, done.entries[-1].version
    if not done.repeated and done.published_version == first - 1:
        row = {"name": done.name, "table_id": done.table_id, "location": done.location}
        waiting = [Waiting(each.version, each.committed_at, partial(bytes, each.data)) for each in done.entries]
        Publisher(store, row).publish(waiting, begun=True)
        keep_up(store, done.name, first=first, last=last, properties=proposal.properties)
        return
    # Others are at it. One of those who wait writes for all of them; the next finds its own written, mostly.
    with store.engine.turn(f"publish {done.table_id}"):
        brought = write_waiting(store, done.name, until=last)
    if brought.version > brought.from_version:
        keep_up(store, done.name, first=brought.from_version + 1, last=brought.version)
