"""Commands that bring things back: validate --repair, rebuild-log, rebuild-catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer

from mainstem.authority import Leader
from mainstem.catalog import Catalog
from mainstem.cli.frame import CatalogOption, Frame, JsonOption, NameArgument, app, merge
from mainstem.deltalog.location import place_of
from mainstem.errors import MainstemError, UsageError, ValidationFailed, worst_code
from mainstem.repair import Repaired
from mainstem.table import TableInfo
from mainstem.validate import Report, require_agreement


def report_of(info: TableInfo, validated: Callable[[str], Report]) -> Report:
    """The report of one of many tables. One that cannot be made is told, and does not stop the rest."""
    try:
        return validated(info.name)
    except MainstemError as error:
        return Report.of_failure(info.name, info.version, "validate", error)


def _repaired(opened: Catalog, info: TableInfo, *, dry_run: bool) -> Repaired:
    try:
        return opened.table(info.name).repair(dry_run=dry_run)
    except MainstemError as error:
        return Repaired(info.name, dry_run, (), (), Report.of_failure(info.name, info.version, "repair", error))


def repair_tables(frame: Frame, name: str | None, *, dry_run: bool) -> None:
    """Repair one table, or all of them: what `mainstem validate --repair` does."""
    with frame.catalog() as opened:
        if name is None:
            found = [_repaired(opened, info, dry_run=dry_run) for info in opened.tables()]
        else:
            found = [opened.table(name).repair(dry_run=dry_run)]
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
        for each in done.report.findings:
            if each.check == "repair":
                frame.output.say(f"{done.name}: {each.message}")
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
    """Bring tables back into an empty catalog from their _delta_log, and verify them.

    Of many tables, one that fails does not hold up the others; repeated, those that are back already stay as they are.
    """
    if (tables is None) == (location is None) or (location is None) != (name is None):
        raise UsageError(
            "rebuild-catalog takes a location with --name, or --tables.",
            hint="mainstem rebuild-catalog /lake/orders --name sales.orders",
        )
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        opened.migrate()
        if tables is not None:
            found = [_tried(opened, row) for row in _listed(tables)]
        else:
            done = opened.rebuild_table(str(location), name=str(name))
            found = [_Back(done.name, done.location, "rebuilt", done.first_version, done.version, done.files)]
    frame.output.table(("table", "", "versions", "live files", "error"), [
        (each.name, each.outcome, each.versions, each.files, each.error) for each in found
    ])  # fmt: skip
    failed = sum(each.outcome == "failed" for each in found)
    frame.output.say(f"{len(found) - failed} tables are back, and say what their logs say; {failed} failed.")
    frame.output.report(found)
    if code := worst_code(each.exit_code for each in found):
        raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Back:
    """What came of one table: `rebuilt`, `there` already and the same as its log, or `failed` and why."""

    name: str
    location: str
    outcome: Literal["rebuilt", "there", "failed"]
    first_version: int | None = None
    version: int | None = None
    files: int | None = None
    error: str | None = None
    exit_code: int = 0

    @property
    def versions(self) -> str:
        return "" if self.version is None else f"{self.first_version} to {self.version}"


def _tried(opened: Catalog, row: dict[str, str]) -> _Back:
    try:
        return _brought_back(opened, row)
    except MainstemError as error:
        return _Back(row["name"], row["location"], "failed", error=str(error), exit_code=error.exit_code)


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


def _brought_back(opened: Catalog, row: dict[str, str]) -> _Back:
    name, location = row["name"], row["location"]
    leader: Leader = "catalog" if row["authority"] == "catalog" else "log"
    known = next((info for info in opened.tables() if info.name == name), None)
    if known is None or place_of(known.location) != place_of(location):
        done = opened.rebuild_table(location, name=name, authority=leader)  # refuses a name that is taken
        return _Back(name, done.location, "rebuilt", done.first_version, done.version, done.files)
    require_agreement(opened.store, name)
    table = opened.table(name)
    if leader == "catalog" and known.authority == "log":
        table.cutover()  # an earlier attempt has come no further
    now = table.info()
    files = table.snapshot().size().files
    return _Back(name, now.location, "there", now.min_readable_version, now.version, files)
