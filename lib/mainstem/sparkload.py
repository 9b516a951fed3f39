"""A large log read by Spark's executors, which parse it and copy its rows into staging; one transaction publishes them.

Only rows of attempts that answered are published; others are left behind with the staging tables, which are dropped
afterwards. What a crash leaves is swept by a later import.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson

from mainstem import frames
from mainstem.chronicle import Chronicle, contradiction
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import CommitTime, ReplayPlan
from mainstem.deltalog.names import Checkpoint
from mainstem.logtask import ANSWER, SHARE, STAGED, VERSIONS, LogTask, shares, staged_columns, told_error
from mainstem.rows import ADDS, DOMAINS, METADATA, PROTOCOL, REMOVES, SHAPES, TXNS, Shape
from mainstem.store import Queries, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STALE_SECONDS = 24 * 3600
_SHARES_PER_CORE = 4  # a task that takes longer than the others keeps the rest waiting for less
# Where one process writes at a time the tasks wait for each other: more of them would only wait longer.
_SHARES_OF_ONE_WRITER = 4
_OTHERS = ("attempts", "times", "checked")
_PUBLISH = {
    ADDS.table: "staging_publish_adds",
    TXNS.table: "staging_publish_keyed",
    DOMAINS.table: "staging_publish_keyed",
}


@dataclass(slots=True)
class SparkLoad:
    """A log in staging tables: `stage` fills them, `write` publishes them in the caller's transaction, `drop` ends."""

    log: LogDirectory
    plan: ReplayPlan
    checked: Checkpoint | None  # the newest checkpoint: somebody else's word on the state at its version
    progress: Callable[[int, int], None]
    chronicle: Chronicle
    store: Store
    spark: SparkSession
    actions: int = 0
    files: int = 0
    _token: str = field(default_factory=lambda: f"stg_{int(time.time())}_{uuid4().hex[:8]}")

    def stage(self) -> None:
        """Let the executors read the log into staging. The first error of the lowest version is raised as it is."""
        self._create()
        answers = sorted(self._run(), key=lambda answer: answer["first"])
        for answer in answers:
            if answer["error"] is not None:
                raise told_error(answer["error"])
        self.actions = sum(answer["actions"] for answer in answers)
        self.chronicle.times.extend(CommitTime(*each) for answer in answers for each in orjson.loads(answer["times"]))
        with self.store.writing() as queries:
            queries.copy(self._name("attempts"), ("attempt",), ((answer["attempt"],) for answer in answers))
            self._learn(queries)
            moments = zip(self.chronicle.times, self.chronicle.moments(), strict=True)
            queries.copy(self._name("times"), ("version", "committed_at"), ((at.version, when) for at, when in moments))
        versions = len(self.chronicle.times)
        self.progress(versions, versions)

    def _create(self) -> None:
        with self.store.writing() as queries:
            _sweep(queries)
            for shape in STAGED:
                pieces = {"columns": ", ".join(staged_columns(shape)), "target": shape.table}
                queries.run("staging_create", {"staging": self._name(shape.table), **pieces})
            for name in _OTHERS:
                queries.run(f"staging_{name}", {"staging": self._name(name)})

    def _run(self) -> list[Any]:
        """Every share of the log once through a task that answered."""
        engine, plan = self.store.engine, self.plan
        most = frames.parallelism(self.spark) * _SHARES_PER_CORE
        if not engine.capabilities.many_processes:
            most = _SHARES_OF_ONE_WRITER
        work = shares(plan, self.checked, most=most)
        start = None if plan.checkpoint is None else (plan.first_commit, plan.checkpoint)
        task = LogTask(self.log.location.uri, start, self.checked, engine.uri, engine.settings, self._token)
        engine.close()  # an idle connection of ours must not keep the executors out
        # As many ranges as there are shares, whose numbers all differ: each share is a task of its own.
        numbered = [(number, *share) for number, share in enumerate(work)]
        frame = self.spark.createDataFrame(numbered, f"number bigint, {SHARE}")
        return frame.repartitionByRange(len(work), "number").drop("number").mapInArrow(task, ANSWER).collect()

    def _learn(self, queries: Queries) -> None:
        found = [
            (row["version"], shape.action(row))
            for shape in (PROTOCOL, METADATA)
            for row in queries.rows("staging_rows", self._pieces(shape))
        ]
        for version, action in sorted(found, key=lambda each: each[0]):
            self.chronicle.see(version, action)

    def rehearse(self) -> None:
        """Staging has read and checked everything already."""

    def write(self, queries: Queries, table_id: str) -> None:
        """Move the rows from staging into their tables, with the ends of their spans."""
        for shape in SHAPES:
            queries.change(_PUBLISH.get(shape.table, "staging_publish"), self._pieces(shape), table_id=table_id)
        queries.change("staging_publish_versions", self._pieces(VERSIONS), table_id=table_id)
        self.files = int(queries.scalar("files_size", table_id=table_id, version=self.plan.last))
        if self.checked is not None:
            self._compare(queries, table_id, self.checked)

    def _compare(self, queries: Queries, table_id: str, checkpoint: Checkpoint) -> None:
        bounds = {"table_id": table_id, "version": checkpoint.version}
        [found] = queries.rows("staging_contradicts", self._pieces(ADDS), **bounds)
        theirs, missing = int(found["theirs"]), int(found["missing"])
        extra = int(queries.scalar("files_size", **bounds)) - (theirs - missing)
        if missing or extra:
            raise contradiction(checkpoint, missing=missing, extra=extra, example=found["example"])

    def drop(self) -> None:
        """Drop the staging tables."""
        with self.store.writing() as queries:
            for name in (*(shape.table for shape in STAGED), *_OTHERS):
                queries.run("staging_drop", {"staging": self._name(name)})

    def _name(self, table: str) -> str:
        return f"{self._token}_{table}"

    def _pieces(self, shape: Shape) -> dict[str, str]:
        columns = staged_columns(shape)
        return {
            "staging": self._name(shape.table),
            "attempts": self._name("attempts"),
            "times": self._name("times"),
            "checked": self._name("checked"),
            "removes": self._name(REMOVES.table),
            "target": shape.table,
            "columns": ", ".join(columns),
            "qualified": ", ".join(f"s.{column}" for column in columns),
            "key": {TXNS.table: "app_key", DOMAINS.table: "domain_key"}.get(shape.table, ""),
        }


def _sweep(queries: Queries) -> None:
    """Drop what imports that crashed have left behind, once nobody can still be working on it."""
    for name in queries.engine.staging_tables(queries.connection):
        began = name.split("_")[1]
        if began.isdecimal() and int(began) < time.time() - _STALE_SECONDS:
            queries.run("staging_drop", {"staging": name})
