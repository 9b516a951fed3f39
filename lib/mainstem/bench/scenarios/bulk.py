"""Very many adds in one commit, beside a bare COPY of the same rows into the same table of the database.

The actions are staged before, as they are when an operation has made them: what is measured is the commit, with its
conflict check and its published file where it says so. Beside it stands the whole call from JSON objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from mainstem.bench.lab import TABLE, Lab
from mainstem.bench.race import Contender
from mainstem.bench.scale import Scale
from mainstem.bench.scenario import Scenario
from mainstem.bench.sides import DELTA_RS, MAINSTEM
from mainstem.bench.target import Target, times_as_long
from mainstem.bench.writers import added, delta_rs_bulk
from mainstem.bench.written import catalog_table, log_table
from mainstem.catalog import open_catalog
from mainstem.deltalog.objects import actions_of
from mainstem.rows import ADDS
from mainstem.spans import SpanBook

_COPY = "bare COPY on Postgres"


def _objects(count: int) -> list[dict[str, Any]]:
    token = uuid4().hex[:12]
    return [added(f"{token}-{number}") for number in range(count)]


def _mainstem(lab: Lab, engine: str, name: str, *, publish: bool, staged: bool) -> Contender:
    """Every turn has a table of its own, so that none pays for the rows of those before."""
    count = lab.scale.bulk

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with lab.new_catalog(engine) as uri, open_catalog(uri, publish_on_commit=publish) as catalog:
            catalog_table(lab, uri, TABLE, None)
            table, objects = catalog.table(TABLE), _objects(count)
            assert table.version == 0
            if staged:
                transaction = catalog.transaction()
                transaction.table(TABLE).stage(objects, operation="WRITE")
                yield lambda: len(transaction.commit()) * count
            else:
                yield lambda: table.commit(objects, operation="WRITE").version * count

    return Contender(name, turn)


def _copy(lab: Lab) -> Contender:
    """The rows are there as Python's values: what is measured is BEGIN, COPY by the same driver, COMMIT."""

    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with lab.new_catalog("postgres") as uri, open_catalog(uri) as catalog:
            catalog_table(lab, uri, TABLE, None)
            book = SpanBook(catalog.table(TABLE).info().table_id)
            for action in actions_of(_objects(lab.scale.bulk), table=TABLE, table_root=""):
                book.take(1, action)
            [(_, rows)] = book.batch()

            def call() -> int:
                with catalog.store.writing() as queries:
                    return queries.copy(ADDS.table, ADDS.all_columns, rows)

            yield call

    return Contender(_COPY, turn)


def _delta_rs(lab: Lab) -> Contender:
    @contextmanager
    def turn() -> Iterator[Callable[[], int]]:
        with delta_rs_bulk(str(log_table(lab, None)), _objects(lab.scale.bulk)) as call:
            yield call

    return Contender(DELTA_RS, turn)


def _contenders(lab: Lab) -> Sequence[Contender]:
    found = [_copy(lab), _delta_rs(lab)]
    for engine, label in MAINSTEM.items():
        found.append(_mainstem(lab, engine, f"{label}, ratified", publish=False, staged=True))
        found.append(_mainstem(lab, engine, f"{label}, published", publish=True, staged=True))
        found.append(_mainstem(lab, engine, f"{label}, from objects", publish=True, staged=False))
    return found


def _targets(scale: Scale) -> Sequence[Target]:
    return [times_as_long(f"{MAINSTEM['postgres']}, ratified", 1.3, as_whom=_COPY)]


SCENARIO = Scenario("bulk", "Very many adds in one commit", _contenders, _targets, lambda scale: scale.slow_rounds)
