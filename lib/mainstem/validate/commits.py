"""Checks of the catalog against `_delta_log`: commits by their bytes, then by action and field where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from typing import Any

from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.names import commit_name
from mainstem.deltalog.serialize import NAMES, serialize_commit
from mainstem.errors import CorruptLog, MainstemError
from mainstem.model import Action, AddFile, CommitInfo, DomainMetadata, OtherAction, RemoveFile, Txn
from mainstem.recorded import RecordedVersion, recorded
from mainstem.validate.report import Finding
from mainstem.validate.subject import Subject

_BATCH = 200
_OWN = frozenset({"seq", "path_bucket", "file_key", "app_key", "extra"})


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
    present = {commit.version for commit in subject.listing.commits}
    oldest = min(present, default=0)
    for version in range(max(subject.floor, oldest), subject.published + 1):
        if version not in present and not _bridged(subject, version):
            yield Finding(
                "missing_in_log", "error", f"{commit_name(version)} is not in the log, and no checkpoint covers it",
                version=version, path=commit_name(version),
            )  # fmt: skip


def _sha256(subject: Subject, version: int) -> str:
    return sha256(subject.log.read(version)).hexdigest()


def _bridged(subject: Subject, version: int) -> bool:
    """Log cleanup may take a commit that a later checkpoint covers, if nothing before it is left either."""
    older = any(commit.version < version for commit in subject.listing.commits)
    return not older and any(found.version >= version for found in subject.listing.checkpoints)


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
    in_log = None
    if published and subject.listing.commit(version.version) is not None:
        in_log = subject.log.read(version.version)
        if sha256(in_log).hexdigest() == version.content_sha256 and _rows_say(version, in_log, subject):
            return
    elif _ratified(version):
        return
    theirs: Sequence[Action] | None = None
    if in_log is not None:
        try:
            theirs = parse_commit(in_log, file=name, table_root=subject.place.uri)
        except CorruptLog as error:
            yield Finding("unreadable_commit", "error", error.message, version=version.version, path=name)
            return
    found = list(_differences(version, theirs)) if theirs is not None else []
    yield from found
    if not found:
        which = "the log's file" if in_log is not None else "the catalog's rows"
        yield Finding(
            "commit_bytes", "error", f"the bytes of {which} are not those that were committed",
            version=version.version, path=name, catalog=version.content_sha256,
            log=sha256(in_log).hexdigest() if in_log is not None else None,
        )  # fmt: skip


def _ratified(version: RecordedVersion) -> bool:
    """Whether the rows still serialize to what was ratified; an imported commit may have been spelled otherwise."""
    if version.txn_id is None:
        return True
    return sha256(serialize_commit(version.actions)).hexdigest() == version.content_sha256


def _rows_say(version: RecordedVersion, in_log: bytes, subject: Subject) -> bool:
    if version.txn_id is not None:
        return _ratified(version)
    theirs = parse_commit(in_log, file=commit_name(version.version), table_root=subject.place.uri)
    return not list(_differences(version, theirs))


def _differences(version: RecordedVersion, theirs: Sequence[Action]) -> Iterator[Finding]:
    mine = _by_name(version.actions)
    other = _by_name(theirs)
    for key in mine.keys() - other.keys():
        yield _only("missing_in_log", version, mine[key])
    for key in other.keys() - mine.keys():
        yield _only("missing_in_catalog", version, other[key])
    for key in mine.keys() & other.keys():
        for field in fields(mine[key]):
            ours, log = getattr(mine[key], field.name), getattr(other[key], field.name)
            if field.name not in _OWN and ours != log:
                yield Finding(
                    "differs", "error", f"{_word(mine[key])} has another {field.name}", version=version.version,
                    path=getattr(mine[key], "path", None), column=field.name, catalog=ours, log=log,
                )  # fmt: skip


def _only(check: str, version: RecordedVersion, action: Action) -> Finding:
    where = "catalog" if check == "missing_in_log" else "log"
    return Finding(
        check, "error", f"only the {where} has this {_word(action)}", version=version.version,
        path=getattr(action, "path", None),
    )  # fmt: skip


def _word(action: Action) -> str:
    return "commitInfo" if isinstance(action, CommitInfo) else NAMES.get(type(action), "action")


def _by_name(actions: Sequence[Action]) -> Mapping[Any, Action]:
    """The actions by what they are about, so that two lists of them can be laid side by side."""
    found: dict[Any, Action] = {}
    for action in actions:
        if isinstance(action, AddFile | RemoveFile):
            key: Any = (type(action), action.file_key)
        elif isinstance(action, Txn | DomainMetadata):
            key = (type(action), action.app_key)
        elif isinstance(action, OtherAction):
            key = (action.name, action.body)
        else:
            key = (type(action), getattr(action, "path", None))
        found[key] = action
    return found


def checkpoints_equal(subject: Subject) -> Iterator[Finding]:
    """Every checkpoint of the log can be read and has exactly the live files of its version."""
    for checkpoint in subject.listing.checkpoints:
        if not subject.floor <= checkpoint.version <= subject.head:
            continue
        name, version = checkpoint.files[0].name, checkpoint.version
        try:
            theirs = {
                action.file_key: action.path
                for action in read_checkpoint(subject.log, checkpoint)
                if type(action) is AddFile
            }
        except MainstemError as error:
            yield Finding("checkpoint_unreadable", "error", error.message, version=version, path=name)
            continue
        with subject.store.reading() as queries:
            rows = queries.rows("adds_at", table_id=subject.table_id, version=version)
        ours = {bytes(row["file_key"]): row["path"] for row in rows}
        for key in ours.keys() - theirs.keys():
            yield Finding("checkpoint_lacks_file", "error", f"{name} lacks it", version=version, path=ours[key])
        for key in theirs.keys() - ours.keys():
            yield Finding("checkpoint_has_more", "error", f"{name} has it as live", version=version, path=theirs[key])
