"""Bring a log into an empty catalog, with its whole history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import MAINSTEM
from mainstem.bench.target import Target, rate
from mainstem.catalog import open_catalog


def _mainstem(lab: Lab, engine: str, log: Path) -> Contender:
    """Without Spark, by one process. Every turn has an empty catalog, which is made and dropped outside of it."""

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with lab.new_catalog(engine) as uri, open_catalog(uri) as catalog:
            yield lambda: catalog.import_table(str(log), name=TABLE).actions

    return Contender(MAINSTEM[engine], turn)


def _contenders(lab: Lab) -> Sequence[Contender]:
    log = lab.log(lab.scale.table)
    return [_mainstem(lab, engine, log) for engine in MAINSTEM]


def _targets(scale: Scale) -> Sequence[Target]:
    return [rate(MAINSTEM["postgres"], 50_000, unit="actions imported in a second")]


SCENARIO = Scenario(
    "importing", "Import of a log with its history", _contenders, _targets, lambda scale: scale.slow_rounds
)
