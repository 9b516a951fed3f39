"""What was compared, by the features that the corpus exercises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any, ClassVar

from corpus import CorpusTable

# The engine, the table's features, and an `Outcome` as a list: what one process can hand to another.
Said = tuple[str, list[str], list[Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a table fared on one engine: how many of its versions equalled whose."""

    refused: bool
    versions: int = 0
    equal_to_delta: int = 0
    equal_to_deltars: int = 0


@dataclass
class FeatureReport:
    """Puts a table's outcome into its test's report; a table that failed has none and is counted as such nowhere."""

    NAME: ClassVar = "corpus"
    properties: list[tuple[str, object]]

    def add(self, engine: str, table: CorpusTable, outcome: Outcome) -> None:
        self.properties.append((self.NAME, (engine, sorted(table.features), list(astuple(outcome)))))


def text_of(said: Iterable[Said]) -> str:
    """A table for people, one row a feature; a Delta table counts under each feature that it has."""
    by_feature: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for engine, features, outcome in said:
        for feature in ("(all)", *features):
            by_feature[engine, feature].append(Outcome(*outcome))
    head = ("engine", "feature", "tables", "refused", "versions", "= Delta Spark", "= delta-rs")
    rows = [head, *((*key, *_sums(found)) for key, found in sorted(by_feature.items()))]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)


def _sums(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    found = list(outcomes)
    return (
        str(len(found)),
        str(sum(outcome.refused for outcome in found)),
        str(sum(outcome.versions for outcome in found)),
        str(sum(outcome.equal_to_delta for outcome in found)),
        str(sum(outcome.equal_to_deltars for outcome in found)),
    )
