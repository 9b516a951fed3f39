"""What the processes of a crew do. Here and not in a test, so that a fresh interpreter imports nothing of pytest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from tables import add

from mainstem import open_catalog
from mainstem.committing import Committed
from mainstem.errors import EngineBusy

T = TypeVar("T")


def append(worker: int, gate: threading.Barrier, uri: str, name: str, count: int) -> list[Committed]:
    """Append so many files to one table, one commit each."""
    with open_catalog(uri) as catalog:
        table = patiently(lambda: catalog.table(name))
        gate.wait()
        return [
            patiently(lambda file=f"w{worker}n{number}": table.commit([add(file)], operation="WRITE"))
            for number in range(count)
        ]


def append_to_both(
    worker: int, gate: threading.Barrier, uri: str, names: tuple[str, str], count: int
) -> list[dict[str, Committed]]:
    """Append a file to each of two tables in every transaction. Every second worker names them the other way round."""
    order = names if worker % 2 else names[::-1]
    done = []
    with open_catalog(uri) as catalog:
        patiently(catalog.tables)
        gate.wait()

        def once(file: str) -> dict[str, Committed]:
            with catalog.transaction() as transaction:
                for name in order:
                    transaction.table(name).stage([add(file)], operation="WRITE")
            return transaction.committed

        for number in range(count):
            done.append(patiently(lambda file=f"w{worker}n{number}": once(file)))
    return done


def patiently(call: Callable[[], T]) -> T:
    """Do it again as long as the database is busy: nothing was written then. DuckDB has one process at a time."""
    while True:
        try:
            return call()
        except EngineBusy:
            continue
