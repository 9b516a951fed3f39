"""The one place that speaks to the JVM by py4j. Over Spark Connect there is none: then nothing is done here.

What stays behind in that case are entries of caches on the server: a few kilobytes a mount, and its file system's
threads, until the server evicts them or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mainstem import observe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
_FILES_OF_A_PARTITION = 20_000  # Delta holds a partition's files in memory, at some kilobytes each


class DeltaState(NamedTuple):
    """A version as Delta itself rebuilds it: its live files, and the lines of all else that it says."""

    files: DataFrame
    lines: list[str]
    release: Callable[[], object]  # Delta keeps a state that it has built until it is told


def gateway(spark: SparkSession) -> Any | None:
    """The session's JVM, or None where it is out of reach."""
    try:
        return spark._jvm
    except Exception:  # noqa: BLE001  Connect refuses the attribute by an error of its own
        return None


def forget_table(spark: SparkSession, uri: str) -> None:
    """Let Delta and Hadoop forget a table that is about to vanish: their caches must not grow with every mount."""
    jvm = gateway(spark)
    if jvm is None:
        return
    try:
        path = jvm.org.apache.hadoop.fs.Path(uri)
        jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(spark._jsparkSession, path)
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        path.getFileSystem(conf).close()
    except Exception as error:  # noqa: BLE001  a cache that could not be emptied is no reason to fail what was done
        observe.event("mount.not_forgotten", level=30, uri=uri, error=type(error).__name__)


def delta_state(spark: SparkSession, uri: str, version: int, *, files: int) -> DeltaState | None:
    """What Delta's own engine makes of a table's log at a version, of about so many files; None over Connect.

    Delta's API is private and may move: it is asked here alone. Raises what Delta raises.
    """
    jvm = gateway(spark)
    if jvm is None:
        return None
    from pyspark.sql import DataFrame

    path = jvm.org.apache.hadoop.fs.Path(uri)
    delta = jvm.org.apache.spark.sql.delta.DeltaLog
    # What Delta remembers of the log is not what the log says.
    delta.invalidateCache(spark._jsparkSession, path)
    log = delta.forTable(spark._jsparkSession, path)
    defaults = (getattr(log, f"getSnapshotAt$default${place}")() for place in (2, 3, 4))
    with _partitions(spark, files):
        snapshot = log.getSnapshotAt(version, *defaults)
        live = DataFrame(snapshot.allFiles().toDF(), spark)
        lines = [snapshot.metadata().json(), snapshot.protocol().json()]
        for actions in (snapshot.setTransactions(), snapshot.domainMetadata()):
            lines += [actions.apply(place).json() for place in range(actions.size())]
    return DeltaState(live, lines, snapshot.uncache)


@contextmanager
def _partitions(spark: SparkSession, files: int) -> Iterator[None]:
    """Let Delta rebuild a large state in pieces that fit; what the session has is put back."""
    before = spark.conf.get(_PARTITIONS, None)
    needed = files // _FILES_OF_A_PARTITION
    if before is None or not before.isdigit() or int(before) >= needed:
        yield
        return
    spark.conf.set(_PARTITIONS, str(needed))
    try:
        yield
    finally:
        spark.conf.set(_PARTITIONS, before)
