"""Commands about this machine: doctor, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mainstem import doctor as doctor_checks
from mainstem.cli.frame import CatalogOption, JsonOption, app, merge
from mainstem.errors import worst_code


@app.command()
def doctor(ctx: typer.Context, catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """Check this machine, the settings and the catalog, and say what to mend."""
    frame = merge(ctx.obj, catalog, json)
    settings = frame.settings()
    checks = doctor_checks.examine(settings)
    rows = [(check.mark, check.name, check.said, check.hint) for check in checks]
    frame.output.table(("", "check", "found", "next"), rows)
    frame.output.say("")
    frame.output.table(("setting", "value", "source"), [row[:3] for row in settings.explain()])
    frame.output.report({"checks": checks, "settings": [row[:3] for row in settings.explain()]})
    if code := worst_code(check.exit_code for check in checks):
        raise typer.Exit(code)


@app.command()
def demo(
    ctx: typer.Context,
    folder: Annotated[Path | None, typer.Option(help="Where to put it; a temporary folder if not given.")] = None,
    json: JsonOption = False,
) -> None:
    """Show what Mainstem does, on a small Delta table of its own."""
    from mainstem import demo as tour

    frame = merge(ctx.obj, None, json)
    facts = tour.run(folder, frame.output)
    frame.output.report(facts)
