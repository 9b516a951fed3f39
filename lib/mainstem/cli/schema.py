"""The command that makes a catalog: migrate."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.frame import CatalogOption, JsonOption, app, merge


@app.command()
def migrate(
    ctx: typer.Context,
    to: Annotated[int | None, typer.Option(help="Go to this migration, also down; 0 is an empty database.")] = None,
    allow_data_loss: Annotated[bool, typer.Option("--allow-data-loss", help="Going down may drop rows.")] = False,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Create or upgrade the catalog's schema."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened, frame.output.progress("migrate") as advance:
        done = opened.migrate(to=to, allow_data_loss=allow_data_loss, report=advance)
    frame.output.say(f"{opened.uri} is at migration {done.after}{' already' if done.before == done.after else ''}.")
    frame.output.report(
        {"catalog": str(opened.uri), "version": done.after, "applied": done.applied, "reverted": done.reverted}
    )
