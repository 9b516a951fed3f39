"""What is the newest version, its schema and its protocol? On a new connection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import DELTA_RS, MAINSTEM, always, delta_rs
from mainstem.bench.target import Target, times_as_fast
from mainstem.catalog import open_catalog


def _mainstem(engine: str, uri: str) -> Contender:
    def call() -> int:
        with open_catalog(uri) as catalog:
            snapshot = catalog.table(TABLE).snapshot()
            assert snapshot.columns()
            assert snapshot.protocol.min_reader_version
            return snapshot.version

    return Contender(MAINSTEM[engine], always(call))


def _delta_rs(log: Path) -> Contender:
    """delta-rs 1.6 always loads the files too; its `without_files` is deprecated and ignored."""
    table = delta_rs()

    def call() -> int:
        opened = table(str(log))
        assert opened.schema().fields
        assert opened.protocol().min_reader_version
        return int(opened.version())

    return Contender(DELTA_RS, always(call))


def _contenders(lab: Lab) -> Sequence[Contender]:
    recipe = lab.scale.table
    return [*(_mainstem(engine, lab.catalog(engine, recipe)) for engine in MAINSTEM), _delta_rs(lab.log(recipe))]


def _targets(scale: Scale) -> Sequence[Target]:
    return [times_as_fast(MAINSTEM["postgres"], 30, as_whom=DELTA_RS)]


SCENARIO = Scenario("head", "Head, schema and protocol on a new connection", _contenders, _targets)
