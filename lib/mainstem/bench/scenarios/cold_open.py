"""Open a table of which nothing is known, and have all its live files in Arrow."""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.bench.lab import Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import (
    DELTA_RS,
    MAINSTEM,
    delta_rs_open,
    delta_spark,
    delta_spark_open,
    mainstem_open,
    mainstem_open_by_rows,
)
from mainstem.bench.target import Target, p95_below, times_as_fast

_PARTITIONS = 2  # the best for a small machine


def _contenders(lab: Lab) -> Sequence[Contender]:
    recipe, slow = lab.scale.table, lab.scale.slow_rounds
    log = lab.log(recipe)
    return [
        *(mainstem_open(engine, lab.catalog(engine, recipe)) for engine in MAINSTEM),
        *(mainstem_open_by_rows(engine, lab.catalog(engine, recipe)) for engine in MAINSTEM),
        delta_rs_open(log),
        delta_spark_open(lab.spark, log, partitions=_PARTITIONS, rounds=slow),
        delta_spark_open(lab.spark, log, partitions=lab.scale.default_partitions, rounds=slow),
    ]


def _targets(scale: Scale) -> Sequence[Target]:
    return [
        times_as_fast(MAINSTEM["postgres"], 8, as_whom=delta_spark(_PARTITIONS)),
        times_as_fast(MAINSTEM["postgres"], 2, as_whom=DELTA_RS),
        p95_below(MAINSTEM["postgres"], 800),
        times_as_fast(MAINSTEM["sqlite"], 1.5, as_whom=DELTA_RS),
        times_as_fast(MAINSTEM["duckdb"], 1.5, as_whom=DELTA_RS),
    ]


SCENARIO = Scenario("cold_open", "Cold open, all live files to Arrow", _contenders, _targets)
