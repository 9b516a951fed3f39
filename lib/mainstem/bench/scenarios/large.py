"""Spark reads all rows of all live files of a log that is too large for a driver: over JDBC, and by Delta itself.

All columns of all rows are read and thrown away (Spark's `noop` sink), so that no writer is measured. Delta has the log
as a clean-up would leave it: its newest checkpoint and the commits since. It is tried once with each number of snapshot
partitions, and takes part with the one that was best.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import delta_spark_cold
from mainstem.bench.target import Target, times_as_fast
from mainstem.catalog import open_catalog
from mainstem.snapshot import FilesEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPANS, _REPLAY = "Mainstem on Postgres, spans", "Mainstem on Postgres, replay"


def _mainstem(lab: Lab, name: str, uri: str, engine: FilesEngine) -> Contender:
    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with open_catalog(uri, spark=lab.spark) as catalog:
            yield lambda: _read(catalog.table(TABLE).snapshot().files(engine=engine))

    return Contender(name, turn)


def _read(files: DataFrame) -> int:
    """Read everything; how many rows that was, counted as they pass."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812  as every user of Spark calls it

    passed = Observation()
    files.observe(passed, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(passed.get["rows"])


def _delta(scale: Scale) -> str:
    return f"Delta Spark, best of {', '.join(map(str, scale.partitions))} partitions"


def _delta_at_its_best(lab: Lab, log: Path) -> Contender:
    best: list[int] = []

    def seconds(partitions: int) -> float:
        with delta_spark_cold(lab.spark, log, partitions, _read)() as call:
            start = time.perf_counter()
            call()
            found = time.perf_counter() - start
        lab.report(f"Delta Spark with {partitions} partitions, to find the best: {found:.1f} s")
        return found

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        if not best:
            best.append(min(lab.scale.partitions, key=seconds))
        with delta_spark_cold(lab.spark, log, best[0], _read)() as call:
            yield call

    return Contender(_delta(lab.scale), turn)


def _contenders(lab: Lab) -> Sequence[Contender]:
    recipe = lab.scale.large
    log, uri = lab.log(recipe, since=recipe.checkpoint), lab.catalog("postgres", recipe)
    return [
        _mainstem(lab, _SPANS, uri, "spans"),
        _mainstem(lab, _REPLAY, uri, "replay"),
        _delta_at_its_best(lab, log),
    ]


def _targets(scale: Scale) -> Sequence[Target]:
    return [times_as_fast(_SPANS, 6, as_whom=_delta(scale)), times_as_fast(_REPLAY, 1.5, as_whom=_delta(scale))]


SCENARIO = Scenario(
    "large", "Spark reads all rows of a very large log", _contenders, _targets, lambda scale: scale.large_rounds
)
