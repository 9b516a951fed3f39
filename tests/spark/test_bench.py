"""Every scenario of the benchmark runs, on a table so small that its times say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.bench import report
from mainstem.bench.lab import Lab
from mainstem.bench.recipe import Recipe
from mainstem.bench.scale import SMALL
from mainstem.bench.scenario import Scenario
from mainstem.bench.scenarios import SCENARIOS

pytestmark = pytest.mark.spark

TINY = replace(
    SMALL,
    name="tiny",
    table=Recipe(adds=300, removes=100, commits=40),
    commits=Recipe(adds=300, removes=100, commits=60),
    history=Recipe(adds=3000, removes=2800, commits=400),
    large=Recipe(adds=400, removes=150, commits=30),
    written=Recipe(adds=40, removes=10, commits=20),
    each=1,
    crowd=2,
    bulk=20,
    few=Recipe(adds=40, removes=10, commits=15),
    matching=7,
    partitions=(1, 2),
    rounds=1,
    slow_rounds=1,
    large_rounds=1,
    default_partitions=3,
)
WORK = {
    "cold_open": 200, "many_commits": 200, "history": 200, "head": 39, "reopen": 200, "predicate": 7,
    "importing": 442, "large": 250, "commits_1": 8, "commits_4": 2, "commits_16": 2, "commits_4_tables": 2,
    "commits_16_tables": 2, "bulk": 20, "selective": 1000, "append": 1, "deleting": 1,
}  # fmt: skip


# The same contenders as others that are in every run, on another table or with more writers.
SLOW = {"many_commits", "history", "commits_16", "commits_4_tables", "commits_16_tables"}


def _each() -> Iterator[object]:
    for scenario in SCENARIOS:
        marks = pytest.mark.slow if scenario.name in SLOW else ()
        yield pytest.param(scenario, id=scenario.name, marks=marks)


@pytest.fixture(scope="module")
def lab(spark: SparkSession, postgres_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(TINY, tmp_path_factory.mktemp("bench"), spark=spark, postgres=postgres_uri) as opened:
        yield opened


@pytest.mark.parametrize("scenario", list(_each()))
def test_a_scenario_gives_a_result_with_all_contenders(scenario: Scenario, lab: Lab, tmp_path: Path) -> None:
    result = scenario.run(lab)
    assert {each.name for each in result.samples} == {each.name for each in scenario.contenders(lab)}
    assert {each.amount for each in result.samples} == {WORK[scenario.name]}
    assert len(result.verdicts) == len(scenario.targets(TINY)) > 0
    missed = {verdict.target.who for verdict in result.verdicts if not verdict.met}
    assert set(result.spent) == missed
    assert all(path.stat().st_size for path in report.write(tmp_path, TINY, lab.facts(), [result]))


def test_every_contender_of_the_issue_is_measured(lab: Lab) -> None:
    names = {each.name for scenario in SCENARIOS for each in scenario.contenders(lab)}
    for wanted in (
        "Mainstem on Postgres",
        "Mainstem on SQLite",
        "Mainstem on DuckDB",
        "delta-rs",
        "Delta Spark, 2 partitions",
    ):
        assert wanted in names
