"""The one place that speaks to the JVM by py4j. Over Spark Connect there is none: then nothing is done here.

What stays behind in that case are entries of caches on the server: a few kilobytes a mount, and its file system's
threads, until the server evicts them or ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainstem import observe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
