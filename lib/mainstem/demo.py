"""The tour that `mainstem demo` gives, on a real Delta table in a folder of its own."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainstem import session
from mainstem.catalog import open_catalog
from mainstem.console import Output
from mainstem.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(folder: Path | None, output: Output) -> dict[str, Any]:
    """Give the tour in `folder`, or in a temporary one that is gone afterwards; the facts that it showed."""
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"the folder {folder} is not empty.", hint="Name a new one: the demo writes only where nothing is."
        )
    home = tempfile.TemporaryDirectory(prefix="mainstem-demo-") if folder is None else nullcontext(str(folder))
    with home as name:
        place = Path(name).absolute()
        place.mkdir(parents=True, exist_ok=True)
        output.say("Starting Spark …")
        spark = session.build_session("mainstem demo", master="local[2]", **{"spark.log.level": "ERROR"})
        session.require_delta(spark)
        facts = _tour(spark, place, output)
    output.say("Done." if folder is None else f"Done. Catalog and table stay in {place}.")
    return facts


def _tour(spark: SparkSession, place: Path, output: Output) -> dict[str, Any]:
    orders = place / "orders"
    _write_orders(spark, orders)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{orders}`").orderBy("version").collect()
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{orders}`").first()
    assert detail is not None
    output.say(f"\nA Delta table, written by plain Delta into {orders}:")
    output.table(
        ("version", "operation", "rows written"),
        [(row.version, row.operation, row.operationMetrics.get("numOutputRows", "")) for row in history],
    )
    output.say(f"{detail.numFiles} live files of {detail.sizeInBytes} bytes, partitioned by {detail.partitionColumns}.")

    with open_catalog(f"sqlite:///{place}/lake.db", spark=spark) as catalog:
        output.say(f"\nA catalog beside it, {catalog.uri}:")
        done = catalog.migrate()
        output.table(("migration",), [(step,) for step in done.applied])
        output.say(f"At migration {done.after}, with {len(catalog.tables())} tables.")
    return {
        "table": str(orders),
        "version": history[-1].version,
        "files": detail.numFiles,
        "size_bytes": detail.sizeInBytes,
        "catalog": str(catalog.uri),
        "migration": done.after,
    }


def _write_orders(spark: SparkSession, location: Path) -> None:
    """Three days of orders and a correction: enough for a log with adds and removes."""
    from delta.tables import DeltaTable

    for day in ("2026-11-16", "2026-11-17", "2026-11-18"):
        rows = spark.range(1000).selectExpr("id", f"DATE'{day}' AS day", "round(rand(7) * 100, 2) AS amount")
        rows.coalesce(2).write.format("delta").mode("append").partitionBy("day").save(str(location))
    DeltaTable.forPath(spark, str(location)).delete("day = DATE'2026-11-16' AND id < 10")
