"""Every row of one table of a catalog."""

from __future__ import annotations

from typing import Any

from mainstem import Catalog
from mainstem.rows import SHAPES, VERSION_COLUMNS

COLUMNS = {
    **{shape.table: ", ".join(shape.all_columns[1:]) for shape in SHAPES},
    "dl_table_versions": ", ".join(VERSION_COLUMNS[1:]),
    "dl_table_heads": "current_version, published_version, min_readable_version",
    "dl_tables": "location, authority, protocol_min_reader, protocol_min_writer, properties",
}


def all_rows(catalog: Catalog, table_id: str) -> dict[str, list[tuple[Any, ...]]]:
    """By `dl_*` table, in the order of the log; without the table's own id and name."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with catalog.engine.reading() as connection:
        for table, columns in COLUMNS.items():
            order = "version, seq" if "seq" in columns else "1"
            sql = f"SELECT {columns} FROM {table} WHERE table_id = :table_id ORDER BY {order}"
            cursor = catalog.engine.execute(connection, sql, {"table_id": table_id})
            found[table] = [tuple(row) for row in cursor.fetchall()]
    return found
