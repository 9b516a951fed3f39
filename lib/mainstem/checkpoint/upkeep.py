"""What a log needs after versions were published: the checkpoint that is due, and then a cleanup."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson

from mainstem import observe
from mainstem.checkpoint.cleanup import clean_log
from mainstem.checkpoint.properties import Properties, due
from mainstem.checkpoint.table import write_checkpoint
from mainstem.checkpoint.writing import WrittenCheckpoint
from mainstem.errors import told
from mainstem.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mainstem.deltalog.writing import LogWriter


def keep_up(
    store: Store,
    table: str,
    *,
    first: int,
    last: int,
    properties: Properties | None = None,
    writer: LogWriter | None = None,
    spark: SparkSession | None = None,
) -> WrittenCheckpoint | None:
    """Write the newest checkpoint that is due among published versions, then clean the log up; None if none was due.

    The commits are published and stay so: a checkpoint that cannot be written is told by an event and by the counter
    `checkpoint_failures_total`, not raised. The next one that is due makes up for it. `properties` are the table's,
    where the caller knows them: that spares most commits a query.
    """
    try:
        if properties is None:
            properties = orjson.loads(store.rows("table_properties", name=table)[0]["properties"])
        version = next((version for version in range(last, first - 1, -1) if due(version, properties)), None)
        if version is None:
            return None
        with observe.timed("checkpoint_latency_ms", table=table):
            written = write_checkpoint(store, table, version, writer=writer, spark=spark)
        clean_log(store, table, writer=writer)
    except Exception as error:  # noqa: BLE001  a full scratch folder, a bug: nothing undoes what is published
        observe.count("checkpoint_failures_total", table=table)
        observe.event("checkpoint.failed", level=logging.WARNING, table=table, last=last, error=told(error))
        return None
    return written
