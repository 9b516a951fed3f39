"""The command that measures: bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli.frame import JsonOption, app, merge
from mainstem.errors import UsageError


@app.command(hidden=True)
def bench(
    ctx: typer.Context,
    scenario: Annotated[list[str] | None, typer.Argument(help="Which scenarios; all, if none is named.")] = None,
    scale: Annotated[str, typer.Option(help="small takes minutes, full an hour and 30 GB of disk.")] = "full",
    results: Annotated[Path, typer.Option(help="The folder for table, plot and JSON.")] = Path("bench-results"),
    place: Annotated[
        Path | None, typer.Option(help="Keep logs and catalogs in this folder, and use those that are there.")
    ] = None,
    postgres: Annotated[
        str | None, typer.Option(help="The URI of a Postgres to use, instead of one that is gone with its rows.")
    ] = None,
    prepare: Annotated[bool, typer.Option("--prepare", help="Only make logs and catalogs, in --place.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure Mainstem beside Delta Spark and delta-rs, on the same logs, in turns."""
    from mainstem.bench import harness, report
    from mainstem.bench.scale import scale_named

    frame = merge(ctx.obj, None, json)
    size, scratch = scale_named(scale), frame.settings().local_scratch
    if prepare:
        if place is None:
            raise UsageError("what is prepared needs a place.", hint="Give --place FOLDER.")
        with frame.output.progress("bench") as advance:
            harness.prepare(size, place, scenarios=scenario or (), spark=frame.spark, postgres=postgres, report=advance)
        return
    with frame.output.progress("bench") as advance:
        done = harness.run(
            size, results, scenarios=scenario or (), spark=frame.spark, scratch=scratch,
            place=place, postgres=postgres, report=advance,
        )  # fmt: skip
    rows = [
        (result.scenario.name, each.target.what, each.target.wanted, each.measured, "met" if each.met else "missed")
        for result in done.results
        for each in result.verdicts
    ]
    frame.output.table(("scenario", "target", "wanted", "measured", ""), rows)
    frame.output.say(f"Table, plot and JSON are in {results}.")
    frame.output.report(report.as_data(size, done.facts, done.results))
