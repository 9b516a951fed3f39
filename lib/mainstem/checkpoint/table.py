"""A checkpoint of a published version into the table's own log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NoReturn

from mainstem import observe
from mainstem.checkpoint import properties as said
from mainstem.checkpoint.plan import TopFormat
from mainstem.checkpoint.state import open_state
from mainstem.checkpoint.writing import WrittenCheckpoint, write_state
from mainstem.deltalog.protocol import refuse_unwritable, supports
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import TableNotFound, UsageError, told
from mainstem.snapshot import Snapshot, open_snapshot
from mainstem.store import Row, Store
from mainstem.versions import to_millis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROTECTION_FEATURE = "checkpointProtection"


def write_checkpoint(
    store: Store,
    table: str,
    version: int,
    *,
    writer: LogWriter | None = None,
    spark: SparkSession | None = None,
    top: TopFormat = "json",
) -> WrittenCheckpoint:
    """Write the checkpoint of a version that is published, as the table's properties ask for it.

    Raises UsageError, with nothing written, for a version that is not published, for a table whose log leads, and for a
    version that the table protects from checkpoints; UnsupportedFeature for a table that we cannot write. `top` is the
    format of a v2 checkpoint's top file. A large one is written by `spark`, or by the catalog's session if it has one;
    if that one fails at it, then by this process as if there were none.
    """
    row = published_table(store, table)
    if not 0 <= version <= row["published_version"]:
        raise UsageError(
            f"version {version} of {table} is not published, so it has no checkpoint yet.",
            hint=f"Nothing was written. Published are the versions up to {row['published_version']}.",
            table=table,
            version=version,
        )
    snapshot = open_snapshot(store, table, row["table_id"], session=no_session, version=version)
    head = open_snapshot(store, table, row["table_id"], session=no_session)
    for protocol in (snapshot.protocol, head.protocol):
        refuse_unwritable(protocol, table=table)
    _refuse_protected(head, version)
    with store.reading() as queries:
        now_ms = to_millis(queries.now())
    state = open_state(snapshot, now_ms=now_ms)
    writer = writer or LogWriter.open(row["location"])
    session = store.session() if spark is None else None
    if session is not None:
        try:
            return write_state(state, writer=writer, top=top, spark=session)
        except Exception as error:  # noqa: BLE001  it may have been stopped, or have no driver for the database
            observe.event("checkpoint.not_by_spark", level=logging.WARNING, table=table, error=told(error))
    return write_state(state, writer=writer, top=top, spark=spark)


def published_table(store: Store, table: str) -> Row:
    """The row of a table whose log is ours to write."""
    row = store.row("table_by_name", name=table)
    if row is None:
        raise TableNotFound(f"the catalog has no table {table}.", hint="See: mainstem tables", table=table)
    if row["authority"] != "catalog":
        raise UsageError(
            f"the log of {table} leads, and is not ours to write.",
            hint="Nothing was written. To let the catalog lead: mainstem cutover",
            table=table,
        )
    return row


def _refuse_protected(head: Snapshot, version: int) -> None:
    """After a feature was dropped, older versions may need what this writer does not know: no new checkpoint there."""
    first = said.protected_before(head.properties)
    if version < first and supports(head.protocol, PROTECTION_FEATURE):
        raise UsageError(
            f"{head.table} lets nobody make a checkpoint of a version before {first}.",
            hint=f"Nothing was written. The table property {said.PROTECTED_BEFORE} says so.",
            table=head.table,
            version=version,
        )


def no_session() -> NoReturn:
    """The session of snapshots that are asked for nothing but rows."""
    raise AssertionError("a checkpoint asks no snapshot for its session")
