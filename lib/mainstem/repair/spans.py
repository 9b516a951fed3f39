"""Spans that are not what the log's rows say: found by replay, and put right from the rows alone.

Which files are concerned may be found without a lock, by the database or by Spark. What their spans should be is worked
out again under the head's lock: a commit in between changes nothing about the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mainstem import frames, observe, replay
from mainstem.columns import Column
from mainstem.errors import UsageError
from mainstem.rows import ADDS, DOMAINS, TXNS, Shape
from mainstem.store import Queries, Row, Store
from mainstem.versions import key_chunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMOVED = Column("removed_version", "bigint", "int64")
# What a row is about, and what it is called in messages.
_KEYED: Mapping[Shape, Mapping[str, str]] = {
    TXNS: {"target": TXNS.table, "key": "app_key", "named": "app_id"},
    DOMAINS: {"target": DOMAINS.table, "key": "domain_key", "named": "domain"},
}


class WrongSpan(NamedTuple):
    """A row that ends at another version than the log's rows say; None is a row that is open."""

    target: str
    version: int
    seq: int
    named: str
    was: int | None
    ended: int | None


def wrong_keys(store: Store, table: Row, *, session: Callable[[], SparkSession]) -> list[bytes]:
    """The files of which a span is contradicted by replay. Of a large table Spark replays, if there is a session."""
    table_id, head = table["table_id"], int(table["current_version"])
    with observe.span("spans.check", table=table["name"]):
        spark = _session(store, table_id, head, session)
        if spark is not None:
            return sorted(_keys_by_spark(spark, store, table_id, head))
        return sorted(bytes(row["file_key"]) for row in store.rows("add_keys_wrong", table_id=table_id))


def wrong_spans(store: Store, table: Row, keys: Sequence[bytes]) -> list[WrongSpan]:
    """What is wrong about these files, and about all applications and domains, which are few."""
    with store.reading() as queries:
        return [*_wrong_adds(queries, table["table_id"], keys), *_wrong_keyed(queries, table["table_id"])]


def put_right(store: Store, table: Row, keys: Sequence[bytes]) -> int:
    """Rebuild the spans of these files, and of applications and domains; how many were wrong.

    Images are dropped with them: they may have been made of wrong spans, and are made again when it pays.
    """
    table_id = table["table_id"]
    with observe.span("spans.rebuild", table=table["name"]), store.writing() as queries:
        queries.row("head_lock", table_id=table_id)
        changed = sum(
            queries.change_among("add_spans_right", "keys", chunk, table_id=table_id) for chunk in key_chunks(keys)
        )
        for span in list(_wrong_keyed(queries, table_id)):
            place = {"table_id": table_id, "version": span.version, "seq": span.seq}
            changed += queries.change("keyed_span_right", {"target": span.target}, **place, ended=span.ended)
        if changed:
            queries.change("table_forget_images", table_id=table_id)
    observe.event("spans.rebuilt", table=table["name"], spans=changed)
    return changed


def _wrong_adds(queries: Queries, table_id: str, keys: Sequence[bytes]) -> Iterator[WrongSpan]:
    for chunk in key_chunks(keys):
        yield from _as_wrong(ADDS, queries.rows_among("add_spans_wrong", "keys", chunk, table_id=table_id))


def _wrong_keyed(queries: Queries, table_id: str) -> Iterator[WrongSpan]:
    for shape, pieces in _KEYED.items():
        yield from _as_wrong(shape, queries.rows("keyed_spans_wrong", pieces, table_id=table_id))


def _as_wrong(shape: Shape, rows: Iterable[Row]) -> Iterator[WrongSpan]:
    for row in rows:
        yield WrongSpan(shape.table, row["version"], row["seq"], row["named"], row["was"], row["ended"])


def _session(store: Store, table_id: str, head: int, session: Callable[[], SparkSession]) -> SparkSession | None:
    """The session, if there is one and the table is large enough to be worth its while."""
    with store.reading() as queries:
        actions = int(queries.scalar("actions_since", table_id=table_id, since=-1, version=head))
    if actions <= store.engine.settings.driver_files:
        return None
    try:
        return session()
    except UsageError:
        return None  # the database replays as well as Spark, only slower


def _keys_by_spark(spark: SparkSession, store: Store, table_id: str, head: int) -> list[bytes]:
    """The same as the query `add_keys_wrong`, for actions up to the head; a slice holds all actions of its files."""
    from pyspark.sql import functions as F  # noqa: N812  as every user of Spark calls it

    found = []
    for within in frames.slices(spark, store.engine):
        added = frames.adds(
            spark, store.engine, table_id, head, columns=(*frames.ACTION_COLUMNS, _REMOVED), within=[within]
        )
        removed = frames.removes(spark, store.engine, table_id, head, within=[within])
        removed = removed.withColumn(_REMOVED.name, F.lit(None).cast(_REMOVED.spark))
        ended = replay.ends(replay.actions(added, removed).coalesce(1))
        # What a commit after the head has ended meanwhile is open at the head.
        was = F.when(F.col(_REMOVED.name) <= head, F.col(_REMOVED.name))
        found.append(ended.where(~was.eqNullSafe(F.col("ends_at"))).select("file_key").distinct())
    return [bytes(row["file_key"]) for row in frames.union(found).collect()]
