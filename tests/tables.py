"""Small tables and actions for tests that commit without Spark: `from tables import add, remove` in every test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mainstem import Catalog, Table
from mainstem.columns import FILE_COLUMNS, SEQ

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "day", "type": "date", "nullable": True, "metadata": {}},
        ],
    }
)


def add(name: str, *, day: str = "2026-11-18", **fields: Any) -> dict[str, Any]:
    """An add of one small file."""
    body = {
        "path": f"day={day}/{name}.parquet",
        "partitionValues": {"day": day},
        "size": 100,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":10}',
    }
    return {"add": {**body, **fields}}


def remove(name: str, *, day: str = "2026-11-18", **fields: Any) -> dict[str, Any]:
    """A remove of the same file."""
    body = {
        "path": f"day={day}/{name}.parquet",
        "deletionTimestamp": 1,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"day": day},
        "size": 100,
    }
    return {"remove": {**body, **fields}}


def create(catalog: Catalog, folder: Path, *, name: str = "sales.orders", **properties: str) -> Table:
    """A new table, partitioned by day, that the catalog leads; its folder is named as it is."""
    given = {key.replace("__", "."): value for key, value in properties.items()}
    return catalog.create_table(
        name, location=str(folder / name), schema=SCHEMA, partition_by=["day"], properties=given
    )


def paths(table: Table, *, version: int | None = None) -> set[str]:
    """The names of the live files."""
    found = table.snapshot(version=version).to_arrow(columns=["path"]).column("path").to_pylist()
    return {Path(path).stem for path in found}


def log_files(table: Table) -> list[int]:
    """The versions whose commit files the table's log has."""
    return sorted(int(file.stem) for file in (Path(table.location) / "_delta_log").glob("*.json"))


def rows(catalog: Catalog, sql: str) -> list[tuple[Any, ...]]:
    """What the catalog's database says."""
    with catalog.engine.reading() as connection:
        return [tuple(row) for row in connection.execute(sql).fetchall()]


def run_sql(catalog: Catalog, sql: str) -> None:
    """Change the catalog's database behind its back."""
    with catalog.engine.writing() as connection:
        connection.execute(sql)


def everything(catalog: Catalog) -> dict[str, list[str]]:
    """Every row of every table of the catalog: what must be the same after something that changed nothing."""
    with catalog.engine.reading() as connection:
        names = sorted(catalog.engine.tables(connection))
        found = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    return {name: sorted(repr(tuple(row)) for row in rows) for name, rows in found.items()}


def require_spans_equal_replay(table: Table) -> None:
    """The live files by spans are those by the log's rows alone, at every version."""
    info = table.info()
    with table._store.reading() as queries:
        for version in range(info.min_readable_version, info.version + 1):
            spans, replay = (
                {(row["path"], row["dv_id"], row["version"], row["seq"]) for row in found}
                for found in (
                    queries.page(name, (*FILE_COLUMNS, SEQ), table_id=info.table_id, version=version)
                    for name in ("files_at_version", "replay_at_version")
                )
            )
            assert spans == replay, version
