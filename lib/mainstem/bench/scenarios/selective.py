"""Rows of a few files of a very large table: the first query of a session, and the same query again.

All read the rows of the same files. Mainstem's first query connects to the catalog, asks it for the files that may
match, and mounts them; the next one finds the mount. Delta's first query rebuilds the table's state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mainstem.bench.changed import Tables, selection, tables
from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import delta_cold
from mainstem.bench.target import Target, times_as_fast, times_as_long
from mainstem.catalog import Catalog, open_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIRST, _AGAIN = "Mainstem on Postgres, first query", "Mainstem on Postgres, the same query again"
_COLD, _WARM = "Delta Spark, first query", "Delta Spark, the same query again"


def _rows(frame: DataFrame) -> int:
    """How many rows there are, by one column of each."""
    from pyspark.sql import functions as F  # noqa: N812  as every user of Spark calls it

    row = frame.agg(F.count("customer")).first()
    assert row is not None
    return int(row[0])


def _query(catalog: Catalog, where: str) -> int:
    return _rows(catalog.table(TABLE).read(where=where))


def _first(lab: Lab, pair: Tables, where: str) -> Contender:
    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        opened: list[Catalog] = []

        def call() -> int:
            opened.append(open_catalog(pair.uri, spark=lab.spark))
            return _query(opened[0], where)

        try:
            yield call
        finally:
            for catalog in opened:
                catalog.close()

    return Contender(_FIRST, turn)


def _again(lab: Lab, pair: Tables, where: str) -> Contender:
    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with open_catalog(pair.uri, spark=lab.spark) as catalog:
            for _ in range(2):
                _query(catalog, where)
            yield lambda: _query(catalog, where)

    return Contender(_AGAIN, turn)


def _delta(lab: Lab, pair: Tables, where: str, *, warm: bool) -> Contender:
    def call() -> int:
        return _rows(lab.spark.read.format("delta").load(str(pair.theirs)).where(where))

    before = call if warm else None
    return Contender(_WARM if warm else _COLD, delta_cold(lab.spark, lab.scale.default_partitions, call, before=before))


def _contenders(lab: Lab) -> Sequence[Contender]:
    pair = tables(lab, lab.scale.large)
    where, _ = selection(pair, lab.scale.matching)
    return [
        _first(lab, pair, where),
        _again(lab, pair, where),
        _delta(lab, pair, where, warm=False),
        _delta(lab, pair, where, warm=True),
    ]


def _targets(scale: Scale) -> Sequence[Target]:
    return [times_as_fast(_FIRST, 10, as_whom=_COLD), times_as_long(_AGAIN, 1.2, as_whom=_WARM)]


SCENARIO = Scenario(
    "selective", "A selective query on a very large table", _contenders, _targets, lambda scale: scale.large_rounds
)
