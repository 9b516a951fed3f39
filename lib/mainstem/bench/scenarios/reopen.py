"""A process has the table in memory; ten commits later it wants the newest version, with all live files in Arrow.

The target speaks of a cold open, and was set when every cold open read the rows. An image makes that one faster, and
not this one: both stand here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import DELTA_RS, MAINSTEM, by_rows, delta_rs, mainstem_open, mainstem_open_by_rows
from mainstem.bench.target import Target, times_as_fast
from mainstem.catalog import open_catalog

_COMMITS = 10


def _reopened(name: str) -> str:
    return f"{name}, reopened"


def _mainstem(engine: str, uri: str, version: int) -> Contender:
    """The snapshot of ten commits ago, with its files, is there before; so is a connection."""

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with open_catalog(uri) as catalog:
            known = catalog.table(TABLE).snapshot(version=version)
            known.to_arrow()
            yield lambda: int(known.refresh().to_arrow().num_rows)

    return Contender(_reopened(MAINSTEM[engine]), turn)


def _delta_rs(log: Path, version: int, rounds: int) -> Contender:
    """The same: the table of ten commits ago is loaded before."""
    table = delta_rs()

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        import pyarrow as pa

        known = table(str(log), version=version)

        def call() -> int:
            known.update_incremental()
            return int(pa.table(known.get_add_actions()).num_rows)

        yield call

    return Contender(_reopened(DELTA_RS), turn, rounds)


def _contenders(lab: Lab) -> Sequence[Contender]:
    recipe = lab.scale.table
    before = recipe.last - _COMMITS
    found = [_delta_rs(lab.log(recipe), before, lab.scale.slow_rounds)]
    for engine in MAINSTEM:
        uri = lab.catalog(engine, recipe)
        found += [mainstem_open(engine, uri), _mainstem(engine, uri, before)]
    found.append(mainstem_open_by_rows("postgres", lab.catalog("postgres", recipe)))
    return found


def _targets(scale: Scale) -> Sequence[Target]:
    name = MAINSTEM["postgres"]
    return [times_as_fast(_reopened(name), 20, as_whom=other) for other in (by_rows("postgres"), name)]


SCENARIO = Scenario("reopen", "Reopening after ten commits", _contenders, _targets)
