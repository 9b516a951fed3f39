"""Commits of one add each, by one process and by several at once, on one table and on a table each.

Every process has the table open before. On one table all begin with the same log of many commits; a table each is new.
`ratified` is durable and visible through Mainstem; `published` is that and the file in the log, which is all that
delta-rs does. Neither delta-rs nor the Postgres of this benchmark waits for the disk; SQLite, DuckDB and the Postgres
`with fsync` do. DuckDB, which one process at a time has open, is measured with one writer only. All write a checkpoint
every hundred versions. Mainstem checks for conflicts with what came since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from mainstem.bench.crew import Work
from mainstem.bench.lab import Lab
from mainstem.bench.race import Contender, UnequalWork
from mainstem.bench.recipe import Recipe
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import DELTA_RS, MAINSTEM, delta_rs
from mainstem.bench.target import Target, rate, times_as_fast
from mainstem.bench.writers import delta_rs_writer, mainstem_writer
from mainstem.bench.written import catalog_table, log_table
from mainstem.catalog import open_catalog

_ALONE = 8  # times as many commits by one writer alone


def _ratified(engine: str) -> str:
    return f"{MAINSTEM[engine]}, ratified"


def _published(engine: str) -> str:
    return f"{MAINSTEM[engine]}, published"


_DURABLE = {
    _ratified("postgres"): f"{MAINSTEM['postgres']} with fsync, ratified",
    _published("postgres"): f"{MAINSTEM['postgres']} with fsync, published",
}


def _contender(
    lab: Lab, name: str, work: Work, places: Sequence[tuple[Any, ...]], heads: Callable[[], int], count: int
) -> Contender:
    """One writer a place. What it takes to be ready is not measured, and after each turn the commits are counted."""

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        token, before = uuid4().hex[:12], heads()
        each = [(*place[:-1], f"{token}-{number}", count, *place[-1]) for number, place in enumerate(places)]
        with lab.crew.ready(work, each) as go:
            yield go
        if (made := heads() - before) != len(places) * count:
            raise UnequalWork(f"{name} has made {made} versions of {len(places) * count}.", hint="Please report this.")

    return Contender(name, turn)


def _mainstem(
    lab: Lab, engine: str, name: str, tables: Sequence[str], recipe: Recipe | None, *, writers: int, publish: bool
) -> Contender:
    uri = lab.kept_catalog(engine, durable=name in _DURABLE.values())
    for table in tables:
        catalog_table(lab, uri, table, recipe)
    settings = ({"publish_on_commit": publish, "max_unpublished": 0},)  # all rounds of a run wait, if they are not

    def heads() -> int:
        with open_catalog(uri) as catalog:
            return sum(catalog.table(table).version for table in tables)

    places = [(uri, tables[number % len(tables)], settings) for number in range(writers)]
    return _contender(lab, name, mainstem_writer, places, heads, _count(lab.scale, writers))


def _delta_rs(lab: Lab, tables: int, recipe: Recipe | None, *, writers: int, name: str = DELTA_RS) -> Contender:
    folders = [str(log_table(lab, recipe)) for _ in range(tables)]

    def heads() -> int:
        return sum(int(delta_rs()(folder).version()) for folder in folders)

    places = [(folders[number % tables], ()) for number in range(writers)]
    return _contender(lab, name, delta_rs_writer, places, heads, _count(lab.scale, writers))


def _count(scale: Scale, writers: int) -> int:
    return scale.each * (_ALONE if writers == 1 else 1)


def _scenario(name: str, title: str, targets: Sequence[Target], *, writers: int, tables: int) -> Scenario:
    def contenders(lab: Lab) -> Sequence[Contender]:
        recipe = lab.scale.written if tables == 1 else None
        crowd = min(writers, lab.scale.crowd)
        names = [f"bench.t{number}" for number in range(min(tables, crowd))]
        found = [_delta_rs(lab, len(names), recipe, writers=crowd)]
        for engine in MAINSTEM if writers == 1 else ("postgres", "sqlite"):
            for label, publish in ((_ratified(engine), False), (_published(engine), True)):
                for own in (label, *filter(None, [_DURABLE.get(label)])):
                    found.append(_mainstem(lab, engine, own, names, recipe, writers=crowd, publish=publish))
        if writers == 1:
            found.append(_delta_rs(lab, 1, None, writers=1, name=f"{DELTA_RS}, new table"))
        return found

    return Scenario(name, title, contenders, lambda scale: targets, lambda scale: scale.slow_rounds)


def _times(times: float) -> list[Target]:
    return [times_as_fast(name("postgres"), times, as_whom=DELTA_RS) for name in (_ratified, _published)]


SCENARIOS = (
    _scenario("commits_1", "Commits of one add by one writer", _times(15), writers=1, tables=1),
    _scenario("commits_4", "Commits by 4 writers on one table", _times(15), writers=4, tables=1),
    _scenario("commits_16", "Commits by 16 writers on one table", _times(40), writers=16, tables=1),
    _scenario(
        "commits_4_tables", "Commits by 4 writers on a table each",
        [rate(_ratified("postgres"), 450, unit="commits in a second")], writers=4, tables=4,
    ),
    _scenario(
        "commits_16_tables", "Commits by 16 writers on a table each",
        [rate(_ratified("postgres"), 450, unit="commits in a second")], writers=16, tables=16,
    ),
)  # fmt: skip
