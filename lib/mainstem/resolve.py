"""From what a caller asked for (nothing, a version, a moment, a tag) to one version that is really there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from operator import index
from typing import SupportsIndex

from mainstem.errors import UsageError, VersionNotFound
from mainstem.naming import storable
from mainstem.store import Queries, Row, as_utc


@dataclass(frozen=True, slots=True)
class Resolved:
    """A version that exists, when it was committed, and whether it was the head when it was looked up."""

    version: int
    committed_at: datetime
    content_sha256: str | None
    is_head: bool


def resolve(
    queries: Queries,
    *,
    name: str,
    table_id: str,
    version: int | None = None,
    timestamp: datetime | str | None = None,
    tag: str | None = None,
) -> Resolved:
    """The version that is asked for; the head, if nothing is.

    A moment finds the newest version at or before it. Raises VersionNotFound, with the valid range, when there is none
    or it is no longer readable.
    """
    if sum(given is not None for given in (version, timestamp, tag)) > 1:
        raise UsageError("a version, a timestamp and a tag exclude each other.", hint="Give one of them.")
    head = queries.row("head_row", table_id=table_id)
    if head is None:
        raise VersionNotFound(f"the table {name} has no version yet.")
    floor, current = head["min_readable_version"], head["current_version"]
    if tag is not None:
        version = queries.scalar("version_of_tag", tag=tag, table_id=table_id) if storable(tag) else None
        if version is None:
            raise VersionNotFound(f"the tag {tag!r} does not name a version of {name}.", hint="See: mainstem tags")
    found: Row | None
    if timestamp is not None:
        found = queries.row("version_at", table_id=table_id, moment=as_moment(timestamp))
    elif version is None:
        found = head if head["version"] is not None else None
    elif floor <= (version := _number(version)) <= current:
        found = queries.row("version_row", table_id=table_id, version=version)
    else:
        found = None  # a number beyond 64 bits never reaches the database
    if found is None or found["version"] < floor or (timestamp is not None and _in_a_gap(queries, table_id, found)):
        wanted = f"version {version}" if timestamp is None else f"version that was current at {timestamp}"
        raise _not_found(queries, name, table_id, floor, wanted)
    return Resolved(
        found["version"], as_utc(found["committed_at"]), found["content_sha256"], found["version"] == current
    )


def change_of(queries: Queries, table_id: str, at: Resolved) -> str | None:
    """What has happened to a version since it was resolved; None if it is as it was."""
    now = queries.row("still_readable", table_id=table_id, version=at.version)
    if now is None:
        return "expired"
    same = (as_utc(now["committed_at"]), now["content_sha256"]) == (at.committed_at, at.content_sha256)
    return None if same else "replaced"


def require_unchanged(queries: Queries, name: str, table_id: str, at: Resolved) -> None:
    """Raise VersionNotFound if a version is not what it was when it was resolved: what was read of it may be short."""
    changed = change_of(queries, table_id, at)
    if changed is not None:
        raise VersionNotFound(
            f"version {at.version} of {name} was {changed} while it was read.",
            hint="Open the table again, or hold the version by a tag while you read it.",
        )


def _number(version: SupportsIndex) -> int:
    try:
        return index(version)  # numpy's whole numbers are some, too
    except TypeError as error:
        raise UsageError(f"a version is a whole number, not {version!r}.") from error


def _in_a_gap(queries: Queries, table_id: str, found: Row) -> bool:
    """Whether the version that was current at the moment may be one of those that a checkpoint had to bridge."""
    following = queries.scalar("version_after", table_id=table_id, version=found["version"])
    return following is not None and following != found["version"] + 1


def as_moment(value: datetime | str) -> datetime:
    """A moment that a user gave: a datetime or ISO 8601 text; without a zone it is UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise UsageError(f"{value!r} is no timestamp.", hint="Write it as 2026-11-18T12:30:00Z.") from error
    if not isinstance(value, datetime):
        raise UsageError(f"a timestamp is a datetime or a text, not {type(value).__name__}.")
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError as error:
        raise UsageError(f"{value} is no timestamp of the years 1 to 9999 in UTC.") from error


def _not_found(queries: Queries, name: str, table_id: str, floor: int, wanted: str) -> VersionNotFound:
    known = queries.row("version_range", table_id=table_id, min_readable_version=floor)
    if known is None or known["first_version"] is None:
        return VersionNotFound(f"the table {name} has no {wanted}: the catalog has none of its versions.")
    first, last = known["first_version"], known["last_version"]
    times = [as_utc(known[key]).isoformat() for key in ("first_time", "last_time")]
    return VersionNotFound(
        f"the table {name} has no {wanted}.",
        hint=f"It has versions {first} to {last}, committed from {times[0]} to {times[1]}.",
        first_version=first,
        last_version=last,
    )
