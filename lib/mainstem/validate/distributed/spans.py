"""Spans against replay, of every version at once: each add ends where the next action on its file stands."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

from mainstem import frames, replay
from mainstem.columns import Column
from mainstem.frames import ACTION_COLUMNS
from mainstem.validate.distributed.told import told
from mainstem.validate.report import Finding
from mainstem.validate.rows import registered_equal_replay, wrong_span
from mainstem.validate.subject import Subject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPAN = (*ACTION_COLUMNS, Column("removed_version", "bigint", "int64"), Column("path", "string", "string"))


def spans_equal_replay(subject: Subject) -> Iterator[Finding]:
    """Every span ends where the log's rows end it: what is live by spans is live by replay, at every version."""
    from pyspark.sql import functions as F  # noqa: N812

    ends = subject.evidence("spans", lambda: _ends(subject))
    wrong = ends.where(~F.col("removed_version").eqNullSafe(F.col("ends_at")))
    yield from told(
        subject, wrong, "spans_equal_replay",
        lambda row: iter([wrong_span(row["version"], row["path"], row["removed_version"], row["ends_at"])]),
        by=("version", "seq"),
    )  # fmt: skip
    yield from registered_equal_replay(subject)


def _ends(subject: Subject) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    spark, engine, head = subject.spark, subject.store.engine, subject.head

    def of(within: str) -> DataFrame:
        # A slice holds all actions of its files: followed by the task that reads it, they are never shuffled.
        added = frames.adds(spark, engine, subject.table_id, head, columns=_SPAN, within=[within])
        removed = frames.removes(spark, engine, subject.table_id, head, within=[within])
        for column in _SPAN[len(ACTION_COLUMNS) :]:
            removed = removed.withColumn(column.name, F.lit(None).cast(column.spark))
        return replay.ends(replay.actions(added, removed).coalesce(1))

    found = reduce(lambda left, right: left.unionAll(right), map(of, frames.slices(spark, engine)))
    ended = F.when(F.col("removed_version") <= head, F.col("removed_version"))
    return found.select("version", "seq", "path", ended.alias("removed_version"), "ends_at")
