"""Commands that look at tables: tables, show, files, history."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from mainstem.cli.frame import MOST, CatalogOption, JsonOption, NameArgument, app, merge
from mainstem.deltalog.protocol import reader_features, writer_features
from mainstem.errors import UsageError
from mainstem.snapshot import FilesEngine

VersionOption = Annotated[int | None, typer.Option("--version", help="At this version.", show_default=False)]
TimestampOption = Annotated[
    str | None,
    typer.Option("--timestamp", help="At the newest version up to this moment, ISO 8601.", show_default=False),
]
TagOption = Annotated[str | None, typer.Option("--tag", help="At the version that this tag names.", show_default=False)]


@app.command()
def tables(ctx: typer.Context, catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """List the catalog's tables."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        found = opened.tables()
    if found:
        columns = ("name", "version", "published", "authority", "location")
        rows = [(t.name, t.version, t.published_version, t.authority, t.location) for t in found]
        frame.output.table(columns, rows)
    else:
        frame.output.say(f"{opened.uri} has no tables yet.")
    frame.output.report(found)


@app.command()
def show(
    ctx: typer.Context,
    name: NameArgument,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    tag: TagOption = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Show a table: its version, schema, properties, protocol and size."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        table = opened.table(name)
        info = table.info()
        snapshot = table.snapshot(version=version, timestamp=timestamp, tag=tag)
        size = snapshot.size()
    facts = {
        "name": name,
        "location": info.location,
        "authority": info.authority,
        "version": snapshot.version,
        "committed_at": snapshot.timestamp,
        "head": info.version,
        "published_version": info.published_version,
        "min_readable_version": info.min_readable_version,
        "files": size.files,
        "size_bytes": size.size_bytes,
        "records": size.records,
        "partition_columns": snapshot.partition_columns,
        "min_reader_version": snapshot.protocol.min_reader_version,
        "min_writer_version": snapshot.protocol.min_writer_version,
        "features": sorted({*reader_features(snapshot.protocol), *writer_features(snapshot.protocol)}),
        "properties": snapshot.properties,
        "domains": sorted(snapshot.domains),
        "app_transactions": dict(snapshot.app_transactions),
    }
    frame.output.table(("", ""), [(key.replace("_", " "), _words(value)) for key, value in facts.items()])
    frame.output.say("")
    frame.output.table(("column", "type", "nullable"), snapshot.columns())
    frame.output.report({**facts, "schema_json": snapshot.schema_json})


def _words(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}={value[key]}" for key in sorted(value)) or "none"
    return "not known" if value is None else value


@app.command()
def files(
    ctx: typer.Context,
    name: NameArgument,
    where: Annotated[
        str | None,
        typer.Option(help="Only files that may match this predicate; a moment in it that names no zone is in UTC."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=MOST, help="Not more than so many.")] = None,
    output: Annotated[str | None, typer.Option(help="Let Spark write them there as Parquet, not list them.")] = None,
    engine: Annotated[FilesEngine, typer.Option(help="How Spark computes them, with --output.")] = "auto",
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    tag: TagOption = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """List the live files of a table."""
    if output is not None and limit is not None:
        raise UsageError("--limit and --output exclude each other.", hint="Leave one of them out.")
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog(needs_spark=output is not None) as opened:
        snapshot = opened.table(name).snapshot(version=version, timestamp=timestamp, tag=tag)
        if output is not None:
            snapshot.files(where=where, engine=engine).write.mode("errorifexists").parquet(output)
            frame.output.say(f"The live files of {name} at version {snapshot.version} are in {output}.")
            frame.output.report({"name": name, "version": snapshot.version, "output": output})
            return
        found = list(islice(snapshot.iter_files(where=where), limit))
    columns = ("path", "size_bytes", "num_records", "partition_values", "dv_id", "version")
    frame.output.table(columns, [[row[column] for column in columns] for row in found])
    frame.output.report(found)


@app.command()
def history(
    ctx: typer.Context,
    name: NameArgument,
    limit: Annotated[int | None, typer.Option(min=1, max=MOST, help="Not more than so many.")] = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """List a table's versions, newest first."""
    frame = merge(ctx.obj, catalog, json)
    with frame.catalog() as opened:
        found = opened.table(name).history(limit=limit)
    columns = ("version", "committed_at", "operation", "committer", "kind")
    frame.output.table(columns, [[getattr(entry, column) for column in columns] for entry in found])
    frame.output.report(found)
