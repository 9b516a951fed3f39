"""Commands that bring things back: validate --repair, rebuild-log, rebuild-catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from mainstem.authority import Leader
from mainstem.catalog import Catalog
from mainstem.cli.frame import CatalogOption, Frame, JsonOption, NameArgument, app, merge
from mainstem.errors import UsageError, ValidationFailed
from mainstem.importer import Imported


def repair_tables(frame: Frame, name: str | None, *, dry_run: bool) -> None:
    """Repair one table, or all of them: what `mainstem validate --repair` does."""
    with frame.catalog() as opened:
        names = [table.name for table in opened.tables()] if name is None else [name]
        found = [opened.table(each).repair(dry_run=dry_run) for each in names]
    for done in found:
        steps = [(step.outcome, step.kind, step.version, step.message, step.error) for step in done.steps]
        if steps:
            frame.output.table(("", "repair", "version", "what", "error"), steps)
        left = [(each.check, each.version, each.path, each.message, each.command) for each in done.decisions]
        if left:
            frame.output.table(("check", "version", "path", "found", "decide by"), left, title="To be decided")
        failed = sum(step.outcome == "failed" for step in done.steps)
        would = f"{len(steps)} repairs would be made" if dry_run else f"{len(steps) - failed} repairs were made"
        frame.output.say(f"{done.name}: {would}, {failed} failed, {len(left)} findings are left to decide.")
    frame.output.report([done.as_dict() for done in found])
    if not all(done.success for done in found):
        raise typer.Exit(ValidationFailed.exit_code)


@app.command("rebuild-log")
def rebuild_log(
    ctx: typer.Context,
    name: NameArgument,
    to: Annotated[
        str | None, typer.Option(help="An empty folder or URI; the table's own, if not given.", show_default=False)
    ] = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Write a table's _delta_log anew from the catalog, where there is none, and verify it."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        done = opened.rebuild_log(name, to=to)
    frame.output.say(
        f"{name}: versions {done.first_version} to {done.version} are in {done.location}, {done.exact} of "
        f"{done.commits} commits byte for byte, {done.files} live files."
    )
    frame.output.report(done)


@app.command("rebuild-catalog")
def rebuild_catalog(
    ctx: typer.Context,
    location: Annotated[
        str | None, typer.Argument(help="The folder or URI that holds _delta_log.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the catalog called it.", show_default=False)] = None,
    tables: Annotated[
        Path | None, typer.Option(help="All tables of a file that `mainstem tables --json` made.", show_default=False)
    ] = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Bring tables back into an empty catalog from their _delta_log, and verify them."""
    if (tables is None) == (location is None) or (location is None) != (name is None):
        raise UsageError(
            "rebuild-catalog takes a location with --name, or --tables.",
            hint="mainstem rebuild-catalog /lake/orders --name sales.orders",
        )
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        opened.migrate()
        if tables is not None:
            found = [_brought_back(opened, row) for row in _listed(tables)]
        else:
            found = [opened.rebuild_table(str(location), name=str(name))]
    frame.output.table(("table", "versions", "live files"), [
        (done.name, f"{done.first_version} to {done.version}", done.files) for done in found
    ])  # fmt: skip
    frame.output.say(f"{len(found)} tables are back, and say what their logs say.")
    frame.output.report(found)


def _listed(file: Path) -> list[dict[str, str]]:
    """What `mainstem tables --json` has printed."""
    try:
        rows = orjson.loads(file.read_bytes())
        return [{key: row[key] for key in ("name", "location", "authority")} for row in rows]
    except (OSError, orjson.JSONDecodeError, TypeError, KeyError) as error:
        raise UsageError(
            f"{file} is no list of tables: {error}.",
            hint="Nothing was written. Make one by: mainstem tables --json > tables.json",
        ) from error


def _brought_back(opened: Catalog, row: dict[str, str]) -> Imported:
    leader: Leader = "catalog" if row["authority"] == "catalog" else "log"
    return opened.rebuild_table(row["location"], name=row["name"], authority=leader)
