"""Commits of outside engines in the log of a table that the catalog leads: seen, and brought in under their versions.

Who wrote first into the log keeps the version. What the catalog has ratified and not published is checked against the
foreign commits by Delta's rules, as if it had come after them, and gets the next numbers, or stays and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mainstem import observe
from mainstem.conflicts import Reads, said_blind_append
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.names import Commit as LoggedCommit
from mainstem.errors import ConflictError, CorruptLog, ForeignCommit, UsageError, told
from mainstem.follower import read_version, take_in
from mainstem.identity import canonical_path
from mainstem.loggedversion import LoggedVersion
from mainstem.model import Action, RemoveFile, Txn
from mainstem.proposal import Commit, Proposal, TableState
from mainstem.publish import publish
from mainstem.ratified import Terms
from mainstem.recorded import RecordedVersion, recorded
from mainstem.rows import METADATA, PROTOCOL, SHAPES
from mainstem.store import Queries, Row, Store
from mainstem.tablestate import root_of
from mainstem.versions import to_millis
from mainstem.versionwriter import Writer

_FORGOTTEN = (*(shape.table for shape in SHAPES), "dl_mirror_status", "dl_snapshot_images", "dl_table_versions")


@dataclass(frozen=True, slots=True)
class Foreign:
    """A version that an outside engine has written, as its commitInfo describes it."""

    version: int
    operation: str | None
    committer: str | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a table's log has that the catalog has not, what the catalog has ratified besides, and what came of it.

    `renumbered` says for each of ours which version it was and which it is now. `publish_error` says why the log does
    not have them yet.
    """

    name: str
    foreign: tuple[Foreign, ...]
    unpublished: tuple[int, ...]
    adopted: bool = False
    renumbered: tuple[tuple[int, int], ...] = ()
    publish_error: str | None = None


@dataclass(frozen=True, slots=True)
class _Beyond:
    """A log beyond what is known to be published: up to `shared` it is what the catalog has, then it is foreign."""

    shared: int
    foreign: tuple[tuple[LoggedVersion, list[Action]], ...]

    def described(self) -> tuple[Foreign, ...]:
        return tuple(
            Foreign(each.version, None, None)
            if each.info is None
            else Foreign(each.version, each.info.operation, each.info.user_name or each.info.engine_info)
            for each, _ in self.foreign
        )


def resolve_foreign(store: Store, name: str, *, adopt_foreign: bool = False) -> Resolution:
    """Say what outside engines have committed; with `adopt_foreign`, bring it in and renumber what is unpublished.

    All of it or nothing: if one of our commits cannot follow the foreign ones, its conflict is raised and both stay as
    they are. Afterwards the table takes commits again, and what was renumbered is published. Without `adopt_foreign`
    nothing is changed.
    """
    table = store.table(name)
    if table["authority"] != "catalog":
        raise UsageError(
            f"the log of {name} leads: its commits are no foreign ones.",
            hint=f"Bring them in by: mainstem follow {name}",
            table=name,
        )
    with observe.span("resolve", table=name):
        beyond = _look(store, table)
        foreign = beyond.described()
        if not adopt_foreign:
            ours = tuple(range(beyond.shared + 1, table["current_version"] + 1))
            return Resolution(name, foreign, ours)
        renumbered = _adopt(store, table, beyond) if foreign else ()
        observe.event("resolve.adopted", table=name, foreign=len(foreign), renumbered=len(renumbered))
        return Resolution(
            name, foreign, tuple(old for old, _ in renumbered), True, renumbered, _publish_error(store, name)
        )


def _look(store: Store, table: Row) -> _Beyond:
    name, shared, head = table["name"], int(table["published_version"]), int(table["current_version"])
    log = LogDirectory.open(table["location"])
    commits = _commits_after(log, table)
    with store.reading() as queries:
        ours = recorded(queries, table["table_id"], first=shared + 1, last=head) if commits else []
    for mine in ours:
        # What a publisher wrote before it was killed is ours, though nobody has noted it.
        if not commits or log.read(mine.version) != mine.commit_file(table=name):
            break
        shared = commits.pop(0).version
    logged = [LoggedVersion(log, commit) for commit in commits]
    return _Beyond(shared, tuple((each, read_version(table, each)) for each in logged))


def _commits_after(log: LogDirectory, table: Row) -> list[LoggedCommit]:
    published = int(table["published_version"])
    commits = [each for each in log.list(from_version=published + 1).commits if each.version > published]
    found = [each.version for each in commits]
    if found != list(range(published + 1, published + 1 + len(found))):
        raise CorruptLog(
            f"the log of {table['name']} has a gap after version {published}: it goes on with {found[:5]}.",
            hint="Nothing was changed. Restore the missing commit files first.",
            table=table["name"],
        )
    return commits


