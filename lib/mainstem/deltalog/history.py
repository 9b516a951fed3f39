"""Which versions a log can still answer, and when each was committed. Values in, values out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mainstem.deltalog.names import Checkpoint, Commit, Listing
from mainstem.errors import CorruptLog, VersionNotFound

ENABLED = "delta.enableInCommitTimestamps"
ENABLED_FROM = "delta.inCommitTimestampEnablementVersion"
ENABLED_AT = "delta.inCommitTimestampEnablementTimestamp"

# What a date of the years 1 to 9999 can be, in milliseconds since 1970: databases and Python know no other.
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """How to read a log once, from its first readable version to its last.

    Without a checkpoint the first is version 0 and the commits are all of them. With one, the state begins with the
    checkpoint at `first`, and the commits are those after it; `first_commit` is the checkpoint's own commit file, which
    still tells who wrote that version and when, if cleanup has left it.
    """

    first: int
    last: int
    checkpoint: Checkpoint | None
    first_commit: Commit | None
    commits: tuple[Commit, ...]


def replay_plan(listing: Listing, *, up_to: int | None = None) -> ReplayPlan:
    """The longest readable history that ends with the last version, or with `up_to`.

    A gap before a checkpoint is legal: log cleanup made it. A gap after the last one raises `CorruptLog` and names the
    first version that is missing. A version that the log does not have raises `VersionNotFound` with the valid range.
    """
    if up_to is not None:
        whole = replay_plan(listing)
        if not whole.first <= up_to <= whole.last:
            raise VersionNotFound(
                f"The log has no version {up_to}: it can be read from {whole.first} to {whole.last}.",
                hint="Nothing was imported. Give one of these, or none for all.",
                version=up_to,
                first=whole.first,
                last=whole.last,
            )
        listing = listing.up_to(up_to)
    commits = listing.commits
    newest = listing.latest_checkpoint()
    if not commits and newest is None:
        raise CorruptLog("The log contains no commit and no complete checkpoint.", hint="Nothing was imported.")
    if newest is not None and (not commits or newest.version > commits[-1].version):
        # Its own commit is gone, so nothing connects it with what is before. delta-rs reads such a log; so do we.
        return ReplayPlan(newest.version, newest.version, newest, None, ())
    start = len(commits) - 1
    while start > 0 and commits[start - 1].version == commits[start].version - 1:
        start -= 1
    begin, last = commits[start].version, commits[-1].version
    if begin == 0:
        return ReplayPlan(0, last, None, commits[start], commits[start:])
    first = min((found.version for found in listing.checkpoints if found.version >= begin - 1), default=None)
    if first is None:
        raise CorruptLog(
            f"The log has a gap: version {_first_missing(listing, start)} is missing before version {begin}, "
            "and no complete checkpoint covers it.",
            hint="Nothing was imported. Restore the missing commit file or a checkpoint.",
            version=_first_missing(listing, start),
        )
    checkpoint = max(found for found in listing.checkpoints if found.version == first)
    after = tuple(commit for commit in commits[start:] if commit.version > first)
    return ReplayPlan(first, last, checkpoint, listing.commit(first), after)


def _first_missing(listing: Listing, start: int) -> int:
    """The version right after what can still be read before the gap: the last checkpoint, or the earlier commits."""
    before = listing.commits[start - 1].version if start > 0 else -1
    covered = max((found.version for found in listing.checkpoints), default=-1)
    return max(before, covered) + 1


@dataclass(frozen=True, slots=True)
class CommitTime:
    """What is known of the time of a commit: the time of its file, and the time that it gives itself."""

    version: int
    file_ms: int
    in_commit_ms: int | None = None


def in_commit_timestamps_from(table_properties: Mapping[str, str]) -> int | None:
    """The first version whose own timestamp counts, by the table's latest properties; None if none does.

    A table that was created with in-commit timestamps has no enablement version: they count from the beginning.
    """
    if table_properties.get(ENABLED, "false").lower() != "true":
        return None
    text = table_properties.get(ENABLED_FROM, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise CorruptLog(f"The property {ENABLED_FROM} is no version: {text[:40]!r}.", hint="Nothing was imported.")
    return int(text)


def commit_timestamps(commits: Iterable[CommitTime], *, in_commit_from: int | None) -> list[int]:
    """The time of each commit in milliseconds, strictly growing, as Delta answers time travel.

    From `in_commit_from` on a commit's own timestamp; before, the time of its file. One that is not after the one
    before it is moved to one millisecond after, as Delta does with the times of files. Where files are younger than
    the first timestamp that a commit gives itself, because somebody copied them, it is the files that give way.
    """
    times: list[int] = []
    versions: list[int] = []
    own = 0
    for commit in commits:
        time = commit.file_ms
        if in_commit_from is not None and commit.version >= in_commit_from:
            if commit.in_commit_ms is None:
                raise CorruptLog(
                    f"Version {commit.version} has no in-commit timestamp, but the table has them from version "
                    f"{in_commit_from} on.",
                    hint="Nothing was imported.",
                    version=commit.version,
                )
            time = commit.in_commit_ms
            own += 1
        if own == 1:
            _give_way(times, time)
        elif times:
            time = max(time, times[-1] + 1)
        times.append(time)
        versions.append(commit.version)
    for version, time in zip(versions, times, strict=True):
        if not _FIRST_MS <= time <= _LAST_MS:
            raise CorruptLog(
                f"The time of version {version} is {time} ms, which is no date of the years 1 to 9999.",
                hint="Nothing was imported.",
                version=version,
            )
    return times


def _give_way(times: list[int], later: int) -> None:
    """Move times back, as far as needed for the last to be before another one."""
    for place in reversed(range(len(times))):
        if times[place] < later:
            return
        times[place] = later = later - 1
