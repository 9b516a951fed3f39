"""Commands that keep a catalog right and small, and its versions findable: validate, tag, expire, vacuum, maintain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mainstem.cli.frame import MOST_DAYS, MOST_HOURS, CatalogOption, JsonOption, NameArgument, app, finite, merge
from mainstem.cli.recovering import repair_tables, report_of
from mainstem.errors import UsageError, ValidationFailed, worst_code
from mainstem.validate import Form, Report, require_form

Against = Literal["log"]


@app.command()
def validate(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The table's name in the catalog.")] = None,
    all_tables: Annotated[bool, typer.Option("--all", help="Every table of the catalog.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Put right what has one right answer.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --repair: only say what it would do.")] = False,
    against: Annotated[Against, typer.Option(help="What the catalog is compared with.")] = "log",
    engine: Annotated[
        Form, typer.Option(help="Where: on this machine, in Spark, or by the table's size where a session is there.")
    ] = "auto",
    snapshots: Annotated[
        Literal["sample", "all"],
        typer.Option(help="At which versions Delta's own snapshot is compared; all needs Spark."),
    ] = "sample",
    suite: Annotated[
        list[str] | None, typer.Option(help="A suite of expectations for the table's data; may be repeated.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write Great Expectations' Data Docs there; needs Spark.")
    ] = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the catalog with the log and the files of a table, and run its suites of expectations."""
    if (name is None) != all_tables:
        raise UsageError("name one table, or give --all.", hint="mainstem validate sales.orders")
    if dry_run and not repair:
        raise UsageError("--dry-run goes with --repair.", hint="mainstem validate sales.orders --repair --dry-run")
    if repair and (engine != "auto" or snapshots != "sample" or suite or docs is not None):
        raise UsageError(
            "--repair validates by rules of its own: --engine, --snapshots, --suite and --docs do not go with it.",
            hint="Nothing was changed. Repair first, then validate with them.",
        )
    require_form(engine, snapshots)
    frame = merge(ctx.obj, catalog, json)
    if repair:
        repair_tables(frame, name, dry_run=dry_run)
        return
    needs_spark = engine == "spark" or snapshots == "all" or docs is not None or bool(suite)
    with frame.catalog(needs_spark=needs_spark) as opened:

        def validated(each: str) -> Report:
            into = _docs_of(docs, each, many=name is None)
            return opened.table(each).validate(engine=engine, snapshots=snapshots, suites=suite or (), docs=into)

        reports = [report_of(info, validated) for info in opened.tables()] if name is None else [validated(name)]
    for report in reports:
        held = [(run.suite, run.on, len(run.expectations), len(run.failed), run.success) for run in report.suites]
        if held:
            columns = ("suite", "on", "expectations", "failed", "success")
            frame.output.table(columns, held, title=f"Suites of {report.table}")
        rows = [(found.severity, found.check, found.version, found.path, found.message) for found in report.findings]
        if rows:
            frame.output.table(("", "check", "version", "path", "found"), rows)
        verdict = "catalog and log agree" if report.success else "catalog and log do not agree"
        checks = f"{len(report.checks)} checks" + (f" and {len(held)} suites" if held else "")
        frame.output.say(f"{report.table} at version {report.version}: {checks}, {verdict}.")
        if report.docs:
            frame.output.say(f"Data Docs: {report.docs}")
    frame.output.report([{"success": report.success, **report.as_dict()} for report in reports])
    if not all(report.success for report in reports):
        raise typer.Exit(ValidationFailed.exit_code)


def _docs_of(docs: Path | None, table: str, *, many: bool) -> Path | None:
    """Where the docs of a table go: each of several has a folder of its own."""
    return docs / table.replace("/", "_") if docs is not None and many else docs


@app.command()
def tag(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TAG", help="What to call this moment.")],
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be repeated.")] = None,
    remark: Annotated[str | None, typer.Option(help="Why.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Take the tag away.")] = False,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Name the versions that all tables have now, together."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        found = opened.untag(name) if delete else opened.tag(name, tables=table or None, remark=remark)
    frame.output.table(("table", "version"), found.versions.items())
    frame.output.say(f"The tag {name} {'is gone' if delete else 'is set'}.")
    frame.output.report(found)


@app.command()
def tags(ctx: typer.Context, catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """List the tags."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        found = opened.tags()
    rows = [(each.name, each.created_at, len(each.versions), each.remark) for each in found]
    frame.output.table(("tag", "set at", "tables", "remark"), rows)
    frame.output.report(found)


@app.command()
def expire(
    ctx: typer.Context,
    name: NameArgument,
    before_version: Annotated[int, typer.Option(help="The oldest version that stays readable.")],
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Forget old versions of a table; tags and leases hold them."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        done = opened.table(name).expire(before_version=before_version)
    frame.output.say(f"{name}: readable from version {done.min_readable_version} on; {done.rows} rows are gone.")
    frame.output.report(done)


@app.command()
def vacuum(
    ctx: typer.Context,
    name: NameArgument,
    retention_hours: Annotated[
        float | None,
        typer.Option(max=MOST_HOURS, callback=finite, help="Keep what was removed within so many hours."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    allow_short_retention: Annotated[
        bool,
        typer.Option(
            "--allow-short-retention",
            help="Below the table's own retention, too, and beyond the removes that the catalog remembers.",
        ),
    ] = False,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Delete data files that no version needs any more."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        done = opened.table(name).vacuum(
            retention_hours=retention_hours,
            dry_run=dry_run,
            short_retention="allow" if allow_short_retention else "refuse",
        )
    frame.output.table(("path",), [(path,) for path in done.paths] if dry_run else [])
    frame.output.say(
        f"{name}: {done.files} files of {done.size_bytes} bytes {'would be' if dry_run else 'were'} deleted."
    )
    frame.output.report(done)


@app.command()
def maintain(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The table's name.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every table of the catalog.")] = False,
    expire_days: Annotated[
        float | None,
        typer.Option(max=MOST_DAYS, callback=finite, help="Forget versions that are older.", show_default=False),
    ] = None,
    vacuum: Annotated[bool, typer.Option("--vacuum", help="Delete data files that nothing needs any more.")] = False,
    retention_hours: Annotated[
        float | None, typer.Option(max=MOST_HOURS, callback=finite, help="With --vacuum: as for vacuum.")
    ] = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Publish what is left, write the checkpoint that is due, clean the log up; expire and vacuum if asked to."""
    if every == (name is not None):
        raise UsageError("maintain takes the name of a table, or --all.", hint="mainstem maintain sales.orders")
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        names = [table.name for table in opened.tables()] if name is None else [name]
        found = [
            opened.table(each).maintain(expire_days=expire_days, vacuum=vacuum, retention_hours=retention_hours)
            for each in names
        ]
    rows = [(done.name, task.task, task.outcome, task.said) for done in found for task in done.tasks]
    frame.output.table(("table", "task", "outcome", ""), rows)
    frame.output.report([{"name": done.name, "tasks": done.tasks} for done in found])
    if code := worst_code(done.exit_code for done in found):
        raise typer.Exit(code)
