"""What the names in a `_delta_log` say: commits, checkpoints of every kind, and which of them can be used."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from mainstem.errors import CorruptLog

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_COMMIT = re.compile(r"([0-9]{20})\.json")
_CLASSIC = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
_V2 = re.compile(rf"([0-9]{{20}})\.checkpoint\.{_UUID}\.(?:json|parquet)")
_MAX_VERSION = 2**63 - 1


class CheckpointKind(IntEnum):
    """In the order in which Delta prefers them, when a version has several."""

    CLASSIC = 1
    MULTI_PART = 2
    V2 = 3


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log. `modified_ms` is its time in the store, in milliseconds since 1970."""

    name: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, order=True)
class Commit:
    """The commit file of one version."""

    version: int
    file: LogFile = field(compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A complete checkpoint: all of its parts are there. Sidecars are named inside of it."""

    version: int
    kind: CheckpointKind
    part_count: int
    files: tuple[LogFile, ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """A log as its names show it: commits and complete checkpoints, each in the order of versions.

    `files` counts everything that was seen, also what is none of these.
    """

    commits: tuple[Commit, ...]
    checkpoints: tuple[Checkpoint, ...]
    files: int = 0

    def commit(self, version: int) -> Commit | None:
        """The commit of that version, if its file is there."""
        at = bisect_left(self.commits, version, key=lambda commit: commit.version)
        return self.commits[at] if at < len(self.commits) and self.commits[at].version == version else None

    def latest_checkpoint(self, at_most: int | None = None) -> Checkpoint | None:
        """The newest complete checkpoint, of a version not above `at_most`; of several, the kind that Delta prefers."""
        usable = [found for found in self.checkpoints if at_most is None or found.version <= at_most]
        return max(usable, default=None)

    def up_to(self, version: int) -> Listing:
        """The same log as it was when that version was the last."""
        return Listing(
            tuple(found for found in self.commits if found.version <= version),
            tuple(found for found in self.checkpoints if found.version <= version),
            self.files,
        )


def classify(files: Iterable[LogFile]) -> Listing:
    """Sort the names of a log out. Hidden files, checksums, compacted logs and whatever else is there are not used.

    A multi-part checkpoint counts only if every part is there: it cannot be written atomically.
    """
    commits: list[Commit] = []
    checkpoints: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, LogFile]] = {}
    seen = 0
    # In the order of names: of two checkpoints that are otherwise alike always the same one is taken.
    for file in sorted(files, key=lambda file: file.name):
        seen += 1
        if found := _COMMIT.fullmatch(file.name):
            commits.append(Commit(_version(found[1], file.name), file))
        elif found := _CLASSIC.fullmatch(file.name):
            checkpoints.append(Checkpoint(_version(found[1], file.name), CheckpointKind.CLASSIC, 1, (file,)))
        elif found := _V2.fullmatch(file.name):
            checkpoints.append(Checkpoint(_version(found[1], file.name), CheckpointKind.V2, 1, (file,)))
        elif found := _PART.fullmatch(file.name):
            version, part, count = _version(found[1], file.name), int(found[2]), int(found[3])
            if 1 <= part <= count:
                parts.setdefault((version, count), {})[part] = file
    for (version, count), have in parts.items():
        if len(have) == count:
            ordered = tuple(have[part] for part in sorted(have))
            checkpoints.append(Checkpoint(version, CheckpointKind.MULTI_PART, count, ordered))
    return Listing(tuple(sorted(commits)), tuple(sorted(checkpoints)), seen)


def commit_name(version: int) -> str:
    """The name of the commit file of a version."""
    return f"{version:020d}.json"


def _version(digits: str, name: str) -> int:
    version = int(digits)
    if version > _MAX_VERSION:
        raise CorruptLog(
            f"{name}: the version does not fit 64 bits.", hint="Nothing was imported.", file=name, line=None
        )
    return version


def checkpoint_name(version: int) -> str:
    """The name of a classic checkpoint."""
    return f"{version:020d}.checkpoint.parquet"


def part_name(version: int, part: int, count: int) -> str:
    """The name of one part of a classic checkpoint; parts count from 1."""
    return f"{version:020d}.checkpoint.{part:010d}.{count:010d}.parquet"


def v2_checkpoint_name(version: int, unique: str, extension: str) -> str:
    """The name of a v2 checkpoint's top file: `unique` is a UUID, `extension` json or parquet."""
    return f"{version:020d}.checkpoint.{unique}.{extension}"
