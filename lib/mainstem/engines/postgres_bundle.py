"""Several changes as one statement of Postgres, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mainstem import sqltext


class Bundle(NamedTuple):
    """A statement that makes all changes, and gives their counts and the clock. Values are named by `own_name`."""

    text: str
    parts: list[sqltext.Bound]


def own_name(place: int, name: str) -> str:
    """What a value of one of the changes is called in the bundle."""
    return f"s{place}_{name}"


def bundled(statements: Sequence[str], *, durable: bool) -> Bundle:
    """Data-modifying CTEs all see what was there before the statement: none builds on another's outcome."""
    parts = [
        sqltext.bind(each, lambda name, place=place: f"%({own_name(place, name)})s", double_percent=True)  # type: ignore[misc]
        for place, each in enumerate(statements)
    ]
    changes = ", ".join(f"c{place} AS ({part.text}\nRETURNING 1)" for place, part in enumerate(parts))
    counts = "".join(f"(SELECT count(*) FROM c{place}), " for place in range(len(parts)))  # noqa: S608
    lazily = "" if durable else " FROM set_config('synchronous_commit', 'off', true)"
    return Bundle(f"WITH {changes} SELECT {counts}clock_timestamp(){lazily}", parts)
