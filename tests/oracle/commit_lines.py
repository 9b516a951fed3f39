"""The lines of a commit file, compared without loss: order, duplicates and the spelling of numbers count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from corpus import CorpusTable


class Tagged(NamedTuple):
    """A piece of JSON that is equal only to one of the same kind and the same spelling."""

    kind: str
    content: Any


def exact(line: bytes) -> Any:
    """JSON without loss: objects with their keys in order, also twice, and numbers as they are spelled."""
    return json.loads(
        line,
        object_pairs_hook=lambda pairs: Tagged("object", pairs),
        parse_int=lambda text: Tagged("number", text),
        parse_float=lambda text: Tagged("number", text),
    )


def lines_of(commit: bytes) -> list[Any]:
    """Every line of a commit file."""
    return [exact(line) for line in commit.split(b"\n") if line.strip()]


def expected_lines(commit: bytes) -> list[Any]:
    """What writing a commit again must give: commitInfo first, and all else as it stands."""
    lines = [_without_nulls_beside(line) for line in lines_of(commit)]
    return sorted(lines, key=lambda line: line.content[0][0] != "commitInfo")


def _without_nulls_beside(line: Tagged) -> Tagged:
    """Old writers name every kind of action on each line and leave all but one null; those nulls are not kept."""
    return Tagged("object", [(name, body) for name, body in line.content if body is not None])


def commits_of(table: CorpusTable) -> Iterator[Path]:
    """The commit files of a table, in order."""
    return iter(sorted((table.root / "_delta_log").glob("[0-9]" * 20 + ".json")))
