"""What a table's log has beyond the catalog's head, brought in version by version, each of them atomic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from hashlib import sha256

from mainstem import bridge, observe
from mainstem.chronicle import described, properties
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import commit_timestamps, in_commit_timestamps_from, replay_plan
from mainstem.deltalog.names import Listing
from mainstem.deltalog.protocol import refuse_unreadable
from mainstem.errors import ConflictError, ForeignCommit, MainstemError, TableNotFound, UsageError
from mainstem.loggedversion import LoggedVersion
from mainstem.model import Action, Metadata, Protocol
from mainstem.rows import METADATA
from mainstem.snapshot import keep_image
from mainstem.store import Queries, Row, Store
from mainstem.versions import Version, VersionRows, from_millis, to_millis

_MADE_ANEW = "If the table was dropped and made anew, import it anew: mainstem import --force"

Progress = Callable[[int, int], None]  # the version that was brought in, the newest that the log has


@dataclass(frozen=True, slots=True)
class Followed:
    """How far a follower came: the head before, and the head after."""

    name: str
    from_version: int
    version: int

    @property
    def versions(self) -> int:
        """How many versions the head has moved, by this follower or by another one at the same time."""
        return self.version - self.from_version


def follow(store: Store, name: str, *, progress: Progress = lambda version, newest: None) -> Followed:
    """Bring in every version that the log has beyond the head. Safe to repeat, to kill, and to run twice at once.

    Where log cleanup has taken commits that the catalog never saw, the next checkpoint bridges them: its difference to
    the head becomes one version, and the versions in between cannot be read.
    """
    with observe.span("follow", table=name):
        table = _followed_table(store, name)
        log = LogDirectory.open(table["location"])
        start = head = int(table["current_version"])
        listing = log.list(from_version=head)
        _require_same_log(store, log, listing, table)
        newest = max((commit.version for commit in listing.commits), default=head)
        for logged in _beyond(log, listing, head):
            head = _bring_in(store, table, logged)
            progress(head, max(newest, head))
        if head > start:
            keep_image(store, name, table["table_id"])
        observe.event("follow.done", table=name, from_version=start, version=head)
        return Followed(name, start, head)


@dataclass(frozen=True, slots=True)
class FollowedOne:
    """What came of one of many tables: how far it came, or why not. `exit_code` is 0 where all went well."""

    name: str
    version: int
    versions: int
    error: str | None = None
    hint: str | None = None
    exit_code: int = 0


def follow_all(store: Store, *, progress: Progress = lambda done, total: None) -> list[FollowedOne]:
    """Follow every table whose log leads. One that fails does not hold up the others."""
    tables = [row for row in store.rows("tables_all") if row["authority"] == "log"]
    done = []
    for place, table in enumerate(tables, start=1):
        try:
            one = follow(store, table["name"])
            done.append(FollowedOne(one.name, one.version, one.versions))
        except MainstemError as error:
            head = int(table["current_version"])
            done.append(FollowedOne(table["name"], head, 0, error.message, error.hint, error.exit_code))
        progress(place, len(tables))
    return done


def _followed_table(store: Store, name: str) -> Row:
    return _require_followed(store.row("table_by_name", name=name), name)


def _require_followed(table: Row | None, name: str) -> Row:
    if table is None:
        raise TableNotFound(f"the catalog has no table {name}.", hint="See: mainstem tables")
    if table["authority"] != "log":
        raise UsageError(
            f"the catalog leads {name}: there is nothing to follow.",
            hint=f"Commits of outside engines are handled by: mainstem resolve {name}",
        )
    return table


def _require_same_log(store: Store, log: LogDirectory, listing: Listing, table: Row) -> None:
    """Raise unless the log still has what was imported: a table that was dropped and made anew is another table."""
    head, name = table["current_version"], table["name"]
    if not listing.commits and not listing.checkpoints:
        log.list()  # raises if there is no log at all
        raise ForeignCommit(
            f"the log of {name} no longer has version {head}, which the catalog has.",
            hint=_MADE_ANEW,
            table=name,
            version=head,
        )
    known = store.row("version_row", table_id=table["table_id"], version=head)
    if known is None or known["content_sha256"] is None or listing.commit(head) is None:
        return
    if sha256(log.read(head)).hexdigest() != known["content_sha256"]:
        raise ForeignCommit(
            f"version {head} of {name} in the log is not the one that was imported.",
            hint=_MADE_ANEW,
            table=name,
            version=head,
        )


def _beyond(log: LogDirectory, listing: Listing, head: int) -> Iterator[LoggedVersion]:
    if listing.commit(head + 1) is None:
        if not any(found.version > head for found in listing.commits + listing.checkpoints):
            return
        plan = replay_plan(log.list())
        if plan.checkpoint is not None and plan.first > head:
            yield LoggedVersion(log, plan.first_commit, plan.checkpoint)
        commits = plan.commits
    else:
        commits = listing.commits
    expected = None
    for commit in commits:
        if commit.version <= head:
            continue
        if expected is not None and commit.version != expected:
            # A gap behind what can be followed: the next round sees the checkpoint that bridges it, or names the gap.
            yield from _beyond(log, log.list(from_version=expected - 1), expected - 1)
            return
        expected = commit.version + 1
        yield LoggedVersion(log, commit)


def read_version(table: Row, logged: LoggedVersion) -> list[Action]:
    """The actions of one version of the log. Raises if it asks for a reader that this library is not."""
    actions = list(logged.actions())
    for action in actions:
        if isinstance(action, Protocol):
            refuse_unreadable(action, table=table["location"])
    return actions


def _bring_in(store: Store, table: Row, logged: LoggedVersion) -> int:
    """One version in one transaction; the head afterwards, which another follower may have moved further."""
    table_id = table["table_id"]
    actions = read_version(table, logged)  # before the lock: a slow store keeps nobody waiting
    with store.writing() as queries:
        queries.row("head_lock", table_id=table_id)
        before = _head_now(queries, table, logged)
        if before >= logged.version:
            return before
        take_in(queries, table, logged, actions, before=before)
    return logged.version


def _head_now(queries: Queries, table: Row, logged: LoggedVersion) -> int:
    """The head of the locked table. Raises if it is no longer the table that was begun with."""
    now = _require_followed(queries.row("table_by_name", name=table["name"]), table["name"])
    head = int(now["current_version"])
    same = (now["table_id"], now["location"]) == (table["table_id"], table["location"])
    if not same or (logged.kind == "commit" and head < logged.version - 1):
        raise ConflictError(
            f"{table['name']} was imported anew while it was followed: its head is version {head} of "
            f"{now['location']}.",
            hint=f"Version {logged.version} was not written. Do it again: mainstem follow {table['name']}",
            table=table["name"],
        )
    return head


def take_in(queries: Queries, table: Row, logged: LoggedVersion, actions: list[Action], *, before: int) -> None:
    """Write one version of the log, whose actions were read, as the next one of a table whose head is locked."""
    table_id = table["table_id"]
    if logged.kind == "checkpoint":
        actions = bridge.difference(queries, table_id, logged.version, actions)
    version = Version(
        logged.version,
        from_millis(_time(queries, table_id, before, logged, actions)),
        logged.kind,
        logged.info,
        content_sha256=logged.content_sha256,
    )
    VersionRows(table_id, logged.version, actions).append(queries, version)
    _move_head(queries, table, before, logged.version)
    _describe(queries, table_id, logged.version, actions)


def _time(queries: Queries, table_id: str, before: int, logged: LoggedVersion, actions: list[Action]) -> int:
    previous = queries.row("version_row", table_id=table_id, version=before)
    assert previous is not None
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    if metadata is None:
        metadata = _metadata(queries, table_id, before)
    since = in_commit_timestamps_from(properties(metadata))
    if logged.kind == "checkpoint" and logged.info is None:
        since = None
    [time] = commit_timestamps([logged.time], in_commit_from=since)
    return max(time, to_millis(previous["committed_at"]) + 1)


def _metadata(queries: Queries, table_id: str, version: int) -> Metadata:
    row = queries.row("metadata_at", table_id=table_id, version=version)
    assert row is not None
    found = METADATA.action(row)
    assert isinstance(found, Metadata)
    return found


def _move_head(queries: Queries, table: Row, before: int, version: int) -> None:
    moved = queries.change(
        "head_advance", table_id=table["table_id"], from_version=before, to_version=version, published_version=version
    )
    if moved != 1:
        raise ForeignCommit(f"the head of {table['name']} moved while it was locked.", hint="Nothing was written.")


def _describe(queries: Queries, table_id: str, version: int, actions: list[Action]) -> None:
    if not any(isinstance(action, Protocol | Metadata) for action in actions):
        return
    protocol = queries.row("protocol_at", table_id=table_id, version=version)
    assert protocol is not None
    named = Protocol(**{field.name: protocol[field.name] for field in fields(Protocol)})
    queries.change("table_describe", table_id=table_id, **described(named, _metadata(queries, table_id, version)))
