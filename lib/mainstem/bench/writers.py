"""What a writer of the benchmark does: one add a commit, so many times, on a table that it has read before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from mainstem.bench.generator import ROWS, SCHEMA
from mainstem.bench.sides import delta_rs
from mainstem.catalog import Catalog, open_catalog
from mainstem.errors import EngineBusy
from mainstem.table import Table

# As delta-rs has it unless told otherwise; Delta Spark's own ten would cost both of them more.
CHECKPOINTS = {"delta.checkpointInterval": "100"}
_DAY = "2026-11-18"
_STATS = (
    f'{{"numRecords":{ROWS},"minValues":{{"id":1,"amount":1.5,"quantity":1}},'
    '"maxValues":{"id":1000,"amount":99.5,"quantity":9},"nullCount":{"id":0,"amount":0,"quantity":0}}'
)
_RETRIES = 1000  # delta-rs gives up after 15 lost races, which 16 writers on one table reach


def added(name: str) -> dict[str, Any]:
    """An add of one file, as Delta's JSON."""
    return {
        "add": {
            "path": f"date={_DAY}/{name}.parquet",
            "partitionValues": {"date": _DAY},
            "size": 10_000_000,
            "modificationTime": 1_763_424_000_000,
            "dataChange": True,
            "stats": _STATS,
        }
    }


@contextmanager
def mainstem_writer(
    uri: str, table: str, name: str, count: int, settings: dict[str, Any]
) -> Iterator[Callable[[], int]]:
    """Mainstem: connected from the first turn on; each commit reads the head and proposes on top of it."""
    known = _catalog(uri, tuple(settings.items())).table(table)
    assert known.version >= 0
    yield lambda: sum(_patiently(known, f"{name}-{number}") for number in range(count))


@cache
def _catalog(uri: str, settings: tuple[tuple[str, Any], ...]) -> Catalog:
    """Kept open by the writer, as a long job does. Its process ends with the run."""
    return open_catalog(uri, **dict(settings))


def _patiently(table: Table, name: str) -> int:
    while True:
        try:
            return int(table.commit([added(name)], operation="WRITE").changed)
        except EngineBusy:  # one process at a time has a DuckDB file, and the others wait their turn
            continue


@contextmanager
def delta_rs_writer(location: str, name: str, count: int) -> Iterator[Callable[[], int]]:
    """delta-rs: the table loaded in the first turn, and brought up to date by each commit."""
    table = _loaded(location)
    table.update_incremental()

    def commit(number: int) -> int:
        _commit(table, [added(f"{name}-{number}")])
        table.update_incremental()  # by itself it stays where it was, and every commit would begin further back
        return 1

    yield lambda: sum(commit(number) for number in range(count))


@contextmanager
def delta_rs_bulk(location: str, objects: Sequence[Mapping[str, Any]]) -> Iterator[Callable[[], int]]:
    """delta-rs: many adds in one commit."""
    table = delta_rs()(location)
    adds = _adds(objects)

    def commit() -> int:
        _commit_adds(table, adds)
        return len(adds)

    yield commit


@cache
def _loaded(location: str) -> Any:
    return delta_rs()(location)


def _commit(table: Any, objects: Sequence[Mapping[str, Any]]) -> None:
    _commit_adds(table, _adds(objects))


def _adds(objects: Sequence[Mapping[str, Any]]) -> list[Any]:
    from deltalake.transaction import AddAction

    names = ("path", "size", "partitionValues", "modificationTime", "dataChange", "stats")
    return [AddAction(*(each["add"][name] for name in names)) for each in objects]


def _commit_adds(table: Any, adds: list[Any]) -> None:
    from deltalake import CommitProperties

    table.create_write_transaction(
        adds,
        mode="append",
        schema=_schema(),
        partition_by=["date"],
        commit_properties=CommitProperties(max_commit_retries=_RETRIES),
    )


@cache
def _schema() -> Any:
    import pyarrow as pa
    from deltalake import Schema

    return pa.schema(Schema.from_json(SCHEMA))
