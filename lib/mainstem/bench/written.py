"""Tables that the benchmark commits to: led by a catalog, or by nothing but their log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from mainstem.bench.catalogwriter import write_catalog
from mainstem.bench.generator import SCHEMA, Generator
from mainstem.bench.lab import Lab
from mainstem.bench.logwriter import write_log
from mainstem.bench.recipe import Recipe
from mainstem.bench.sides import delta_rs
from mainstem.bench.writers import CHECKPOINTS
from mainstem.catalog import open_catalog


def catalog_table(lab: Lab, uri: str, name: str, recipe: Recipe | None) -> None:
    """A table that the catalog leads, with the recipe's log in its folder; a new one without a recipe."""
    folder = lab.folder() / "table"
    with open_catalog(uri) as catalog:
        if recipe is None:
            catalog.create_table(
                name, location=str(folder), schema=SCHEMA, partition_by=["date"], properties=CHECKPOINTS
            )
            return
        write_log(recipe, folder)
        table_id = write_catalog(recipe, catalog.store, name=name, location=str(folder))
        with catalog.store.writing() as queries:
            queries.change("table_authority", table_id=table_id, authority="catalog")
        catalog.table(name).commit([_metadata(recipe)], operation="SET TBLPROPERTIES")


def _metadata(recipe: Recipe) -> dict[str, Any]:
    """The table's own, with our checkpoints."""
    found: dict[str, Any] = orjson.loads(Generator(recipe).first_lines().splitlines()[1])
    found["metaData"]["configuration"] = CHECKPOINTS
    return found


def log_table(lab: Lab, recipe: Recipe | None) -> Path:
    """The same without a catalog, for delta-rs."""
    folder = lab.folder() / "table"
    if recipe is None:
        import pyarrow as pa
        from deltalake import Schema

        schema = pa.schema(Schema.from_json(SCHEMA))
        delta_rs().create(str(folder), schema=schema, partition_by=["date"], configuration=CHECKPOINTS)
        return folder
    write_log(recipe, folder)
    delta_rs()(str(folder)).alter.set_table_properties(CHECKPOINTS)
    return folder
