"""The results of a run as a table for people, as JSON for programs, and as a plot, in one folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from mainstem.bench.plot import bars
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Result

FILES = ("results.md", "results.json", "results.svg")


def write(folder: Path, scale: Scale, facts: Mapping[str, str], results: Sequence[Result]) -> list[Path]:
    """Write the three files, each whole, over those of an earlier run; where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = (
        markdown(scale, facts, results).encode(),
        orjson.dumps(as_data(scale, facts, results), option=orjson.OPT_INDENT_2),
        bars(results).encode(),
    )
    paths = [folder / name for name in FILES]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def as_data(scale: Scale, facts: Mapping[str, str], results: Sequence[Result]) -> dict[str, Any]:
    """Everything that was measured, each time of each contender."""
    return {
        "scale": scale.name,
        "facts": dict(facts),
        "scenarios": [
            {
                "name": result.scenario.name,
                "title": result.scenario.title,
                "contenders": [
                    {
                        "name": each.name,
                        "median_ms": each.median_ms,
                        "p95_ms": each.p95_ms,
                        "amount": each.amount,
                        "times_ms": each.times_ms,
                    }
                    for each in result.samples
                ],
                "targets": [
                    {
                        "target": verdict.target.what,
                        "limit": verdict.target.limit,
                        "at_least": verdict.target.at_least,
                        "unit": verdict.target.unit,
                        "value": verdict.value,
                        "met": verdict.met,
                    }
                    for verdict in result.verdicts
                ],
                "where_time_goes": {who: dict(spent) for who, spent in result.spent.items()},
            }
            for result in results
        ],
    }


def markdown(scale: Scale, facts: Mapping[str, str], results: Sequence[Result]) -> str:
    """Targets first, then every contender, then where the time of those went who missed one."""
    return "\n".join(_lines(scale, facts, results)) + "\n"


def _lines(scale: Scale, facts: Mapping[str, str], results: Sequence[Result]) -> Iterator[str]:
    yield f"# Benchmark, scale {scale.name}"
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in facts.items())
    if scale.name != "full":
        yield ""
        yield "The targets are meant for the scale full: here they only show that everything is measured."
    yield ""
    yield from _table(
        ("scenario", "target", "wanted", "measured", ""),
        [
            (result.scenario.title, verdict.target.what, verdict.target.wanted, verdict.measured, _word(verdict.met))
            for result in results
            for verdict in result.verdicts
        ],
    )
    yield ""
    yield from _table(
        ("scenario", "contender", "median ms", "p95 ms", "turns", "work"),
        [
            (
                result.scenario.title, each.name, f"{each.median_ms:,.1f}", f"{each.p95_ms:,.1f}",
                str(len(each.times_ms)), f"{each.amount:,}",
            )
            for result in results
            for each in result.samples
        ],
    )  # fmt: skip
    for result in results:
        for who, spent in result.spent.items():
            yield ""
            where = "; ".join(f"{function} {own:,.1f} ms" for function, own in spent)
            yield f"{result.scenario.title}, where the time of {who} goes (under a profiler): {where}."


def _word(met: bool) -> str:
    return "met" if met else "**missed**"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"
