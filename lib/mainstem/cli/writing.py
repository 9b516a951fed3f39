"""Commands that write data: append."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.frame import CatalogOption, JsonOption, NameArgument, app, merge
from mainstem.errors import UsageError


@app.command()
def append(
    ctx: typer.Context,
    name: NameArgument,
    source: Annotated[str, typer.Option(help="The file or folder whose rows are added.")],
    format: Annotated[str, typer.Option(help="What Spark shall read it as.")] = "parquet",  # noqa: A002
    txn: Annotated[
        str | None, typer.Option(metavar="APP:NUMBER", help="Add them once, however often this is repeated.")
    ] = None,
    committer: Annotated[str | None, typer.Option(help="Who stands in the table's history.")] = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Add the rows of a file to a table."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog(needs_spark=True) as opened:
        rows = opened.spark.read.format(format).load(source)
        done = opened.table(name).append(rows, committer=committer, txn=_application(txn))
    frame.output.say(f"{name}: version {done.version}{' was there already' if done.repeated else ''}.")
    frame.output.report(done)


def _application(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    app_id, _, number = text.rpartition(":")
    if not app_id or not number.isdecimal():
        raise UsageError(f"--txn is {text!r}.", hint="Give it as application:number, such as nightly:20261118.")
    return app_id, int(number)