def _publish_error(store: Store, name: str) -> str | None:
    """Publish; what is brought in stays so, also if that does not succeed now."""
    try:
        publish(store, name)
    except Exception as error:  # noqa: BLE001  what is brought in is durable
        return told(error)
    return None


def _adopt(store: Store, table: Row, beyond: _Beyond) -> tuple[tuple[int, int], ...]:
    table_id = table["table_id"]
    with store.writing() as queries:
        head = _locked(queries, table)
        ours = recorded(queries, table_id, first=beyond.shared + 1, last=head["current_version"])
        for each in ours:
            each.commit_file(table=table["name"])  # raises if its rows are not what was committed
        state = _state(queries, table, beyond.shared)
        _refuse_tagged(queries, table, beyond.shared)
        queries.change("mirror_complete", table_id=table_id, first=head["published_version"] + 1, last=beyond.shared)
        _take_back(queries, table_id, beyond.shared)
        before = beyond.shared
        for logged, actions in beyond.foreign:
            take_in(queries, table, logged, actions, before=before)
            before = logged.version
        return _write_again(queries, state, ours) if ours else ()


def _locked(queries: Queries, table: Row) -> Row:
    """The head, locked, where it was looked at. Raises if it is elsewhere: somebody has resolved or imported the table,
    or has committed, and the file that was found beyond our versions may be that commit's own.
    """
    queries.rows_among("heads_lock", "ids", [table["table_id"]])
    found = queries.rows_among("heads_now", "ids", [table["table_id"]], txn_id="")
    known = ("authority", "current_version", "published_version")
    if not found or any(found[0][key] != table[key] for key in known):
        raise ForeignCommit(
            f"{table['name']} was changed by somebody else meanwhile.",
            hint="Nothing was changed by this one. Do it again.",
            table=table["name"],
        )
    return found[0]


def _refuse_tagged(queries: Queries, table: Row, shared: int) -> None:
    """A tag never moves: what it names cannot get another number, nor may it come to name a foreign commit."""
    found = queries.rows("tags_beyond", table_id=table["table_id"], version=shared)
    if found:
        tag, version = found[0]["tag"], found[0]["version"]
        raise UsageError(
            f"the tag {tag!r} names version {version} of {table['name']}, which would get another number.",
            hint=f"Nothing was changed. Take the tag away first: mainstem tag {tag} --delete",
            table=table["name"],
            tag=tag,
        )


def _state(queries: Queries, table: Row, version: int) -> TableState:
    bounds = {"table_id": table["table_id"], "version": version}
    metadata, protocol = queries.row("metadata_at", **bounds), queries.row("protocol_at", **bounds)
    if metadata is None or protocol is None:
        raise UsageError(
            f"the log of {table['name']} had a table of an outside engine before its first version was published.",
            hint="Nothing was changed. Give this table another location.",
            table=table["name"],
        )
    return TableState(
        table["name"],
        table["table_id"],
        table["location"],
        root_of(table["location"]),
        version,
        METADATA.action(metadata),  # type: ignore[arg-type]
        PROTOCOL.action(protocol),  # type: ignore[arg-type]
    )


def _take_back(queries: Queries, table_id: str, version: int) -> None:
    for target in _FORGOTTEN:
        queries.change("versions_forget", {"target": target}, table_id=table_id, version=version)
    for statement in ("adds_reopen", "txns_reopen", "domains_reopen", "head_back"):
        queries.change(statement, table_id=table_id, version=version)


def _write_again(queries: Queries, state: TableState, ours: Sequence[RecordedVersion]) -> tuple[tuple[int, int], ...]:
    """Our commits after the foreign ones, as if they had been proposed before and had lost the race."""
    [head] = queries.rows_among("heads_now", "ids", [state.table_id], txn_id="")
    proposal = Proposal(state, tuple(_commit(each, state.root) for each in ours))
    try:
        done = Writer(queries, proposal, head, Terms(token=""), to_millis(head["clock"])).write()
    except ConflictError as error:
        raise ConflictError(
            error.message,
            hint=f"Nothing was changed. Take the outside commit back: move its file out of the log, then mainstem "
            f"publish {state.name}.",
            **error.details,
        ) from error
    return tuple((old.version, new.version) for old, new in zip(ours, done.entries, strict=True))


def _commit(version: RecordedVersion, root: str) -> Commit:
    """A version as a proposal again. What it has read was not kept: all of the table, unless it appended blindly."""
    removed = frozenset(canonical_path(each.path, root) for each in version.actions if isinstance(each, RemoveFile))
    apps = frozenset(each.app_id for each in version.actions if isinstance(each, Txn))
    reads = Reads(whole_table=not said_blind_append(version.info), paths=removed, app_ids=apps)
    return Commit(version.actions, {}, reads, version.txn_id, version.group_id)
