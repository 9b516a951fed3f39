"""What every command of `mainstem` has: its flags, its settings, its output, and the application that it belongs to."""

from __future__ import annotations

import logging
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from typer.core import TyperGroup

from mainstem import session
from mainstem.airflowvalues import run_info_of
from mainstem.catalog import Catalog, open_catalog
from mainstem.console import Output
from mainstem.settings import Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CatalogOption = Annotated[
    str | None, typer.Option("--catalog", metavar="URI", help="Where the catalog is.", show_default=False)
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The table's name in the catalog.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
# So many are more than anybody has, and every database and calendar can count them.
MOST = 1_000_000_000
MOST_DAYS = 36_500.0
MOST_HOURS = MOST_DAYS * 24


def finite(value: float | None) -> float | None:
    """For options: the ranges of older versions of typer let `nan` through, which compares with nothing."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number to count with.")
    return value


@dataclass
class Frame:
    """What every command has: the flags before and after its name, the output, the settings by their order."""

    flags: dict[str, Any]
    as_json: bool = False
    job: bool = False
    spark: SparkSession | None = None

    def settings(self) -> Settings:
        return load_settings(flags=self.flags, spark_conf=session.conf_lookup(self.spark))

    def catalog(self, *, needs_spark: bool = False) -> Catalog:
        """The catalog that the settings name, with logging set up as they say; with a session where one is needed."""
        if needs_spark and self.spark is None:
            self.spark = session.build_session("mainstem")
        settings, flags = self.settings(), dict(self.flags)
        logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(message)s")
        if settings.source("commit_info") == "default" and (run := run_info_of(os.environ)):
            flags["commit_info"] = orjson.dumps(run).decode()
        return open_catalog(spark=self.spark, **flags)

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
    merge(ctx.obj, catalog, json)


def merge(frame: Frame, catalog: str | None, json: bool) -> Frame:
    """The frame with the flags that stand after the command's name, too."""
    if catalog is not None:
        frame.flags["catalog"] = catalog
    frame.as_json = frame.as_json or json
    return frame
