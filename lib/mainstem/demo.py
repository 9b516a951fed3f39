"""The tour that `mainstem demo` gives, on real Delta tables in a folder of its own."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainstem import session
from mainstem.catalog import Catalog, open_catalog
from mainstem.console import Output
from mainstem.errors import GateFailed, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SESSION = {
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}


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
        output.say("Starting Spark … (the first time it fetches its jars)")
        with _jvm_writes_to(place / "spark.log"):
            spark = session.build_session("mainstem demo", master="local[2]", **_SESSION)
            session.require_delta(spark)
        began = time.monotonic()
        with open_catalog(f"sqlite:///{place}/lake.db", spark=spark) as catalog:
            facts = _Tour(spark, catalog, place, output).give()
        output.say(f"\nThat took {time.monotonic() - began:.0f} seconds.")
    output.say("Done." if folder is None else f"Done. Catalog and tables stay in {place}.")
    return facts


@contextmanager
def _jvm_writes_to(log: Path) -> Iterator[None]:
    """A JVM that is started here tells its jars and warnings to a file, not between the lines of the tour.

    If it does not start, the file is shown: it says why.
    """
    own = os.dup(2)
    with log.open("w") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except BaseException:
        os.dup2(own, 2)
        sys.stderr.write(log.read_text(errors="replace"))
        raise
    finally:
        os.dup2(own, 2)
        os.close(own)


class _Tour:
    """One step a method, in the order in which a team would adopt it."""

    def __init__(self, spark: SparkSession, catalog: Catalog, place: Path, output: Output) -> None:
        self.spark, self.catalog, self.place, self.output = spark, catalog, place, output
        self.facts: dict[str, Any] = {"catalog": str(catalog.uri)}

    def give(self) -> dict[str, Any]:
        """The whole tour; what it showed, as data."""
        for step in (self.plain, self.follow, self.lead, self.merge, self.gate, self.travel, self.prove):
            step()
        return self.facts

    def plain(self) -> None:
        """A table of plain Delta's, brought in."""
        self._heading("A Delta table, written by plain Delta, is imported into a SQLite catalog")
        location = str(self.place / "orders")
        for day in ("2026-11-16", "2026-11-17"):
            self._orders(0, 1000, day).write.format("delta").mode("append").partitionBy("day").save(location)
        self.catalog.migrate()
        done = self.catalog.import_table(location, name="sales.orders")
        self.output.say(f"Versions {done.first_version} to {done.version}, {done.files} live files; its log leads.")

    def follow(self) -> None:
        """What outside engines commit is followed."""
        self._heading("Plain Delta goes on writing, and the catalog follows")
        location = str(self.place / "orders")
        self._orders(0, 1000, "2026-11-18").write.format("delta").mode("append").save(location)
        gone = f"DELETE FROM delta.`{location}` WHERE day = DATE'2026-11-16' AND id < 10"  # noqa: S608  our own folder
        self.spark.sql(gone)
        table = self.catalog.table("sales.orders")
        done = table.follow()
        self.output.say(f"{done.versions} versions came in; the head is {done.version}.")
        self._validate()

    def lead(self) -> None:
        """From here on the catalog leads."""
        self._heading("Cut-over: the catalog leads, and every Delta engine goes on reading")
        done = self.catalog.table("sales.orders").cutover()
        self.catalog.create_table(
            "sales.items", location=str(self.place / "items"), schema="order_id BIGINT, sku STRING, quantity INT"
        )
        self.output.say(f"sales.orders is led by the catalog from version {done.version} on; sales.items is new.")

    def merge(self) -> None:
        """One table, by Delta's own MERGE."""
        self._heading("A merge, run by Delta's own engine on a log that the catalog provides")
        changes = (
            self._orders(990, 1010, "2026-11-18")
            .withColumnRenamed("amount", "old")
            .selectExpr("id", "day", "old + 1000 AS amount")
        )
        done = (
            self.catalog.table("sales.orders")
            .merge(changes, on="t.id = s.id AND t.day = s.day AND t.day = DATE'2026-11-18'")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
        self.output.say(f"Version {done.version}, published: {'yes' if done.published else 'no'}.")

    def gate(self) -> None:
        """Two tables, all or nothing, behind a quality gate."""
        self._heading("Two tables in one transaction, with a quality gate that fails once and then passes")
        import great_expectations as gx

        none = [gx.expectations.ExpectTableRowCountToEqual(value=0)]  # type: ignore[attr-defined]
        orphans = "SELECT * FROM {items} i LEFT ANTI JOIN {orders} o ON o.id = i.order_id"
        for first in (5000, 2000):
            items = self.spark.range(first, first + 5).selectExpr("id AS order_id", "'pen' AS sku", "1 AS quantity")
            try:
                with self.catalog.transaction(committer="demo") as tx:
                    tx.table("sales.orders").append(self._orders(2000, 2005, "2026-11-18"))
                    tx.table("sales.items").append(items)
                    tx.require(none, query=orphans, items="sales.items", orders="sales.orders")
            except GateFailed as error:
                self.output.say(f"Refused: {error.message}")
                self.facts["refused"] = error.message
            else:
                versions = {name: done.version for name, done in tx.committed.items()}
                self.output.say(f"Committed together: {versions}.")
                self.facts["committed"] = versions

    def travel(self) -> None:
        """Older versions, and many tables at one moment."""
        self._heading("Time travel, and a tag over all tables")
        tag = self.catalog.tag("eod-2026-11-18", remark="end of day")
        table = self.catalog.table("sales.orders")
        before = table.version
        table.delete("day = DATE'2026-11-16'")
        rows = {version: table.read(version=version).count() for version in (0, before, table.version)}
        self.output.table(("version", "rows of sales.orders"), rows.items())
        self.output.say(f"The tag {tag.name} names {dict(tag.versions)}.")
        as_of = self.catalog.read_as_of(tag.name, list(tag.versions))
        self.facts["rows_as_of_tag"] = {name: frame.count() for name, frame in as_of.items()}

    def prove(self) -> None:
        """Plain Delta sees the same, and validation says so."""
        self._heading("Proof: the published log says what the catalog says")
        self._validate()
        table = self.catalog.table("sales.orders")
        theirs = self.spark.read.format("delta").load(str(self.place / "orders")).count()
        ours = table.read().count()
        self.output.say(f"Rows by plain Delta from the published log: {theirs}; through the catalog: {ours}.")
        self.output.table(
            ("version", "operation", "committer"),
            [(entry.version, entry.operation, entry.committer) for entry in table.history(limit=6)],
        )
        self.facts |= {"version": table.version, "rows": ours, "rows_by_delta": theirs}

    def _validate(self) -> None:
        reports = [self.catalog.table(each.name).validate() for each in self.catalog.tables()]
        self.output.table(
            ("table", "version", "checks", "catalog and log"),
            [(each.table, each.version, len(each.checks), "agree" if each.success else "differ") for each in reports],
        )
        self.facts["valid"] = all(report.success for report in reports)

    def _heading(self, text: str) -> None:
        self.output.say(f"\n── {text}")

    def _orders(self, first: int, last: int, day: str) -> DataFrame:
        rows = self.spark.range(first, last, 1, 2)
        return rows.selectExpr("id", f"DATE'{day}' AS day", "round(rand(7) * 100, 2) AS amount")
