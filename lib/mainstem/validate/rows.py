"""Checks of the catalog's own rows: do they contradict each other?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mainstem.store import as_utc
from mainstem.validate.report import Finding
from mainstem.validate.subject import Listed, Subject


def versions_contiguous(subject: Listed) -> Iterator[Finding]:
    """Every version from the first readable one to the head is there, and their times grow."""
    known = [row["version"] for row in subject.versions]
    bridged = {row["version"] for row in subject.versions if row["kind"] == "checkpoint"}
    if known and known[0] != subject.floor:
        yield Finding(
            "versions_contiguous", "error", f"version {subject.floor}, the first readable one, is missing",
            version=subject.floor,
        )  # fmt: skip
    for before, after in pairwise(subject.versions):
        if after["version"] != before["version"] + 1 and after["version"] not in bridged:
            yield Finding(
                "versions_contiguous", "error",
                f"versions {before['version'] + 1} to {after['version'] - 1} are missing",
                version=before["version"] + 1,
            )  # fmt: skip
        if as_utc(after["committed_at"]) <= as_utc(before["committed_at"]):
            yield Finding(
                "versions_contiguous", "error", "its time is not after that of the version before",
                version=after["version"], catalog=str(after["committed_at"]),
            )  # fmt: skip


def head_is_newest(subject: Listed) -> Iterator[Finding]:
    """The head is the newest version, and what is published is not beyond it."""
    newest = max((row["version"] for row in subject.versions), default=None)
    if newest != subject.head:
        yield Finding(
            "head_is_newest", "error", f"the head is at {subject.head}, and the newest version is {newest}",
            version=subject.head, column="current_version", catalog=subject.head, log=newest,
        )  # fmt: skip
    if not subject.published <= subject.head:
        yield Finding(
            "head_is_newest", "error", f"version {subject.published} is published, and the head is {subject.head}",
            version=subject.published, column="published_version", catalog=subject.published,
        )  # fmt: skip


def spans_equal_replay(subject: Subject) -> Iterator[Finding]:
    """Every span ends where the log's rows end it: what is live by spans is live by replay, at every version."""
    bounds = {"table_id": subject.table_id, "version": subject.head}
    with subject.store.reading() as queries:
        rows = queries.rows("spans_differ", **bounds)
    for row in rows:
        yield wrong_span(row["version"], row["path"], row["removed_version"], row["ends_at"])
    yield from registered_equal_replay(subject)


def registered_equal_replay(subject: Subject) -> Iterator[Finding]:
    """The same for application transactions and domains."""
    for row in subject.store.rows("registered_differ", table_id=subject.table_id, version=subject.head):
        yield Finding(
            "spans_equal_replay", "error",
            f"the {row['kind']} {row['name']!r} holds {_until(row['superseded_version'])} by its span, and "
            f"{_until(row['ends_at'])} by the log's rows",
            version=row["version"], path=row["name"], column="superseded_version", catalog=row["superseded_version"],
            log=row["ends_at"],
        )  # fmt: skip


def wrong_span(version: int, path: str, removed: int | None, ends_at: int | None) -> Finding:
    """A file whose span says something else than the actions on it."""
    return Finding(
        "spans_equal_replay", "error",
        f"it is live {_until(removed)} by its span, and {_until(ends_at)} by the log's rows",
        version=version, path=path, column="removed_version", catalog=removed, log=ends_at,
    )  # fmt: skip


def _until(version: int | None) -> str:
    return "until now" if version is None else f"up to version {version}"


def published_in_time(subject: Subject) -> Iterator[Finding]:
    """Nothing waits for publishing too long, and no attempt has failed."""
    if subject.table["foreign_version"] is not None:
        yield Finding(
            "foreign_commit", "error",
            f"an outside engine has written version {subject.table['foreign_version']} into the log; "
            f"decide by: mainstem resolve {subject.name}",
            version=subject.table["foreign_version"],
        )  # fmt: skip
    if subject.published < subject.head:
        bounds = {"table_id": subject.table_id, "first": subject.published + 1, "last": subject.head}
        for row in subject.store.rows("mirror_rows", **bounds):
            yield Finding(
                "published_in_time", "warning",
                f"it is not published yet ({row['status']}, {row['attempts']} attempts)"
                + (f": {row['last_error']}" if row["last_error"] else "")
                + f"; publish it by: mainstem publish {subject.name}",
                version=row["version"],
            )  # fmt: skip
