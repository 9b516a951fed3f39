"""Run by test_cluster.py in a process of its own: what a cluster with two executors makes of a log, as JSON.

python on_cluster.py LOG CATALOG-URI…
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from table_rows import all_rows

from mainstem import build_session, importer, open_catalog, sparkload
from mainstem.logtask import LogTask

VERSION = 6
CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # to compile costs more than so few rows can gain
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class LosesItsAnswer(LogTask):
    """A task whose first attempt does all of its work, in small transactions, and then dies with its answer."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        object.__setattr__(self, "rows_at_once", 20)
        answers = list(super().__call__(batches))
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            raise RuntimeError("this attempt is lost")
        yield from answers


def folders(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"folder": [os.getcwd()]})


def outcome(spark: SparkSession, uri: str, log: str) -> dict[str, Any]:
    with open_catalog(uri, spark=spark, import_bytes=0) as catalog:
        catalog.migrate()
        by_driver = importer.import_table(catalog.store, log, name="by.driver")
        by_executors = importer.import_table(catalog.store, log, name="by.executors", spark=spark)
        rows = [all_rows(catalog, done.table_id) for done in (by_driver, by_executors)]
        snapshot = catalog.table("by.executors").snapshot(version=VERSION)
        expected = sorted(map(str, snapshot.to_arrow().to_pylist()))
        files: dict[str, bool] = {}
        for how in ("spans", "replay"):
            found = snapshot.files(engine=how).collect()  # type: ignore[arg-type]
            files[how] = sorted(str(row.asDict()) for row in found) == expected
        with catalog.engine.reading() as connection:
            staging = sorted(catalog.engine.staging_tables(connection))
    return {
        "rows": {table: len(found) for table, found in rows[0].items()},
        "differ": [table for table in rows[0] if rows[0][table] != rows[1][table]],
        "files": files,
        "staging": staging,
    }


def main(log: str, *uris: str) -> None:
    spark = build_session("a cluster", master="local-cluster[2,1,1024]", **CONF)
    sparkload.LogTask = LosesItsAnswer  # type: ignore[misc]
    seen = spark.range(0, 64, 1, 8).mapInArrow(folders, "folder string").distinct().collect()
    found = {
        "master": spark.sparkContext.master,
        "executors": len({row.folder for row in seen} - {os.getcwd()}),
        "outcomes": [outcome(spark, uri, log) for uri in uris],
    }
    spark.stop()
    print("FOUND " + json.dumps(found))  # noqa: T201  the answer


if __name__ == "__main__":
    main(*sys.argv[1:])
