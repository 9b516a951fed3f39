"""Rows as delta-rs reads them, in another process: while it reads, no other thread runs here, and so not the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError


def rows(location: str) -> Counter[str]:
    with _told():
        found = QueryBuilder().register("t", DeltaTable(location)).execute("SELECT * FROM t").read_all()
        return Counter(repr(row) for row in pa.table(found).to_pylist())


def version(location: str) -> int:
    with _told():
        return DeltaTable(location).version()


@contextmanager
def _told() -> Iterator[None]:
    """Errors of delta-rs cannot travel between processes: their class is nowhere that it says."""
    try:
        yield
    except DeltaError as error:
        raise RuntimeError(f"delta-rs: {error}") from None
