"""Whether a proposal may follow the commits that came before it: Delta's rules, in Delta's order.

The *winners* are the versions after the one that the proposal read, all of them, in order. Each is checked as if the
proposal had started just before it; protocol and metadata move on from winner to winner.

Stricter than Delta in four places. A proposal that drops a table feature follows nobody, and one that replaces the
table follows nobody who wrote a metadata domain: Delta looks at data there, or rewrites the commit. A file that a
proposal adds again counts as read, even if its producer forgot to say so: else a removed file would come back. And a
later step of a transaction that rewrites rows of a table with row tracking follows nobody: Delta knows no such steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import orjson

from mainstem.conflicts.features import DOMAIN_METADATA, beyond_us, features
from mainstem.conflicts.metadata import ENABLE_ROW_TRACKING, enables_only
from mainstem.conflicts.values import (
    ROW_TRACKING_DOMAIN,
    Conflict,
    Isolation,
    Proposed,
    Rule,
    Winner,
    info_of,
    is_true,
    json_object,
    properties_of,
)
from mainstem.identity import canonical_path
from mainstem.model import Action, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile, Txn

_MOST_FILES = 5
_IDENTITY_ONLY = "delta.identity.schemaUpdate"
# Both write every file again with other row ids and the same rows.
_SAME_ROWS = frozenset({"ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"})

Found = TypeVar("Found", bound=Action)


@dataclass(frozen=True, slots=True)
class Case:
    """A proposal and one winner, with what a rule must know of both.

    `metadata` is the table's just before the winner, `protocol` the one from the winner on. `first_version` is the one
    that the proposal would have become, had nobody overtaken it.
    """

    proposed: Proposed
    winner: Winner
    metadata: Metadata
    protocol: Protocol
    first_version: int
    removed: frozenset[str]
    added_again: frozenset[str]
    table_root: str

    def path(self, file: AddFile | RemoveFile) -> str:
        return canonical_path(file.path, self.table_root)

    def conflict(self, rule: Rule, explanation: str, files: Iterable[AddFile | RemoveFile] = ()) -> Conflict:
        paths = tuple(file.path for file in islice(files, _MOST_FILES))
        winner = self.winner
        return Conflict(rule, winner.version, winner.operation, winner.committer, paths, explanation)


def protocol_changed(case: Case) -> Conflict | None:
    own, new = _first(case.proposed.actions, Protocol), _first(case.winner.actions, Protocol)
    read = features(case.proposed.protocol)
    if new is not None:
        if unknown := beyond_us(new):
            return case.conflict("ProtocolChanged", f"it asks for {', '.join(unknown)}, which this library has not")
        if own is not None:
            return case.conflict("ProtocolChanged", "it changed the protocol, and so does this commit")
        if dropped := read - features(new):
            return case.conflict("ProtocolChanged", f"it dropped the table feature {', '.join(sorted(dropped))}")
    if own is not None and (dropped := read - features(own)):
        return case.conflict(
            "ProtocolChanged", f"this commit drops the table feature {', '.join(sorted(dropped))} and must come first"
        )
    return None


def metadata_changed(case: Case) -> Conflict | None:
    new = _first(case.winner.actions, Metadata)
    if new is None:
        return None
    if _first(case.proposed.actions, Metadata) is not None:
        return case.conflict("MetadataChanged", "it changed the table's metadata, and so does this commit")
    if _identity_only(case.winner) or enables_only(case.metadata, new, case.protocol):
        return None
    return case.conflict("MetadataChanged", "it changed the table's schema, partitioning or properties")


def domain_changed(case: Case) -> Conflict | None:
    if DOMAIN_METADATA not in features(case.protocol):
        return None
    theirs = {domain.domain for domain in _all(case.winner.actions, DomainMetadata)} - {ROW_TRACKING_DOMAIN}
    ours = {domain.domain for domain in _all(case.proposed.actions, DomainMetadata)}
    both = theirs if "REPLACE TABLE" in (case.proposed.operation or "") else theirs & ours
    if not both:
        return None
    return case.conflict("ConcurrentTransaction", f"it wrote the metadata domain {', '.join(sorted(both))}")


def application_moved_on(case: Case) -> Conflict | None:
    read = case.proposed.reads.app_ids
    moved = [txn.app_id for txn in _all(case.winner.actions, Txn) if txn.app_id in read] if read else []
    if not moved:
        return None
    return case.conflict("ConcurrentTransaction", f"it is by the same application {', '.join(map(repr, moved))}")


def concurrent_append(case: Case) -> Conflict | None:
    proposed, winner = case.proposed, case.winner
    if proposed.blind_append or proposed.isolation is Isolation.SNAPSHOT:
        return None
    if winner.operation in _SAME_ROWS or proposed.operation in _SAME_ROWS:
        return None
    lenient = proposed.isolation is Isolation.WRITE_SERIALIZABLE and _first(proposed.actions, Metadata) is None
    if winner.blind_append and lenient and not proposed.reads.every_append:
        return None
    added: Iterable[AddFile] = _all(winner.actions, AddFile)
    reads = proposed.reads
    # Without partitions there is nothing to tell files apart by; Delta then does not ask what was read.
    if not reads.whole_table and orjson.loads(proposed.metadata.partition_columns or "[]"):
        added = (file for file in added if any(may_match(file) for may_match in reads.predicates))
    return _with_files(case, "ConcurrentAppend", "it added files that this commit should have read", added)


def concurrent_delete_read(case: Case) -> Conflict | None:
    if not case.proposed.reads.depends_on_files and not case.added_again:
        return None
    removed = (file for file in _all(case.winner.actions, RemoveFile) if _was_read(case, file))
    return _with_files(case, "ConcurrentDeleteRead", "it removed files that this commit has read", removed)


def concurrent_delete_delete(case: Case) -> Conflict | None:
    if not case.removed:
        return None
    # By path alone: two deletion vectors for one file are two changes of the same rows.
    removed = (file for file in _all(case.winner.actions, RemoveFile) if case.path(file) in case.removed)
    return _with_files(case, "ConcurrentDeleteDelete", "it removed files that this commit removes, too", removed)


def steps_overtaken(case: Case) -> Conflict | None:
    """A later step of the proposal may have written the row ids of an earlier one into its data, where they stay."""
    if case.proposed.blind_append or not is_true(properties_of(case.proposed.metadata).get(ENABLE_ROW_TRACKING)):
        return None
    numbered = (add.default_row_commit_version for add in _all(case.proposed.actions, AddFile))
    if not any(since is not None and since > case.first_version for since in numbered):
        return None
    return case.conflict(
        "ConcurrentTransaction", "it came before a transaction of several operations that number and rewrite rows"
    )


RULES: tuple[Callable[[Case], Conflict | None], ...] = (
    protocol_changed,
    metadata_changed,
    domain_changed,
    application_moved_on,
    concurrent_append,
    concurrent_delete_read,
    concurrent_delete_delete,
    steps_overtaken,
)


def find_conflicts(proposed: Proposed, winners: Sequence[Winner], *, table_root: str) -> list[Conflict]:
    """Every rule that every winner breaks: winners in their order, rules in Delta's. Empty: the proposal may follow.

    The first is the one that Delta raises.
    """
    found: list[Conflict] = []
    removed = frozenset(canonical_path(file.path, table_root) for file in _all(proposed.actions, RemoveFile))
    added_again = frozenset(canonical_path(file.path, table_root) for file in proposed.files_added_again) - removed
    own = _first(proposed.actions, Protocol)
    metadata, protocol = proposed.metadata, own or proposed.protocol
    for winner in winners:
        protocol = _first(winner.actions, Protocol) or protocol
        case = Case(proposed, winner, metadata, protocol, winners[0].version, removed, added_again, table_root)
        found += [conflict for rule in RULES if (conflict := rule(case)) is not None]
        metadata = _first(winner.actions, Metadata) or metadata
    return found


def _was_read(case: Case, file: RemoveFile) -> bool:
    reads = case.proposed.reads
    if reads.whole_table:
        return True
    path = case.path(file)
    if path in case.added_again:
        return True
    if reads.paths is not None:
        return path in reads.paths
    return any(may_match(file) for may_match in reads.predicates)


def _with_files(case: Case, rule: Rule, why: str, files: Iterable[AddFile | RemoveFile]) -> Conflict | None:
    found = case.conflict(rule, why, files)
    return found if found.files else None


def _identity_only(winner: Winner) -> bool:
    info = info_of(winner.actions)
    tags = json_object(info.body).get("tags") if info else None
    return isinstance(tags, dict) and str(tags.get(_IDENTITY_ONLY)).lower() == "true"


def _first(actions: Iterable[Action], kind: type[Found]) -> Found | None:
    return next((action for action in actions if isinstance(action, kind)), None)


def _all(actions: Iterable[Action], kind: type[Found]) -> Iterable[Found]:
    return (action for action in actions if isinstance(action, kind))
