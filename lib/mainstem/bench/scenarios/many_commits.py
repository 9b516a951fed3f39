"""The same files as in a cold open, in many more commits."""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.bench.lab import Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import DELTA_RS, MAINSTEM, delta_rs_open, delta_spark_open, mainstem_open
from mainstem.bench.target import Target, p95_below, times_as_fast

_PARTITIONS = 2


def _contenders(lab: Lab) -> Sequence[Contender]:
    recipe = lab.scale.commits
    log = lab.log(recipe)
    return [
        *(mainstem_open(engine, lab.catalog(engine, recipe)) for engine in MAINSTEM),
        delta_rs_open(log),
        delta_spark_open(lab.spark, log, partitions=_PARTITIONS, rounds=lab.scale.slow_rounds),
    ]


def _targets(scale: Scale) -> Sequence[Target]:
    return [
        times_as_fast(MAINSTEM["postgres"], 2, as_whom=DELTA_RS),
        p95_below(MAINSTEM["postgres"], 500),
    ]


SCENARIO = Scenario("many_commits", "Cold open after very many commits", _contenders, _targets)
