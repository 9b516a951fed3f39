"""Commands that bring logs into the catalog: import, follow."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from mainstem.catalog import Catalog
from mainstem.cli.frame import MOST_DAYS, CatalogOption, Frame, JsonOption, app, finite, merge
from mainstem.errors import UsageError, worst_code


@app.command("import")
def import_table(
    ctx: typer.Context,
    location: Annotated[str, typer.Argument(help="The folder or URI that holds _delta_log.")],
    name: Annotated[str, typer.Option(help="What the catalog shall call it, for example sales.orders.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check everything, write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the table of that name.")] = False,
    up_to_version: Annotated[int | None, typer.Option(help="Leave out what came after this version.")] = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Bring a Delta table in, with its whole history. Its log goes on leading."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened, frame.output.counting(f"import {name}") as progress:
        done = opened.import_table(
            location, name=name, dry_run=dry_run, force=force, up_to_version=up_to_version, progress=progress
        )
    frame.output.say(
        f"{name}: versions {done.first_version} to {done.version}, {done.actions} actions, {done.files} live files"
        f"{'; nothing was written.' if dry_run else '.'}"
    )
    frame.output.report(done)


@app.command()
def follow(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The table's name.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every table whose log leads.")] = False,
    continuous: Annotated[bool, typer.Option("--continuous", help="Go on until interrupted.")] = False,
    interval: Annotated[
        float, typer.Option(max=MOST_DAYS, callback=finite, help="Seconds between two looks, with --continuous.")
    ] = 10.0,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Bring in what the log of a table, or of all tables, has beyond the catalog's head."""
    if interval <= 0:
        raise UsageError(f"--interval is {interval:g}.", hint="Give seconds above 0.")
    if every == (name is not None):
        raise UsageError("follow takes the name of a table, or --all.", hint="mainstem follow sales.orders")
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        while True:
            code = _follow_all(frame, opened) if name is None else _follow(frame, opened, name, quiet=continuous)
            if not continuous:
                break
            time.sleep(interval)
    if code:
        raise typer.Exit(code)


def _follow(frame: Frame, opened: Catalog, name: str, *, quiet: bool) -> int:
    with frame.output.counting(f"follow {name}") as progress:
        done = opened.table(name).follow(progress=progress)
    if done.versions or not quiet:
        frame.output.say(f"{name}: at version {done.version}, {done.versions} new.")
        frame.output.report(done)
    return 0


def _follow_all(frame: Frame, opened: Catalog) -> int:
    with frame.output.counting("follow all") as progress:
        found = opened.follow(progress=progress)
    rows = [(each.name, each.version, each.versions, each.error, each.hint) for each in found]
    frame.output.table(("name", "version", "new", "error", "next"), rows)
    frame.output.report(found)
    return worst_code(each.exit_code for each in found)
