"""How large a run is: the recipes of its tables, and how often each contender has its turn."""

from __future__ import annotations

from dataclasses import dataclass

from mainstem.bench.recipe import Recipe
from mainstem.errors import UsageError


@dataclass(frozen=True)
class Scale:
    """The tables and rounds of one run. The targets are meant for `full`; smaller scales show that everything runs."""

    name: str
    table: Recipe  # what most scenarios open
    commits: Recipe  # the same files in many more commits
    history: Recipe  # ten times the commits and actions, as many live files
    large: Recipe  # for Spark
    written: Recipe  # what commits are made to
    each: int  # commits of each writer in a turn; one writer alone makes eight times as many
    bulk: int  # adds of a large commit
    few: Recipe  # a table so small that Delta has its state at once
    matching: int  # files that the predicate finds
    partitions: tuple[int, ...]  # settings of Delta Spark for the large log, of which the best one counts
    rounds: int  # turns of what takes milliseconds
    slow_rounds: int  # turns of what takes seconds
    large_rounds: int  # turns on the large log
    crowd: int = 16  # processes that write at once, at most
    default_partitions: int = 50  # what Delta Spark has unless told otherwise


FULL = Scale(
    name="full",
    table=Recipe(adds=144_000, removes=43_176, commits=2000),
    commits=Recipe(adds=144_000, removes=43_176, commits=50_000),
    history=Recipe(adds=1_440_000, removes=1_339_176, commits=20_000),
    large=Recipe(adds=5_000_000, removes=2_000_000, commits=20_000),
    written=Recipe(adds=10_000, removes=3_000, commits=1000),
    each=16,
    bulk=100_000,
    few=Recipe(adds=1500, removes=500, commits=202),
    matching=35,
    partitions=(16, 50, 100),
    rounds=50,
    slow_rounds=10,
    large_rounds=3,
)
SMALL = Scale(
    name="small",
    table=Recipe(adds=7200, removes=2159, commits=200),
    commits=Recipe(adds=7200, removes=2159, commits=2500),
    history=Recipe(adds=72_000, removes=66_959, commits=2000),
    large=Recipe(adds=50_000, removes=20_000, commits=500),
    written=Recipe(adds=1000, removes=300, commits=100),
    each=4,
    bulk=5000,
    few=Recipe(adds=1500, removes=500, commits=202),
    matching=35,
    partitions=(2, 50),
    rounds=5,
    slow_rounds=3,
    large_rounds=2,
)
SCALES = {scale.name: scale for scale in (SMALL, FULL)}


def scale_named(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise UsageError(f"there is no scale {name!r}.", hint=f"There are {' and '.join(SCALES)}.")
    return SCALES[name]
