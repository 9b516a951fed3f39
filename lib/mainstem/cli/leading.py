"""Commands about who leads a table, and how its log keeps up: publish, cutover, rollback, resolve."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.frame import CatalogOption, JsonOption, NameArgument, app, merge
from mainstem.errors import UsageError, worst_code


@app.command()
def publish(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The table's name.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every table that has something to publish.")] = False,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Write what was committed and is not yet in the log. With --all, tables that have failed wait longer each time."""
    if every == (name is not None):
        raise UsageError("publish takes the name of a table, or --all.", hint="mainstem publish sales.orders")
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened, frame.output.counting(f"publish {name or 'all'}") as progress:
        if name is not None:
            done = opened.table(name).publish(progress=progress)
            frame.output.say(f"{name}: published up to version {done.version}, {done.version - done.from_version} new.")
            frame.output.report(done)
            return
        found = opened.publish(progress=progress)
    if found:
        rows = [
            (each.name, each.outcome, each.versions, f"{each.wait:.0f} s" if each.wait else "", each.error, each.hint)
            for each in found
        ]
        frame.output.table(("name", "outcome", "versions", "wait", "error", "next"), rows)
    else:
        frame.output.say("Everything is published.")
    frame.output.report(found)
    if code := worst_code(each.exit_code for each in found):
        raise typer.Exit(code)


@app.command()
def cutover(
    ctx: typer.Context,
    name: NameArgument,
    fence: Annotated[bool, typer.Option("--fence", help="Let outside writers be refused; readers go on.")] = False,
    no_in_commit_timestamps: Annotated[
        bool, typer.Option("--no-in-commit-timestamps", help="Leave the table's protocol as it is.")
    ] = False,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Let the catalog lead a table, once it equals the log."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        done = opened.table(name).cutover(fence=fence, in_commit_timestamps=not no_in_commit_timestamps)
    frame.output.say(f"{name}: the catalog leads from version {done.version} on. Back by: mainstem rollback {name}")
    frame.output.report(done)


@app.command()
def rollback(ctx: typer.Context, name: NameArgument, catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """Publish everything, take a fence down, and let the table's log lead again."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        done = opened.table(name).rollback()
    frame.output.say(f"{name}: its log leads after version {done.version}. Follow it by: mainstem follow {name}")
    frame.output.report(done)


@app.command()
def resolve(
    ctx: typer.Context,
    name: NameArgument,
    adopt_foreign: Annotated[
        bool, typer.Option("--adopt-foreign", help="Bring them in; what is unpublished gets the numbers after them.")
    ] = False,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Show what outside engines have committed beside the catalog, and bring it in."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        done = opened.table(name).resolve(adopt_foreign=adopt_foreign)
    if done.foreign:
        rows = [(each.version, each.operation, each.committer) for each in done.foreign]
        frame.output.table(("version", "operation", "committer"), rows, title="Commits of outside engines")
    if done.adopted:
        moved = ", ".join(f"{old} is now {new}" for old, new in done.renumbered) or "no version got another number"
        frame.output.say(f"{name}: {len(done.foreign)} commits were brought in; {moved}.")
        if done.publish_error:
            frame.output.say(f"Not published yet: {done.publish_error}")
    elif done.foreign:
        waiting = f"{len(done.unpublished)} of ours wait" if done.unpublished else "none of ours wait"
        frame.output.say(f"{waiting}. Bring them in by: mainstem resolve {name} --adopt-foreign")
    else:
        frame.output.say(f"{name}: no outside engine has committed anything.")
    frame.output.report(done)
