"""Ten times the commits, the adds and the removes, and as many live files: does the past cost anything?"""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.bench.lab import Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import MAINSTEM, mainstem_open
from mainstem.bench.target import Target, times_as_long


def _long(engine: str) -> str:
    return f"{MAINSTEM[engine]}, ten times the history"


def _contenders(lab: Lab) -> Sequence[Contender]:
    found = []
    for engine in MAINSTEM:
        found.append(mainstem_open(engine, lab.catalog(engine, lab.scale.table)))
        long = lab.catalog(engine, lab.scale.history)
        found.append(mainstem_open(engine, long, name=_long(engine)))
        found.append(mainstem_open(engine, long, name=f"{_long(engine)}, by rows", image_files=0))
    return found


def _targets(scale: Scale) -> Sequence[Target]:
    return [times_as_long(_long("postgres"), 1.2, as_whom=MAINSTEM["postgres"])]


SCENARIO = Scenario("history", "Cold open after ten times the history", _contenders, _targets)
