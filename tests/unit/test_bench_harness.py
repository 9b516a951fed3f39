"""The benchmark's own machinery: turns, limits, reports. What it measures is tested where Spark is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from mainstem.bench import report
from mainstem.bench.harness import chosen
from mainstem.bench.lab import Lab
from mainstem.bench.race import Contender, Samples, UnequalWork, race, where_time_goes
from mainstem.bench.scale import FULL, SMALL, scale_named
from mainstem.bench.scenario import Result, Scenario
from mainstem.bench.scenarios import SCENARIOS
from mainstem.bench.target import p95_below, rate, times_as_fast, times_as_long
from mainstem.errors import UsageError


def contender(name: str, seen: list[str], *, amount: int = 1, rounds: int | None = None) -> Contender:
    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        def call() -> int:
            seen.append(name)
            return amount

        yield call

    return Contender(name, turn, rounds)


def samples(name: str, *times: float, amount: int = 1) -> Samples:
    return Samples(name, amount, times)


def test_every_round_begins_with_another_contender_after_a_turn_to_warm_up() -> None:
    seen: list[str] = []
    race([contender(name, seen) for name in "abc"], rounds=3)
    assert "".join(seen) == "abc" + "abc" + "bca" + "cab"


def test_a_slow_contender_has_fewer_turns_spread_over_all_rounds() -> None:
    seen: list[str] = []
    quick, slow = race([contender("quick", seen), contender("slow", seen, rounds=3)], rounds=12)
    assert (len(quick.times_ms), len(slow.times_ms)) == (12, 3)
    places = [place for place, name in enumerate(seen) if name == "slow"]
    assert places[-1] - places[1] > 6


def test_contenders_that_do_unequal_work_are_not_compared() -> None:
    with pytest.raises(UnequalWork, match="'a': 1, 'b': 2"):
        race([contender("a", []), contender("b", [], amount=2)], rounds=1)


def test_a_contender_that_changes_its_answer_is_found_out() -> None:
    answers = iter((1, 1, 2))

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        yield lambda: next(answers)

    with pytest.raises(UnequalWork, match="did 2 where it had done 1"):
        race([Contender("fickle", turn)], rounds=2)


def test_what_is_entered_and_left_around_a_turn_is_not_measured() -> None:
    inside: list[bool] = []

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        inside.append(True)
        yield lambda: len(inside)
        inside.pop()

    (found,) = race([Contender("one", turn)], rounds=4)
    assert (found.amount, len(found.times_ms), inside) == (1, 4, [])


def test_a_median_and_a_p95_are_those_of_the_samples() -> None:
    found = samples("a", *map(float, range(1, 101)))
    assert (found.median_ms, round(found.p95_ms, 2)) == (50.5, 95.05)
    assert samples("few", 1.0, 9.0, 2.0).p95_ms == 9.0
    assert samples("rate", 500.0, amount=100).per_second == 200.0


def test_limits_are_kept_from_the_right_side() -> None:
    measured = {each.name: each for each in (samples("us", 10.0), samples("them", 40.0), samples("others", 25.0))}
    assert times_as_fast("us", 4, as_whom="them").verdict(measured).met
    assert not times_as_fast("us", 4, as_whom=("them", "others")).verdict(measured).met
    assert times_as_long("them", 4, as_whom="us").verdict(measured).met
    assert not times_as_long("them", 3.9, as_whom="us").verdict(measured).met
    assert p95_below("us", 10).verdict(measured).met
    assert not rate("us", 101, unit="turns").verdict(measured).met


def test_where_time_goes_names_the_function() -> None:
    def laborious() -> int:
        total = 0
        for number in range(100_000):
            total += number % 7
        return total

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        yield laborious

    assert "laborious" in where_time_goes(Contender("a", turn))[0][0]


def results() -> list[Result]:
    target = times_as_fast("Mainstem | a", 100, as_whom="delta-rs")
    measured = [samples("Mainstem | a", 2.0, 4.0), samples("delta-rs", 20.0, 40.0)]
    scenario = Scenario("one", "One <thing>", lambda lab: [], lambda scale: [target])
    verdict = target.verdict({each.name: each for each in measured})
    return [Result(scenario, measured, [verdict], {"Mainstem | a": [("f (x.py:1)", 1.5)]})]


def test_a_report_is_a_table_a_plot_and_json(tmp_path: Path) -> None:
    report.write(tmp_path / "new" / "folder", SMALL, {"cores": "2"}, results())
    text, data, plot = (tmp_path / "new" / "folder" / name for name in report.FILES)
    row = "| One <thing> | Mainstem &#124; a: times as fast as delta-rs | ≥ 100× | 10× | **missed** |"
    assert row in text.read_text().splitlines()
    assert "where the time of Mainstem | a goes (under a profiler): f (x.py:1) 1.5 ms." in text.read_text()
    (scenario,) = orjson.loads(data.read_bytes())["scenarios"]
    assert scenario["contenders"][1]["times_ms"] == [20.0, 40.0]
    assert scenario["targets"][0]["met"] is False
    words = [element.text for element in ElementTree.fromstring(plot.read_bytes()).iter() if element.text]
    assert {"One <thing>", "delta-rs", "Mainstem | a"} <= set(words)


def test_scenarios_are_chosen_by_name_and_run_in_their_order() -> None:
    assert chosen([]) == list(SCENARIOS)
    assert [scenario.name for scenario in chosen(["head", "cold_open"])] == ["cold_open", "head"]
    with pytest.raises(UsageError, match="no scenario 'nonsense'"):
        chosen(["nonsense"])


def test_a_scale_is_chosen_by_name() -> None:
    assert scale_named("full") is FULL
    with pytest.raises(UsageError, match="no scale 'huge'"):
        scale_named("huge")


def test_the_tables_of_a_scale_have_as_many_live_files_where_they_are_compared() -> None:
    for scale in (SMALL, FULL):
        assert scale.table.live == scale.commits.live == scale.history.live
        assert scale.history.commits == 10 * scale.table.commits


def test_a_lab_leaves_nothing_behind(tmp_path: Path) -> None:
    with Lab(SMALL, tmp_path) as lab:
        lab.log(SMALL.table, since=SMALL.table.checkpoint)
        with lab.new_catalog("sqlite"):
            assert len(list(tmp_path.iterdir())) > 1
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
