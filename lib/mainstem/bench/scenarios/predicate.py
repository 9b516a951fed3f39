"""Which files may hold rows of a range of ids? Asked again and again by a process that knows the table.

All look for a newer version first, as a query does. Delta has the state of the table in Spark's cache, and Mainstem has
the snapshot in memory; a process that asks the database instead stands beside it. delta-rs is not here: its Python API
lists files by partition only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.bench.generator import ROWS, first_id
from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.recipe import Recipe
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import MAINSTEM, clear_delta_cache
from mainstem.bench.target import Target, times_as_fast
from mainstem.catalog import open_catalog
from mainstem.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = "Delta Spark, warm"


def _where(recipe: Recipe, files: int) -> str:
    """A range of ids that so many live files in the middle of the table hold: no id is in two of them."""
    live = recipe.live_at(recipe.last)
    middle = len(live) // 2
    first, last = first_id(live[[middle, middle + files - 1]])
    return f"id BETWEEN {first} AND {last + ROWS - 1}"


def _in_memory(engine: str, uri: str, where: str) -> Contender:
    known: list[Snapshot] = []

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        if not known:
            known.append(open_catalog(uri).table(TABLE).snapshot())
            known[0].to_arrow()
        known[0].refresh().to_arrow(where=where)  # a process that has asked before, and has connected
        yield lambda: int(known[0].refresh().to_arrow(where=where).num_rows)

    return Contender(MAINSTEM[engine], turn)


def _by_sql(engine: str, uri: str, where: str) -> Contender:
    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with open_catalog(uri) as catalog:
            table = catalog.table(TABLE)
            table.snapshot().to_arrow(where=where)
            yield lambda: int(table.snapshot().to_arrow(where=where).num_rows)

    return Contender(f"{MAINSTEM[engine]}, by SQL", turn)


def _delta_spark(spark: SparkSession, log: Path, where: str) -> Contender:
    """Delta's state is in Spark's cache, from the turn before; `inputFiles` plans the scan and runs nothing."""

    def call() -> int:
        return len(spark.read.format("delta").load(str(log)).where(where).inputFiles())

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        call()
        yield call

    return Contender(_DELTA, turn)


def _contenders(lab: Lab) -> Sequence[Contender]:
    recipe = lab.scale.table
    where = _where(recipe, lab.scale.matching)
    clear_delta_cache(lab.spark)
    return [
        *(each(engine, lab.catalog(engine, recipe), where) for engine in MAINSTEM for each in (_in_memory, _by_sql)),
        _delta_spark(lab.spark, lab.log(recipe), where),
    ]


def _targets(scale: Scale) -> Sequence[Target]:
    return [times_as_fast(MAINSTEM["postgres"], 4, as_whom=_DELTA)]


SCENARIO = Scenario(
    "predicate", "Files for a predicate, known table", _contenders, _targets, lambda scale: 2 * scale.slow_rounds
)
