"""Tables that scenarios change and read: one that the catalog leads, and one of plain Delta with the same files.

They are not the tables of other scenarios, which must stay as they are: the same recipe, by another seed.
"""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mainstem.bench.generator import ROWS, Generator, first_id
from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.recipe import START_MS, Ints, Recipe
from mainstem.catalog import open_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A checkpoint that is due in one turn and not in another would be measured as noise: here none ever is.
_NO_CHECKPOINTS = "SET TBLPROPERTIES ('delta.checkpointInterval' = '1000000')"
_MAGIC = 4


@dataclass(frozen=True)
class Tables:
    """The catalog's address, the folder of its table `TABLE`, and the folder of Delta's table."""

    recipe: Recipe
    uri: str
    mine: Path
    theirs: Path

    @property
    def commits(self) -> int:
        """How many commits Delta's table has had here: a number that grows."""
        return len(list((self.theirs / "_delta_log").glob("*.json")))


def tables(lab: Lab, recipe: Recipe) -> Tables:
    """The two tables of a recipe, made when they are first asked for. Delta's log is as a clean-up would leave it."""
    own = replace(recipe, seed=recipe.seed + 1)
    theirs = lab.log(own, since=own.checkpoint)
    mine = theirs.with_name(f"{theirs.name}-mine")
    made = Tables(own, lab.catalog("postgres", own, location=mine), mine, theirs)
    with open_catalog(made.uri, spark=lab.spark) as catalog:
        table = catalog.table(TABLE)
        if table.authority == "log":
            shutil.rmtree(mine, ignore_errors=True)  # of a catalog that an earlier run had here
            (mine / "_delta_log").mkdir(parents=True)
            with catalog.store.writing() as queries:
                queries.change("table_authority", table_id=table.info().table_id, authority="catalog")
            table.alter(_NO_CHECKPOINTS)
            lab.spark.sql(f"ALTER TABLE delta.`{theirs}` {_NO_CHECKPOINTS}")
    return made


def small_rows(spark: SparkSession, recipe: Recipe) -> DataFrame:
    """A hundred rows of one day, in one file."""
    day = day_of(recipe, -1)
    return spark.range(0, 100, 1, 1).selectExpr(
        "id", "concat('c', id) AS customer", "double(id) AS amount", "int(id) AS quantity",
        f"TIMESTAMP '{day} 12:00:00' AS event_time", "'p' AS product", f"DATE '{day}' AS date",
    )  # fmt: skip


def day_of(recipe: Recipe, number: int) -> str:
    """One day of the table after the other, from the first on."""
    return (date(1970, 1, 1) + timedelta(milliseconds=START_MS, days=number % recipe.days)).isoformat()


def selection(tables: Tables, most: int) -> tuple[str, int]:
    """A predicate for some files of one day in the middle of the table, and how many rows they have.

    Those files are made in both folders, as large as the log says: all of it but the rows is a hole.
    """
    recipe = tables.recipe
    live = recipe.live_at(recipe.last)
    days = recipe.day_of(live)
    files = live[days == days[len(live) // 2]][:most]
    generator = Generator(recipe)
    day = generator.dates(files[:1])[0].decode()
    for folder in (tables.mine, tables.theirs):
        for path, size, first in zip(generator.paths(files), generator.size(files), first_id(files), strict=True):
            _write(folder / path.decode(), int(size), int(first))
    ids = first_id(files)
    return f"date = '{day}' AND id BETWEEN {ids[0]} AND {ids[-1] + ROWS - 1}", len(files) * ROWS


def _write(path: Path, size: int, first: int) -> None:
    if path.exists():
        return
    ids: Ints = np.arange(first, first + ROWS, dtype=np.int64)
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ids, "customer": [f"c{each}" for each in ids.tolist()]}), sink)
    data = sink.getvalue()
    # The last eight bytes are the footer's length and a mark; before them is the footer itself.
    footer = int.from_bytes(data[-2 * _MAGIC : -_MAGIC], "little") + 2 * _MAGIC
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data[:-footer])
        file.seek(size - footer)
        file.write(data[-footer:])
