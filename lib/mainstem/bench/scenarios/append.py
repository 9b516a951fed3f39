"""Append one small DataFrame, end to end: what was appended is durable and published when the call returns.

Delta is warm on the small table, as a process that appends all day is, and cold on the large one, as one that starts.
There it rebuilds its state first, unless the newest version has a checksum file (`.crc`), as Delta Spark's own commits
have and those of other engines have not: both are measured, and the target is about the rebuilding.
Mainstem keeps nothing of a table between two appends: its mount for an append holds none of the table's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mainstem.bench.changed import Tables, small_rows, tables
from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import delta_cold
from mainstem.bench.target import Target, times_as_fast, times_as_long
from mainstem.catalog import open_catalog

_MAINSTEM, _WARM = "Mainstem, few live files", "Delta Spark warm, few live files"
_LARGE, _COLD = "Mainstem, very many live files", "Delta Spark cold, very many live files"
_SUMMED = f"{_COLD}, with its checksum"


def _mainstem(lab: Lab, name: str, pair: Tables, rounds: int) -> Contender:
    rows = small_rows(lab.spark, pair.recipe)

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with open_catalog(pair.uri, spark=lab.spark) as catalog:
            table = catalog.table(TABLE)
            table.append(rows)  # a process that has appended before
            yield lambda: int(table.append(rows).changed)

    return Contender(name, turn, rounds)


def _delta_warm(lab: Lab, pair: Tables, rounds: int) -> Contender:
    rows = small_rows(lab.spark, pair.recipe)

    def call() -> int:
        rows.write.format("delta").mode("append").save(str(pair.theirs))
        return 1

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        call()
        yield call

    return Contender(_WARM, turn, rounds)


def _delta_cold(lab: Lab, pair: Tables, name: str, *, summed: bool) -> Contender:
    rows = small_rows(lab.spark, pair.recipe)

    def call() -> int:
        rows.write.format("delta").mode("append").save(str(pair.theirs))
        return 1

    def before() -> int:
        if summed:
            return 0
        found = list((pair.theirs / "_delta_log").glob("[0-9]*.crc"))
        for file in found:
            file.unlink()
        return len(found)

    turn = delta_cold(lab.spark, lab.scale.default_partitions, call, before=before)
    return Contender(name, turn, lab.scale.large_rounds)


def _contenders(lab: Lab) -> Sequence[Contender]:
    few, many = tables(lab, lab.scale.few), tables(lab, lab.scale.large)
    rounds = lab.scale.slow_rounds
    return [
        _mainstem(lab, _MAINSTEM, few, rounds),
        _delta_warm(lab, few, rounds),
        _mainstem(lab, _LARGE, many, rounds),
        _delta_cold(lab, many, _COLD, summed=False),
        _delta_cold(lab, many, _SUMMED, summed=True),
    ]


def _targets(scale: Scale) -> Sequence[Target]:
    return [
        times_as_long(_MAINSTEM, 1.5, as_whom=_WARM),
        times_as_long(_LARGE, 1.2, as_whom=_MAINSTEM),
        times_as_fast(_LARGE, 10, as_whom=_COLD),
    ]


SCENARIO = Scenario("append", "Append of one small DataFrame", _contenders, _targets, lambda scale: scale.slow_rounds)
