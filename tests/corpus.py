"""The conformance corpus: real Delta tables of other projects, read and never changed.

It lies beside the repository, or where MAINSTEM_CORPUS says. `from corpus import corpus_tables` works in every test.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"

ABSENT = (
    "the conformance corpus is neither at ../shared/corpus nor where MAINSTEM_CORPUS says: nothing was compared with it"
)


@dataclass(frozen=True, slots=True)
class CorpusTable:
    """One row of the manifest. `name` is its folder inside of the corpus; numbers are None where a log has none."""

    name: str
    root: Path
    first_version: int | None
    last_version: int | None
    commits: int
    checkpoints: int
    features: frozenset[str]
    expected: Path | None
    deltars_version: int | None
    deltars_files: int | None
    deltars_error: str | None

    def __str__(self) -> str:
        return self.name


def corpus_root() -> Path | None:
    """The folder of the corpus, or None if this machine has none. A MAINSTEM_CORPUS that leads nowhere is an error."""
    given = os.environ.get("MAINSTEM_CORPUS")
    root = Path(given) if given else _BESIDE
    if (root / "manifest.csv").is_file():
        return root
    if given:
        raise FileNotFoundError(f"MAINSTEM_CORPUS names {given}, which holds no manifest.csv")
    return None


@cache
def corpus_tables() -> tuple[CorpusTable, ...]:
    """Every table of the manifest, in its order; none if the corpus is absent. May be called at collection."""
    root = corpus_root()
    if root is None:
        return ()
    with (root / "manifest.csv").open(newline="", encoding="utf-8") as manifest:
        return tuple(_table(root, row) for row in csv.DictReader(manifest))


def corpus_params(*, without: Collection[str] = ()) -> list[ParameterSet]:
    """One parameter a table, named by its folder; without the corpus a single one, skipped, that says so."""
    tables = [table for table in corpus_tables() if table.name not in without]
    if not tables:
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=ABSENT))]
    return [pytest.param(table, id=table.name) for table in tables]


def _table(root: Path, row: dict[str, str]) -> CorpusTable:
    folder = root / row["table_root"]
    return CorpusTable(
        name=row["table_root"],
        root=folder,
        first_version=_number(row["vmin"]),
        last_version=_number(row["vmax"]),
        commits=_number(row["commits"]) or 0,
        checkpoints=_number(row["checkpoints"]) or 0,
        features=frozenset(row["features"].split()),
        expected=folder.parent / row["expected"] if row["expected"] else None,
        deltars_version=_number(row["deltars_version"]),
        deltars_files=_number(row["deltars_files"]),
        deltars_error=row["deltars_error"] or None,
    )


def _number(text: str) -> int | None:
    return int(text) if text else None
