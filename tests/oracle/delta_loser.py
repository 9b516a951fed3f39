"""A commit by Delta Spark that others have overtaken: which of its exceptions it raises, or what it then writes.

Loser and winners are held in order by the calls themselves: the transaction is opened and reads, then the winners'
files appear in the log, then it commits. Uses Delta's private API, as only tests may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conflict_cases import Case, Json
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

# What is small should be quick: these change how Delta reads its log and what it does after a commit, not its verdict.
_SMALL = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
}


class DeltaLoser:
    """Delta's own conflict check. Has a session of its own, so that its settings are nobody else's."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark.newSession()
        for key, value in _SMALL.items():
            self._session.conf.set(key, value)
        assert self._session._jvm is not None
        self._jvm: Any = self._session._jvm
        self._delta = self._jvm.org.apache.spark.sql.delta

    def verdict(self, root: Path, case: Case, level: str) -> str | list[Json]:
        """The name of the exception that Delta raises, or the lines of the version that it writes."""
        log = root / "_delta_log"
        _write(log, 0, case.lines(level))
        with self._opened(root) as loser:
            self._read(loser, case)
            for version, lines in enumerate(case.winners_at(level), 1):
                _write(log, version, lines)
            try:
                loser.commit(self._actions(case.own_at(level)), self._operation(case.operation))
            except Py4JJavaError as error:
                return str(error.java_exception.getClass().getSimpleName())
            except PySparkException as error:
                return type(error).__name__
        return _lines(log, len(case.winners) + 1)

    def files_read(self, root: Path, case: Case, wheres: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], set[str]]:
        """Which files of the case's table Delta takes for read by each of these sets of predicates."""
        _write(root / "_delta_log", 0, case.lines("Serializable"))
        found = {}
        for predicates in wheres:
            with self._opened(root) as reader:
                for where in predicates:
                    reader.filterFiles(self._conjuncts(where), False)
                found[predicates] = {file.path() for file in reader.readFiles()}
        return found

    @contextmanager
    def _opened(self, root: Path) -> Iterator[Any]:
        sessions = self._jvm.org.apache.spark.sql.classic.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(self._session._jsparkSession)
        try:
            yield self._delta.DeltaLog.forTable(self._session._jsparkSession, str(root)).startTransaction()
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())

    def _read(self, loser: Any, case: Case) -> None:
        """Note what was read; filterFiles would rebuild the state of the table for it, half a second each."""
        for where in case.where:
            loser.trackReadPredicates(self._conjuncts(where), False, True)
        read = [line for line in case.lines("Serializable") if line.get("add", {}).get("path") in case.files]
        loser.trackFilesRead(self._actions(read))
        if case.whole:
            loser.readWholeTable()
        for app in case.apps:
            loser.txnVersion(app)

    def _conjuncts(self, where: str) -> Any:
        """The parts of a chain of ANDs, as Delta's commands hand them to a transaction."""
        waiting, found = [self._session._jsparkSession.sessionState().sqlParser().parseExpression(where)], []
        while waiting:
            part = waiting.pop()
            if part.getClass().getSimpleName() == "And":
                waiting += [part.right(), part.left()]
            else:
                found.append(part)
        return self._seq(found)

    def _actions(self, lines: Iterable[Json]) -> Any:
        return self._seq([self._delta.actions.Action.fromJson(json.dumps(line)) for line in lines])

    def _operation(self, name: str) -> Any:
        """An operation that changes data, or one that does not; of the name Delta asks no more here."""
        if name == "TRUNCATE":
            return self._delta.DeltaOperations.Truncate()
        return getattr(self._delta, "DeltaOperations$ManualUpdate$").__getattr__("MODULE$")

    def _seq(self, items: Iterable[Any]) -> Any:
        listed = self._jvm.java.util.ArrayList()
        for item in items:
            listed.add(item)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toList()


def _write(log: Path, version: int, lines: Iterable[Json]) -> None:
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (log / f"{version:020}.json").write_text(text)


def _lines(log: Path, version: int) -> list[Json]:
    return [json.loads(line) for line in (log / f"{version:020}.json").read_text().splitlines()]
