"""Which files of a log have expired, by the protocol's rules of metadata cleanup. Values in, values out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainstem.deltalog.files import SIDECARS
from mainstem.deltalog.names import Checkpoint, Listing, LogFile
from mainstem.deltalog.writing import SCRATCH

_VERSIONED = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\..*(?:parquet|json))")
_COMPACTED = re.compile(r"(\d{20})\.\d{20}\.compacted\.json")
_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Moments:
    """The two midnights that decide: versions from before `log` may go, loose files from before `loose` may."""

    log: datetime
    loose: datetime


def moments(now: datetime, retention_ms: int) -> Moments:
    """Midnights in UTC, as Delta truncates: a log is cut once a day, and what is being written now is never touched."""
    log = _midnight(now - timedelta(milliseconds=retention_ms))
    return Moments(log, min(log, _midnight(now - _A_DAY)))


def candidates(listing: Listing, *, at_most: int, published: int) -> list[Checkpoint]:
    """The checkpoints that a log may be cut at, the best first: not above a version, and whole from there on.

    Whole means that the commit of the checkpoint's own version and every later one up to the published one are there.
    """
    versions = [commit.version for commit in listing.commits if commit.version <= published]
    whole_from = published + 1
    for version in reversed(versions):
        if version != whole_from - 1:
            break
        whole_from = version
    usable = [found for found in listing.checkpoints if whole_from <= found.version <= at_most]
    return sorted(usable, reverse=True)


def expired(files: Iterable[LogFile], boundary: int) -> list[str]:
    """The files that a log cut at a version no longer needs, the oldest first.

    Commits, checksums and checkpoints of earlier versions, complete or not; and compacted commits that begin before it
    or with it. Nothing else: what we do not know is not ours to delete.
    """
    names = []
    for file in files:
        if found := _VERSIONED.fullmatch(file.name):
            gone = int(found[1]) < boundary
        else:
            found = _COMPACTED.fullmatch(file.name)
            gone = found is not None and int(found[1]) <= boundary
        if gone:
            names.append(file.name)
    return sorted(names)


def loose_sidecars(files: Iterable[LogFile], referenced: Collection[str], before_ms: int) -> list[str]:
    """Sidecars that no checkpoint names, and that are too old to belong to one that is being written."""
    prefix = f"{SIDECARS}/"
    return sorted(
        file.name
        for file in files
        if file.name.startswith(prefix)
        and file.name.removeprefix(prefix) not in referenced
        and file.modified_ms < before_ms
    )


def loose_folders(files: Iterable[LogFile], before_ms: int) -> list[str]:
    """Our own scratch folders that a killed writer has left."""
    newest: dict[str, int] = {}
    for file in files:
        folder, slash, _ = file.name.partition("/")
        if slash and folder.startswith(SCRATCH):
            newest[folder] = max(file.modified_ms, newest.get(folder, 0))
    return sorted(folder for folder, modified in newest.items() if modified < before_ms)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
