"""Delete one partition of a very large table. Neither side reads data for it: the files of a day are removed whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mainstem.bench.changed import Tables, day_of, tables
from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import delta_cold
from mainstem.bench.target import Target, times_as_fast
from mainstem.catalog import open_catalog

_MAINSTEM, _COLD = "Mainstem on Postgres", "Delta Spark cold"


def _mainstem(lab: Lab, pair: Tables) -> Contender:
    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with open_catalog(pair.uri, spark=lab.spark) as catalog:
            table = catalog.table(TABLE)
            day = day_of(pair.recipe, table.version - pair.recipe.last)
            yield lambda: int(table.delete(f"date = '{day}'").changed)

    return Contender(_MAINSTEM, turn)


def _delta(lab: Lab, pair: Tables) -> Contender:
    def call() -> int:
        day = day_of(pair.recipe, pair.commits)
        lab.spark.sql(f"DELETE FROM delta.`{pair.theirs}` WHERE date = '{day}'").collect()  # noqa: S608
        return 1

    return Contender(_COLD, delta_cold(lab.spark, lab.scale.default_partitions, call))


def _contenders(lab: Lab) -> Sequence[Contender]:
    pair = tables(lab, lab.scale.large)
    return [_mainstem(lab, pair), _delta(lab, pair)]


def _targets(scale: Scale) -> Sequence[Target]:
    return [times_as_fast(_MAINSTEM, 5, as_whom=_COLD)]


SCENARIO = Scenario(
    "deleting", "DELETE of one partition of a very large table", _contenders, _targets, lambda scale: scale.large_rounds
)
