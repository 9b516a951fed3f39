"""Run by test_connect.py in a process of its own: what a client of Spark Connect gets, as JSON.

python over_connect.py PORT LOG DELTA-TABLE CATALOG-URI…
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from table_rows import all_rows

from mainstem import Catalog, Table, importer, open_catalog

VERSION = 6
WHERE = "p = '\\' OR 1=1 --' OR id < 100"


class Events(logging.Handler):
    """The names of the events that the library told."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.names.append(record.getMessage().split()[0])


def outcome(spark: SparkSession, uri: str, log: str, delta: str) -> dict[str, Any]:
    with open_catalog(uri, spark=spark, import_bytes=0) as catalog:
        catalog.migrate()
        checked = catalog.import_table(delta, name="delta.table")
        by_driver = importer.import_table(catalog.store, log, name="by.driver")
        by_executors = importer.import_table(catalog.store, log, name="by.executors", spark=spark)
        rows = [all_rows(catalog, done.table_id) for done in (by_driver, by_executors)]
        snapshot = catalog.table("by.executors").snapshot(version=VERSION)
        files: dict[str, bool] = {}
        for where in (None, WHERE):
            expected = sorted(map(str, snapshot.to_arrow(where=where).to_pylist()))
            for how in ("auto", "sql", "spans", "replay"):
                found = snapshot.files(where=where, engine=how).collect()  # type: ignore[arg-type]
                files[f"{how} {where or ''}".strip()] = sorted(str(row.asDict()) for row in found) == expected
        schema = catalog.table("delta.table").snapshot().schema
    return {
        "files": files,
        "differ": [table for table in rows[0] if rows[0][table] != rows[1][table]],
        "live": checked.files,
        "schema": schema == spark.read.format("delta").load(delta).schema,
    }


def data(spark: SparkSession, uri: str, folder: Path) -> dict[str, Any]:
    """Rows in and out through a mount."""
    with open_catalog(uri, spark=spark, scratch=folder / "scratch") as catalog:
        table = catalog.create_table(
            "by.rows",
            location=str(folder / "rows"),
            schema="id BIGINT, p STRING",
            properties={"delta.enableChangeDataFeed": "true"},
        )
        table.append(spark.range(6).selectExpr("id", "'a' AS p"))
        table.delete("id = 3")
        with catalog.transaction() as tx:
            source = spark.range(5, 7).selectExpr("id", "'m' AS p")
            tx.sql(
                "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
                "WHEN NOT MATCHED THEN INSERT *",
                t="by.rows",
                s=source,
            )
        rows = sorted(tuple(row) for row in table.read().collect())
        return {
            "rows": rows,
            "published": rows
            == sorted(tuple(row) for row in spark.read.format("delta").load(table.location).collect()),
            "first": table.read(version=1, where="id > 3").count(),
            "history": [entry.operation for entry in table.history()],
            **more(spark, catalog, table),
        }


def more(spark: SparkSession, catalog: Catalog, table: Table) -> dict[str, Any]:
    """Every other operation, and what does not work, with its error."""
    import great_expectations as gx

    version = table.version
    table.update(set={"p": "'u'"}, where="id = 0")
    table.overwrite(spark.range(5, 6).selectExpr("id", "'w' AS p"), replace_where="id = 5")
    table.optimize()
    table.alter("ADD COLUMNS (note STRING)")
    with catalog.transaction() as tx:
        tx.table("by.rows").append(spark.range(9, 10).selectExpr("id", "'g' AS p", "'n' AS note"))
        tx.require([gx.expectations.ExpectColumnValuesToNotBeNull(column="id")], on="by.rows", scope="added")
    changes = table.changes(from_version=version + 1).where("_change_type != 'update_preimage'").count()
    view = catalog.views(tables=["by.rows"])["by.rows"]
    ids = sorted(row.id for row in spark.sql(f"SELECT id FROM {view} WHERE p IN ('u', 'w', 'g')").collect())
    table.restore(version=version)
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "'s' AS p")
    try:
        stream.writeStream.foreachBatch(table.foreach_batch("loader")).start()
        refused = None
    except Exception as error:
        refused = f"{type(error).__name__}: {error}"
    return {"changes": changes, "ids": ids, "restored": table.read().count(), "stream": refused}


def main(port: str, log: str, delta: str, *uris: str) -> None:
    events = Events()
    logging.getLogger("mainstem").addHandler(events)
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    for _ in range(2):
        rows = spark.range(0, 90, 1, 2).selectExpr(
            "id", "cast(id % 3 AS string) AS p", "date_add(DATE '2026-01-01', cast(id AS int)) AS day"
        )
        rows.write.format("delta").partitionBy("p").mode("append").save(delta)
    spark.sql(f"DELETE FROM delta.`{delta}` WHERE id < 10")
    found = {
        "session": type(spark).__module__,
        "live": len(spark.read.format("delta").load(delta).inputFiles()),
        "outcomes": [outcome(spark, uri, log, delta) for uri in uris],
        "data": data(spark, uris[1], Path(delta).parent),
        "left": os.listdir(next((Path(delta).parent / "scratch").iterdir())),
        "events": events.names,
        "gateway": pyspark.SparkContext._gateway is not None,
    }
    spark.stop()
    print("FOUND " + json.dumps(found))  # noqa: T201  the answer


if __name__ == "__main__":
    main(*sys.argv[1:])
