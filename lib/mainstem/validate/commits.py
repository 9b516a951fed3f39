"""Checks of the catalog against `_delta_log`: commits by their bytes, then by action and field where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.names import Listing, commit_name
from mainstem.deltalog.serialize import serialize_commit
from mainstem.errors import CorruptLog, MainstemError
from mainstem.model import Action, AddFile, RemoveFile
from mainstem.recorded import RecordedVersion, recorded
from mainstem.validate.described import described_differences, of_actions, of_snapshot
from mainstem.validate.laid import differences
from mainstem.validate.livefields import FIELDS, differing
from mainstem.validate.report import Finding
from mainstem.validate.subject import Subject
from mainstem.validate.typed import typed_columns

_BATCH = 200


def log_ends_with_the_catalog(subject: Subject) -> Iterator[Finding]:
    """The log has nothing that the catalog lacks, and everything that is published."""
    newest = max((commit.version for commit in subject.listing.commits), default=-1)
    if subject.table["authority"] == "catalog":
        known = {row["version"]: row["content_sha256"] for row in subject.versions}
        for commit in subject.listing.commits:
            # What a publisher has written and not noted yet is ours; anything else there is an outside engine's.
            if commit.version > subject.published and known.get(commit.version) != _sha256(subject, commit.version):
                yield Finding(
                    "foreign_commit", "error",
                    f"an outside engine has written it into the log; decide by: mainstem resolve {subject.name}",
                    version=commit.version, path=commit.file.name,
                )  # fmt: skip
    elif newest > subject.head:
        yield Finding(
            "log_ends_with_the_catalog", "warning",
            f"the log is at version {newest}, the catalog at {subject.head}; bring it in by: "
            f"mainstem follow {subject.name}",
            version=newest, catalog=subject.head, log=newest,
        )  # fmt: skip
    for version in absent_commits(subject.listing, subject.floor, subject.published):
        yield Finding(
            "missing_in_log", "error", f"{commit_name(version)} is not in the log, and no checkpoint covers it",
            version=version, path=commit_name(version),
        )  # fmt: skip


def absent_commits(listing: Listing, first: int, last: int) -> list[int]:
    """The versions of a range whose commits the log lacks.

    Log cleanup may take a commit that a later checkpoint covers, if nothing before it is left either.
    """
    present = {commit.version for commit in listing.commits}
    oldest = min(present, default=last + 1)
    covered = max((found.version for found in listing.checkpoints), default=-1)
    begin = max(first, min(oldest, covered + 1))
    return [version for version in range(begin, last + 1) if version not in present]


def _sha256(subject: Subject, version: int) -> str:
    return sha256(subject.log.read(version)).hexdigest()


def commits_equal(subject: Subject) -> Iterator[Finding]:
    """Every commit has the bytes that were ratified: in the catalog's rows, and in the log."""
    last = min(subject.head, subject.published)
    for first in range(subject.floor, subject.head + 1, _BATCH):
        with subject.store.reading() as queries:
            batch = recorded(queries, subject.table_id, first=first, last=min(first + _BATCH - 1, subject.head))
        for version in batch:
            if version.kind == "commit":
                yield from _commit_equal(subject, version, published=version.version <= last)


def _commit_equal(subject: Subject, version: RecordedVersion, *, published: bool) -> Iterator[Finding]:
    name = commit_name(version.version)
    if not published or subject.listing.commit(version.version) is None:
        if not _ratified(version):
            yield other_bytes("catalog", version.version, version.content_sha256, None)
        return
    in_log = subject.log.read(version.version)
    try:
        theirs = parse_commit(in_log, file=name, table_root=subject.place.uri)
    except CorruptLog as error:
        yield Finding("unreadable_commit", "error", error.message, version=version.version, path=name)
        return
    found = list(differences(version.version, version.actions, theirs))
    yield from found
    digest = sha256(in_log).hexdigest()
    if not found and digest != version.content_sha256:
        yield other_bytes("log", version.version, version.content_sha256, digest)
    elif not found and not _ratified(version):
        yield other_bytes("catalog", version.version, version.content_sha256, digest)


def _ratified(version: RecordedVersion) -> bool:
    """Whether the rows still serialize to what was ratified; an imported commit may have been spelled otherwise."""
    if version.txn_id is None:
        return True
    return sha256(serialize_commit(version.actions)).hexdigest() == version.content_sha256


def other_bytes(whose: str, version: int, recorded: str | None, in_log: str | None) -> Finding:
    """A commit that says the same in other bytes: the log's file, or what the catalog's rows would be written as."""
    which = "the log's file" if whose == "log" else "the catalog's rows"
    return Finding(
        "commit_bytes", "error", f"the bytes of {which} are not those that were committed", version=version,
        path=commit_name(version), column="content_sha256", catalog=recorded, log=in_log,
    )  # fmt: skip


def checkpoints_equal(subject: Subject) -> Iterator[Finding]:
    """Every checkpoint of the log can be read, has the live files of its version as they were, describes the table."""
    for checkpoint in subject.checkpoints():
        name, version = checkpoint.files[0].name, checkpoint.version
        theirs: dict[bytes, AddFile] = {}
        others: list[Action] = []
        try:
            for action in read_checkpoint(subject.log, checkpoint):
                if type(action) is AddFile:
                    theirs[action.file_key] = action
                elif type(action) is not RemoveFile:
                    others.append(action)
        except MainstemError as error:
            yield Finding("checkpoint_unreadable", "error", error.message, version=version, path=name)
            continue
        with subject.store.reading() as queries:
            rows = queries.rows("adds_at", table_id=subject.table_id, version=version)
        columns = typed_columns(subject.at(version))
        ours = {bytes(row["file_key"]): row for row in rows}
        for key in ours.keys() - theirs.keys():
            yield checkpoint_lacks(name, version, ours[key]["path"])
        for key in theirs.keys() - ours.keys():
            yield checkpoint_has_more(name, version, theirs[key].path)
        for key in ours.keys() & theirs.keys():
            said = {field: getattr(theirs[key], field) for field in FIELDS}
            for column, left, right in differing(ours[key], said, columns):
                yield checkpoint_differs(name, version, ours[key]["path"], column, left, right)
        yield from checkpoint_describes(subject, name, version, others)


def checkpoint_lacks(name: str, version: int, path: str) -> Finding:
    return Finding("checkpoint_lacks_file", "error", f"{name} lacks it", version=version, path=path)


def checkpoint_has_more(name: str, version: int, path: str) -> Finding:
    return Finding("checkpoint_has_more", "error", f"{name} has it as live", version=version, path=path)


def checkpoint_differs(name: str, version: int, path: str, column: str, ours: Any, theirs: Any) -> Finding:
    return Finding(
        "checkpoint_differs", "error", f"{name} has another {column}", version=version, path=path, column=column,
        catalog=ours, log=theirs,
    )  # fmt: skip


def checkpoint_describes(subject: Subject, name: str, version: int, actions: Sequence[Action]) -> Iterator[Finding]:
    """Whether what a checkpoint says of the table, beside its files, is what the catalog says at its version."""
    theirs = of_actions(actions)
    assert theirs is not None, "who reads a checkpoint has seen that it has both"
    for column, left, right in described_differences(of_snapshot(subject.at(version)), theirs):
        yield checkpoint_differs(name, version, name, column, left, right)
