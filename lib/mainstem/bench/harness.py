"""One run: scenarios in order, and their results in a folder after each of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.bench import report as reports
from mainstem.bench.lab import Lab
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Result, Scenario
from mainstem.bench.scenarios import SCENARIOS
from mainstem.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Run:
    """What was measured, and the files that say so."""

    results: Sequence[Result]
    facts: Mapping[str, str]
    files: Sequence[Path]


def run(
    scale: Scale,
    folder: Path,
    *,
    scenarios: Sequence[str] = (),
    spark: SparkSession | None = None,
    postgres: str | None = None,
    scratch: Path | None = None,
    place: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Run:
    """Run the named scenarios, or all, and write what came out into `folder`; also after each, should a later one fail.

    Logs and catalogs lie in a folder below `scratch` (the system's own if None) that is gone afterwards, or in `place`
    and the given Postgres, where the next run finds them.
    """
    wanted = chosen(scenarios)
    results: list[Result] = []
    facts: Mapping[str, str] = {}
    files: Sequence[Path] = ()
    with _lab(scale, spark=spark, postgres=postgres, scratch=scratch, place=place, report=report) as lab:
        for scenario in wanted:
            results.append(scenario.run(lab, report=_told(report, scenario)))
            facts = lab.facts()
            files = reports.write(folder, scale, facts, results)
    return Run(results, facts, files)


def prepare(
    scale: Scale,
    place: Path,
    *,
    scenarios: Sequence[str] = (),
    spark: SparkSession | None = None,
    postgres: str | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Make in `place` and in the given Postgres what the scenarios need, and measure nothing."""
    with _lab(scale, spark=spark, postgres=postgres, scratch=None, place=place, report=report) as lab:
        for scenario in chosen(scenarios):
            scenario.contenders(lab)


@contextmanager
def _lab(
    scale: Scale,
    *,
    spark: SparkSession | None,
    postgres: str | None,
    scratch: Path | None,
    place: Path | None,
    report: Callable[[str], None],
) -> Iterator[Lab]:
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
        with Lab(scale, place.absolute(), spark=spark, postgres=postgres, keep=True, report=report) as lab:
            yield lab
        return
    with (
        tempfile.TemporaryDirectory(prefix="mainstem-bench-", dir=scratch) as folder,
        Lab(scale, Path(folder), spark=spark, postgres=postgres, report=report) as lab,
    ):
        yield lab


def chosen(names: Sequence[str]) -> Sequence[Scenario]:
    """The scenarios of these names, in the order in which they run; all of them if there are none."""
    known = {scenario.name: scenario for scenario in SCENARIOS}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no scenario {name!r}.", hint=f"There are {', '.join(known)}.")
    return [scenario for name, scenario in known.items() if not names or name in names]


def _told(report: Callable[[str], None], scenario: Scenario) -> Callable[[str], None]:
    return lambda line: report(f"{scenario.name}: {line}")
