"""The `mainstem` command. Each command parses, makes one call of the library, and reports."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from mainstem import doctor as doctor_checks
from mainstem import session
from mainstem.catalog import Catalog, open_catalog
from mainstem.console import Output
from mainstem.errors import MainstemError, UsageError
from mainstem.settings import Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CatalogOption = Annotated[
    str | None, typer.Option("--catalog", metavar="URI", help="Where the catalog is.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


@dataclass
class Frame:
    """What every command has: the flags before and after its name, the output, the settings by their order."""

    flags: dict[str, Any]
    as_json: bool = False
    job: bool = False
    spark: SparkSession | None = None

    def settings(self) -> Settings:
        return load_settings(flags=self.flags, spark_conf=session.conf_lookup(self.spark))

    def catalog(self) -> Catalog:
        """The catalog that the settings name, with logging set up as they say."""
        logging.basicConfig(level=self.settings().log_level, format="%(asctime)s %(levelname)s %(message)s")
        return open_catalog(spark=self.spark, **self.flags)

    @property
    def output(self) -> Output:
        return Output(as_json=self.as_json, job=self.job)


class InOrder(TyperGroup):
    """Commands are listed in the order of the work, not of the alphabet."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


app = typer.Typer(
    cls=InOrder,
    name="mainstem",
    help="A Spark-native SQL catalog for Delta Lake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mainstem {version('mainstem')}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    catalog: CatalogOption = None,
    json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    _merge(ctx.obj, catalog, json)


def _merge(frame: Frame, catalog: str | None, json: bool) -> Frame:
    if catalog is not None:
        frame.flags["catalog"] = catalog
    frame.as_json = frame.as_json or json
    return frame


@app.command()
def migrate(
    ctx: typer.Context,
    to: Annotated[int | None, typer.Option(help="Go to this migration, also down; 0 is an empty database.")] = None,
    allow_data_loss: Annotated[bool, typer.Option("--allow-data-loss", help="Going down may drop rows.")] = False,
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Create or upgrade the catalog's schema."""
    frame = _merge(ctx.obj, catalog, json)
    with frame.catalog() as opened, frame.output.progress("migrate") as advance:
        done = opened.migrate(to=to, allow_data_loss=allow_data_loss, report=advance)
    frame.output.say(f"{opened.uri} is at migration {done.after}{' already' if done.before == done.after else ''}.")
    frame.output.report(
        {"catalog": str(opened.uri), "version": done.after, "applied": done.applied, "reverted": done.reverted}
    )


@app.command()
def tables(ctx: typer.Context, catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """List the catalog's tables."""
    frame = _merge(ctx.obj, catalog, json)
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
def doctor(ctx: typer.Context, catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """Check this machine, the settings and the catalog, and say what to mend."""
    frame = _merge(ctx.obj, catalog, json)
    settings = frame.settings()
    checks = doctor_checks.examine(settings)
    rows = [(check.mark, check.name, check.said, check.hint) for check in checks]
    frame.output.table(("", "check", "found", "next"), rows)
    frame.output.say("")
    frame.output.table(("setting", "value", "source"), [row[:3] for row in settings.explain()])
    frame.output.report({"checks": checks, "settings": [row[:3] for row in settings.explain()]})
    worst = max((check.exit_code for check in checks), default=0)
    if worst:
        raise typer.Exit(worst)


@app.command()
def demo(
    ctx: typer.Context,
    folder: Annotated[Path | None, typer.Option(help="Where to put it; a temporary folder if not given.")] = None,
    json: JsonOption = False,
) -> None:
    """Show what Mainstem does, on a small Delta table of its own."""
    from mainstem import demo as tour

    frame = _merge(ctx.obj, None, json)
    facts = tour.run(folder, frame.output)
    frame.output.report(facts)


def main(arguments: Sequence[str] | None = None, *, job: bool = False, spark: SparkSession | None = None) -> int:
    """Run one command; its exit code. The only place that turns errors into words."""
    frame = Frame({}, job=job, spark=spark)
    given = list(sys.argv[1:] if arguments is None else arguments)
    frame.as_json = "--json" in given  # before parsing, so that an error in the arguments is JSON too
    return _guarded(lambda: app(given, obj=frame, standalone_mode=False, prog_name="mainstem"), frame)


def _guarded(call: Callable[[], Any], frame: Frame) -> int:
    try:
        code = call()
    except MainstemError as error:
        frame.output.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        frame.output.error(MainstemError("interrupted.", hint="What was committed stays; nothing is half-written."))
        return 130
    except BrokenPipeError:
        return 141
    except Exception as error:
        shown = getattr(error, "format_message", None)  # click's own errors know how to say themselves
        if shown is None:
            raise
        frame.output.error(UsageError(shown(), hint="mainstem --help lists commands and options."))
        return 2
    return code if isinstance(code, int) else 0


def run() -> None:
    """The console script."""
    sys.exit(main())
