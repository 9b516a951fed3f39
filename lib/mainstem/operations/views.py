"""DataFrames under names, for statements of SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from mainstem.errors import UsageError
from mainstem.operations.sqltexts import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def temporary_view(frame: DataFrame) -> Iterator[str]:
    """The frame under a name of its own, while the block runs."""
    name = f"mainstem_{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)


def make_views(tables: Mapping[str, Callable[[], DataFrame]], *, prefix: str) -> dict[str, str]:
    """A temporary view of each table, and what it is called. Raises before any is made if two would have one name."""
    names = {table: prefix + table.replace(".", "_") for table in tables}
    owners: dict[str, str] = {}
    for table, name in names.items():
        other = owners.setdefault(name.lower(), table)  # Spark looks names up without regard to case
        if other != table:
            raise UsageError(
                f"the tables {other} and {table} would both be the view {name}.",
                hint="Name the tables that shall have one: views(tables=[…]).",
            )
    for table, name in names.items():
        tables[table]().createOrReplaceTempView(quoted(name))
    return names
