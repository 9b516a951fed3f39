"""One proposal into its versions, under the lock of its table's head: checked, moved on, inserted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from operator import is_not

from mainstem import rebase
from mainstem.chronicle import described, properties
from mainstem.conflicts import (
    Isolation,
    Proposed,
    Winner,
    conflict_error,
    find_conflicts,
    is_blind_append,
    said_blind_append,
)
from mainstem.conflicts.values import ROW_TRACKING_DOMAIN
from mainstem.deltalog.protocol import supports
from mainstem.deltalog.serialize import serialize_commit
from mainstem.engines import Change, EngineError, Outcome, Rows
from mainstem.errors import ConflictError, CorruptCatalog, UsageError
from mainstem.identity import app_key, bucket_and_key
from mainstem.model import Action, AddFile, CommitInfo, DomainMetadata, Metadata, Protocol, RemoveFile
from mainstem.proposal import NO_VERSION, Commit, Content, Proposal, require_same
from mainstem.ratified import Entry, NameTaken, Ratified, Terms
from mainstem.recorded import CONTROL, RecordedVersion, among, recorded
from mainstem.rows import ADDS, REMOVES
from mainstem.store import Queries, Row, statement
from mainstem.versions import Version, VersionRows, from_millis, key_chunks, to_millis

_MIRROR_COLUMNS = ("table_id", "version", "status", "attempts", "created_at", "updated_at")
_SHOWN = 3


class Writer:
    """Writes the commits of one proposal under the lock of its head, whose row `heads_now` has given."""

    def __init__(
        self,
        queries: Queries,
        proposal: Proposal,
        head: Row | None,
        terms: Terms,
        now_ms: int,
        *,
        kinds_since: Row | None = None,  # of which kinds of actions there are any since the proposal, if that is known
    ) -> None:
        self.queries, self.proposal, self.terms, self.now_ms = queries, proposal, terms, now_ms
        self.kinds_since = kinds_since
        self.table = proposal.table
        self.head = NO_VERSION if head is None else int(head["current_version"])
        self.published = NO_VERSION if head is None else int(head["published_version"])
        self.floor = 0 if head is None else int(head["min_readable_version"])
        self.previous_ms = None if head is None else to_millis(head["committed_at"])
        self.at_head = Content.of(head)
        self.metadata, self.protocol = self.table.metadata, self.table.protocol
        self.metadata_read = self.table.metadata  # as the commit at hand has read it, without the winners
        self.winners: list[Winner] = []
        self.earlier: tuple[Action, ...] = ()  # what the commits before the one at hand have become

    def write(self) -> Ratified:
        """Check, move on, insert, advance; raises if the proposal cannot follow what came since."""
        if self.head == NO_VERSION:
            self._create()
        else:
            self._check_winners()
        marks = self._high_water_marks()
        entries = []
        last = self.head + len(self.proposal.commits)
        for version, commit in enumerate(self.proposal.commits, start=self.head + 1):
            actions, marks = self._final(commit, version, marks)
            entries.append(self._insert(version, actions, commit, besides=self._advance() if version == last else ()))
        return Ratified.of(self.proposal, self.published, tuple(entries))

    def _create(self) -> None:
        try:
            with self.queries.engine.failures():
                self.queries.change(
                    "table_insert", table_id=self.table.table_id, name=self.table.name, location=self.table.location,
                    authority="catalog", created_at=from_millis(self.now_ms), protocol_min_reader=1,
                    protocol_min_writer=1, properties="{}",
                )  # fmt: skip
        except EngineError as error:
            if error.outcome is not Outcome.LOST:
                raise
            raise name_taken(self.table.name) from error

    def _check_winners(self) -> None:
        table = self.table
        if self.head == table.read_version:
            require_same(table, self.at_head)
            return
        self._require_known()
        proposed = self._proposed()
        shapes = [*CONTROL]
        # A winner may have given row ids to files that this commit touches.
        tracked = self.protocol is not None and supports(self.protocol, "rowTracking")
        shapes += [ADDS] if tracked or any(each.heeds_adds for each in proposed) else []
        shapes += [REMOVES] if any(each.heeds_removes for each in proposed) else []
        bounds = {"first": table.read_version + 1, "last": self.head}
        kinds = self.kinds_since
        if kinds is None:
            [kinds] = self.queries.rows("kinds_between", table_id=table.table_id, **bounds)
        require_same(table, Content.of(kinds))
        relevant = among(kinds, shapes)
        if not relevant:
            return  # every rule is about an action: without one that matters nothing can stand in the way
        since = recorded(self.queries, table.table_id, **bounds, shapes=relevant)
        self.winners = [winner_of(version) for version in since]
        for each in proposed:
            if found := find_conflicts(each, self.winners, table_root=table.root):
                raise conflict_error(table.name, found)
        for winner in self.winners:
            self._learn(winner.actions)

    def _require_known(self) -> None:
        """Of what came since, and of what was in force before it, nothing may be forgotten: it could not conflict."""
        if self.floor <= self.table.read_version:
            return
        raise ConflictError(
            f"{self.table.name}: this commit has read version {self.table.read_version}, and the versions before "
            f"{self.floor} have expired: whether what came since stands in its way is not known any more. "
            "Nothing was written.",
            hint="Read the table again and repeat; catalog.run(fn) does both.",
            table=self.table.name,
            read_version=self.table.read_version,
            min_readable_version=self.floor,
        )

    def _proposed(self) -> list[Proposed]:
        metadata, protocol = self.metadata, self.protocol
        found = []
        for commit in self.proposal.commits:
            assert metadata is not None
            assert protocol is not None
            found.append(proposed_of(commit, metadata, protocol))
            for action in commit.actions:
                metadata = action if isinstance(action, Metadata) else metadata
                protocol = action if isinstance(action, Protocol) else protocol
        return found

    def _learn(self, actions: Collection[Action]) -> None:
        if {Metadata, Protocol}.isdisjoint(map(type, actions)):
            return
        for action in actions:
            if isinstance(action, Metadata):
                self.metadata = action
            elif isinstance(action, Protocol):
                self.protocol = action

    def _high_water_marks(self) -> tuple[int | None, int | None]:
        """The highest row id at the version that was read, and at the head."""
        if self.head == NO_VERSION or self.protocol is None or not supports(self.protocol, "rowTracking"):
            return None, None
        return tuple(  # type: ignore[return-value]
            row_id_mark(self.queries, self.table.table_id, version) for version in (self.table.read_version, self.head)
        )

    def _final(
        self, commit: Commit, version: int, marks: tuple[int | None, int | None]
    ) -> tuple[tuple[Action, ...], tuple[int | None, int | None]]:
        before, blind = self.metadata, is_blind_append(commit.actions, reads=commit.reads)
        self._learn(commit.actions)
        metadata, protocol = self.metadata, self.protocol
        assert metadata is not None
        assert protocol is not None
        actions: tuple[Action, ...] = commit.actions
        if self.head != self.table.read_version:
            assert self.metadata_read is not None
            actions = rebase.rebase(
                actions, winners=self.winners, earlier=self.earlier,
                read_version=self.table.read_version, new_version=version,
                protocol=protocol, metadata=metadata, metadata_read=self.metadata_read, high_water_mark=marks[0],
                table_root=self.table.root,
            )  # fmt: skip
        self.metadata_read = next((each for each in commit.actions if isinstance(each, Metadata)), self.metadata_read)
        actions = rebase.assign_row_ids(
            actions, protocol=protocol, metadata=metadata, high_water_mark=marks[1], version=version
        )
        mark = rebase.high_water_mark(actions)
        fields = {
            **commit.info,
            "readVersion": self.table.read_version if self.head != NO_VERSION else None,
            "isolationLevel": self._isolation(commit, metadata).value,
            "isBlindAppend": blind,
            "txnId": self._token(version, commit),
            "groupId": commit.group_id or self.terms.group_id,
        }
        fields = {key: value for key, value in fields.items() if value is not None}
        actions = rebase.with_commit_info(
            actions, fields=fields, now_ms=self.now_ms, previous_ms=self.previous_ms, version=version,
            metadata_before=before, metadata=metadata,
        )  # fmt: skip
        self._learn(actions)
        if self.head != self.table.read_version:
            self.earlier += actions
        return actions, (marks[0], marks[1] if mark is None else mark)

    def _isolation(self, commit: Commit, metadata: Metadata) -> Isolation:
        return Isolation.of(properties(metadata), commit.actions, operation=commit.info.get("operation"))

    def _token(self, version: int, commit: Commit) -> str:
        """The transaction's token; an earlier version of the same table needs another one."""
        return commit.token or self.terms.token_of(version - self.head, len(self.proposal.commits))

    def _insert(
        self, version: int, actions: tuple[Action, ...], commit: Commit, *, besides: Sequence[Change] = ()
    ) -> Entry:
        at_ms = max(self.now_ms, NO_VERSION if self.previous_ms is None else self.previous_ms + 1)
        self.previous_ms = at_ms
        info, *rest = actions
        assert isinstance(info, CommitInfo)
        rows = VersionRows(self.table.table_id, version, actions)
        rows.send_many(self.queries)  # while the text of the commit is still being made
        moved = len(rest) != len(commit.changes) or any(map(is_not, rest, commit.changes))
        data = serialize_commit([info]) + (serialize_commit(rest) if moved else commit.body)
        written = Version(
            version, from_millis(at_ms), "commit", info, self._token(version, commit),
            commit.group_id or self.terms.group_id, sha256(data).hexdigest(),
        )  # fmt: skip
        done = rows.append(self.queries, written, besides=besides)
        removed = {action.file_key: action.path for action in actions if type(action) is RemoveFile}
        if done.ended != len(removed):
            raise self._not_live(removed, version)
        self._require_alone(version, actions)
        if besides and done.besides[0] != 1:
            raise CorruptCatalog(
                f"the head of {self.table.name} moved while it was locked.", hint="Nothing was written."
            )
        return Entry(version, written.committed_at, data, written.txn_id, written.group_id)

    def _require_alone(self, version: int, actions: Iterable[Action]) -> None:
        """A path lives once: its rows would be there twice, and those that one deletion vector hides come back.

        Called when the spans that the version ends are closed. A path that the same commit removes is not asked for,
        which is all that Delta itself ever adds again.
        """
        assert self.protocol is not None
        if not supports(self.protocol, "deletionVectors"):
            return
        gone = {action.path for action in actions if type(action) is RemoveFile}
        alone = [action for action in actions if type(action) is AddFile and action.path not in gone]
        if not alone:
            return
        bounds, root = {"table_id": self.table.table_id}, self.table.root
        plain = {bucket_and_key(file.path, None, root)[1] for file in alone if file.dv_id is not None}
        found = [row for keys in key_chunks(sorted(plain)) for row in self.queries.rows_among(
            "live_among", "keys", keys, **bounds
        )]  # fmt: skip
        found = found or self.queries.rows("marked_beside", **bounds, version=version, most=_SHOWN)
        if not found:
            return
        paths = [row["path"] for row in found[:_SHOWN]]
        raise UsageError(
            f"the commit to {self.table.name} adds files that are live already, with another deletion vector: "
            f"{', '.join(map(repr, paths))}.",
            hint="Nothing was written. Remove the file with the deletion vector that it has, in the same commit.",
            table=self.table.name,
            paths=paths,
        )

    def _not_live(self, removed: Mapping[bytes, str], version: int) -> UsageError:
        live: set[bytes] = set()
        for chunk in key_chunks(sorted(removed)):
            among = self.queries.rows_among(
                "closed_among", "keys", chunk, table_id=self.table.table_id, version=version
            )
            live |= {bytes(row["file_key"]) for row in among}
        gone = [path for key, path in removed.items() if key not in live]
        return UsageError(
            f"the commit to {self.table.name} removes {len(gone)} files that are not live at version {self.head}: "
            f"{', '.join(map(repr, gone[:_SHOWN]))}.",
            hint="Nothing was written. A file is its path and its deletion vector: both must be those of the add.",
            table=self.table.name,
            paths=gone[:_SHOWN],
        )

    def _advance(self) -> list[Change]:
        """What moves the head behind the last commit. The first change touches one row, if the head has not moved."""
        table_id, last = self.table.table_id, self.head + len(self.proposal.commits)
        at = from_millis(self.now_ms)
        # A commit that is published at once is taken on with its ratification: that spares a transaction. Behind
        # others that wait it is published in its turn.
        at_once = self.terms.publishing and self.published == self.head
        status, attempts = ("IN_FLIGHT", 1) if at_once else ("PENDING", 0)
        rows = [(table_id, version, status, attempts, at, at) for version in range(self.head + 1, last + 1)]
        found: list[Change] = [self._head(last), Rows("dl_mirror_status", _MIRROR_COLUMNS, rows)]
        if self.metadata is not self.table.metadata or self.protocol is not self.table.protocol:
            assert self.metadata is not None
            assert self.protocol is not None
            found.append(statement("table_describe", table_id=table_id, **described(self.protocol, self.metadata)))
        return found

    def _head(self, version: int) -> Change:
        table_id = self.table.table_id
        if self.head != NO_VERSION:
            return statement("head_ratify", table_id=table_id, from_version=self.head, to_version=version)
        return statement(
            "head_insert", table_id=table_id, current_version=version, published_version=NO_VERSION,
            min_readable_version=0,
        )  # fmt: skip


def name_taken(name: str) -> NameTaken:
    """The error of one who makes a table whose name another one has got meanwhile."""
    return NameTaken(f"the catalog already has a table {name}.", hint="Nothing was written.", table=name)


def proposed_of(commit: Commit, metadata: Metadata, protocol: Protocol) -> Proposed:
    """A commit as the rules of conflict see it; `metadata` and `protocol` are those that it has read."""
    return Proposed.of(
        commit.actions,
        reads=commit.reads,
        metadata=metadata,
        protocol=protocol,
        operation=commit.info.get("operation"),
    )


def winner_of(version: RecordedVersion) -> Winner:
    """A version of the catalog as the rules of conflict see it."""
    return Winner(
        version.version, version.operation, version.committer, bool(said_blind_append(version.info)), version.actions
    )


def row_id_mark(queries: Queries, table_id: str, version: int) -> int | None:
    """The highest row id that is in use at a version, as the table's own domain says."""
    row = queries.row("domain_at", table_id=table_id, domain_key=app_key(ROW_TRACKING_DOMAIN), version=version)
    if row is None or row["removed"]:
        return None
    domain = DomainMetadata(0, ROW_TRACKING_DOMAIN, b"", row["configuration"], False)
    return rebase.high_water_mark([domain])
