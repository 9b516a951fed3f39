"""What Delta Spark itself says of a table at a version, through its own log replay and none of our code.

The only place of the tests that uses Delta's private API: time travel by DataFrame shows the files' names, and neither
their statistics nor domains and transactions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from states import File, FileId, State, dv_id, metadata_of, protocol_of

# A log of a few files costs planning and compiling, not reading: without generated code a version takes a third.
_SMALL = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Commits, and not the compacted files beside them: those of the corpus keep files that the commits have removed,
    # and Delta would then show them as live. Without them Delta, delta-rs and we agree.
    "spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false",
}
# So many versions are one Spark job: the price of a job is paid once, and its plan stays small.
_VERSIONS_PER_JOB = 8


class DeltaRefuses(Exception):
    """Delta Spark does not open the table, or not this version of it."""


class DeltaSpark:
    """Delta's snapshots of a table. Has a session of its own, so that its settings are nobody else's."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark.newSession()
        for key, value in _SMALL.items():
            self._session.conf.set(key, value)
        assert self._session._jvm is not None
        self._jvm: Any = self._session._jvm
        self._none = getattr(self._jvm.scala, "None$").__getattr__("MODULE$")

    def states(self, path: str, versions: Iterable[int]) -> dict[int, State]:
        """The state at each of these versions. Raises DeltaRefuses if one of them cannot be had."""
        found: dict[int, State] = {}
        wanted = list(versions)
        with self._log(path) as log:
            for start in range(0, len(wanted), _VERSIONS_PER_JOB):
                found.update(self._replayed(log, wanted[start : start + _VERSIONS_PER_JOB]))
        return found

    def state(self, path: str, version: int) -> State:
        """The state at one version."""
        return self.states(path, [version])[version]

    def checkpoint(self, path: str) -> None:
        """Let Delta write its own checkpoint of the newest version."""
        with self._log(path) as log:
            log.checkpoint()

    def version(self, path: str) -> int:
        """The newest version that Delta sees."""
        with self._log(path) as log:
            return int(log.update(False, self._none, self._none).version())

    @contextmanager
    def _log(self, path: str) -> Iterator[Any]:
        sessions = self._jvm.org.apache.spark.sql.classic.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(self._session._jsparkSession)
        logs = self._jvm.org.apache.spark.sql.delta.DeltaLog
        try:
            logs.clearCache()  # a log that a test has changed since must be listed again
            yield logs.forTable(self._session._jsparkSession, path)
        except (Py4JJavaError, PySparkException) as error:
            raise DeltaRefuses(" ".join(str(error).split())[:400]) from error
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())

    def _replayed(self, log: Any, versions: list[int]) -> dict[int, State]:
        """The rows of Delta's state reconstruction, all versions in one job."""
        literal = self._jvm.org.apache.spark.sql.functions.lit
        together: Any = None
        for version in versions:
            snapshot = log.getSnapshotAt(version, self._none, self._none, False)
            rows = snapshot.stateReconstruction().toDF().withColumn("at", literal(version))
            together = rows if together is None else together.union(rows)
        actions: dict[int, list[dict[str, Any]]] = {version: [] for version in versions}
        for line in together.toJSON().collectAsList():
            action = json.loads(line)
            actions[action.pop("at")].append(action)
        return {version: _state(found) for version, found in actions.items()}


def _state(actions: list[dict[str, Any]]) -> State:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for action in actions:
        for kind, body in action.items():
            by_kind.setdefault(kind, []).append(body)
    [metadata], [protocol] = by_kind["metaData"], by_kind["protocol"]
    files: dict[FileId, File] = {}
    for add in by_kind.get("add", ()):
        known = (add["path"], dv_id(add.get("deletionVector")))
        assert known not in files
        files[known] = File(
            size=add["size"],
            partition_values=add["partitionValues"],
            stats=add.get("stats"),
            modification_time=add["modificationTime"],
            base_row_id=add.get("baseRowId"),
            default_row_commit_version=add.get("defaultRowCommitVersion"),
        )
    return State(
        files=files,
        metadata=metadata_of(metadata),
        protocol=protocol_of(protocol),
        domains={
            domain["domain"]: domain["configuration"]
            for domain in by_kind.get("domainMetadata", ())
            if not domain["removed"]
        },
        transactions={txn["appId"]: txn["version"] for txn in by_kind.get("txn", ())},
        tombstones={
            (remove["path"], dv_id(remove.get("deletionVector"))): remove.get("deletionTimestamp")
            for remove in by_kind.get("remove", ())
        },
    )
