"""Run by test_killed.py in a process of its own: a transaction over the data of two tables that is killed on its way.

python killed.py CATALOG-URI SCRATCH POINT
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

import mainstem.committing as committing
from mainstem import build_session, open_catalog

# In the order in which a transaction passes them.
POINTS = (
    "the first table is mounted",
    "the first table is staged",
    "both are staged",
    "before the database commits",
    "after the database has committed",
)


def die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def arrange(point: str) -> None:
    """Let the process die inside of the commit, where the point is there."""
    if point == POINTS[3]:
        ratify = committing.ratify

        def and_die(*args: Any) -> NoReturn:
            ratify(*args)
            die()

        committing.ratify = and_die
    if point == POINTS[4]:
        committing._published = die


def main(uri: str, scratch: str, point: str) -> None:
    spark = build_session("to be killed", master="local[2]", **{"spark.sql.shuffle.partitions": "2"})
    arrange(point)
    with open_catalog(uri, spark=spark, scratch=scratch) as catalog, catalog.transaction(txn_id=point) as tx:
        orders = tx.table("sales.orders")
        orders.read().count()
        if point == POINTS[0]:
            die()
        orders.delete("id = 1")
        if point == POINTS[1]:
            die()
        tx.table("sales.items").append(spark.range(10, 12))
        if point == POINTS[2]:
            die()


if __name__ == "__main__":
    main(*sys.argv[1:])
