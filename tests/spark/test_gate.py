"""A quality gate inside of the commit: what does not pass is not committed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import great_expectations as gx
import pytest
from great_expectations.expectations.metadata_types import FailureSeverity
from pyspark.sql import DataFrame, SparkSession

from mainstem import Catalog, ConflictError, GateFailed, UsageError, open_catalog


@pytest.fixture
def sales(spark: SparkSession, tmp_path: Path) -> Iterator[Catalog]:
    """Orders with ids 0 to 4, and no items yet."""
    with open_catalog(f"sqlite:///{tmp_path}/lake.db", spark=spark) as catalog:
        catalog.migrate()
        for name in ("orders", "items"):
            catalog.create_table(name, location=str(tmp_path / name), schema="id BIGINT, amount DOUBLE")
        catalog.table("orders").append(rows(spark, 0, 5))
        yield catalog


def rows(spark: SparkSession, start: int, stop: int, amount: str = "1.5D") -> DataFrame:
    return spark.range(start, stop).selectExpr("id", f"{amount} AS amount")


def not_null(column: str) -> Any:
    return gx.expectations.ExpectColumnValuesToNotBeNull(column=column)


def between(column: str, low: float, high: float) -> Any:
    return gx.expectations.ExpectColumnValuesToBeBetween(column=column, min_value=low, max_value=high)


def runs(catalog: Catalog, table: str) -> list[dict[str, Any]]:
    return catalog.store.rows("validation_runs", table_id=catalog.table(table).info().table_id)


def test_a_change_that_meets_the_suite_is_committed_and_its_result_kept(sales: Catalog, spark: SparkSession) -> None:
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 7))
        tx.require([not_null("id"), between("amount", 0, 10)], on="orders")
    [run] = runs(sales, "orders")
    assert (run["version"], bool(run["success"]), run["suite"]) == (2, True, "expectations")
    assert sales.table("orders").read().count() == 7


def test_a_change_that_fails_the_suite_leaves_nothing(sales: Catalog, spark: SparkSession) -> None:
    with pytest.raises(GateFailed) as caught, sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 7, "-1.0D"))
        tx.table("items").append(rows(spark, 0, 1))
        tx.require([not_null("id"), between("amount", 0, 10)], on="orders")
    told = str(caught.value)
    for word in ("orders", "1 of 2", "amount", "2 unexpected", "-1.0", "Nothing was committed"):
        assert word in told, told
    assert caught.value.exit_code == 4
    assert (sales.table("orders").version, sales.table("items").version) == (1, 0)
    assert runs(sales, "orders") == []


def test_only_added_rows_are_looked_at_if_asked_so(sales: Catalog, spark: SparkSession) -> None:
    sales.table("orders").append(rows(spark, 100, 101, "-5.0D"))
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 7))
        tx.require([between("amount", 0, 10)], on="orders", scope="added")
    with pytest.raises(GateFailed), sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 7, 8))
        tx.require([between("amount", 0, 10)], on="orders", scope="table")


def test_a_query_over_staged_tables_is_a_gate_too(sales: Catalog, spark: SparkSession) -> None:
    orphans = "SELECT i.id FROM {items} i LEFT ANTI JOIN {orders} o ON o.id = i.id"
    empty = [gx.expectations.ExpectTableRowCountToEqual(value=0)]
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 6))
        tx.table("items").append(rows(spark, 5, 6))
        tx.require(empty, query=orphans, items="items", orders="orders")
    assert [[run["version"] for run in runs(sales, name)] for name in ("items", "orders")] == [[1], [2]]
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 6, 7))
        tx.require(empty, query=orphans, items="items", orders="orders")
    assert [len(runs(sales, name)) for name in ("items", "orders")] == [1, 2]
    with pytest.raises(GateFailed, match="expect_table_row_count_to_equal"), sales.transaction() as tx:
        tx.table("items").append(rows(spark, 77, 78))
        tx.require(empty, query=orphans, items="items", orders="orders")
    assert sales.table("items").version == 1


def test_statistics_alone_are_a_gate_without_reading_data(sales: Catalog, spark: SparkSession) -> None:
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 7))
        tx.require_stats("orders", rows=(1, 10), null_rate={"id": 0.0}, ranges={"amount": (0, 10)})
    for wrong in (
        {"rows": (3, None)},
        {"null_rate": {"amount": 0.1}},
        {"ranges": {"id": (0, 3)}},
        {"ranges": {"no_such": (0, 3)}},
    ):
        with pytest.raises(GateFailed, match="statistics refused the change of orders"), sales.transaction() as tx:
            tx.table("orders").append(rows(spark, 7, 9, "CAST(NULL AS DOUBLE)"))
            tx.require_stats("orders", **wrong)
    with pytest.raises(UsageError, match="nothing is required"), sales.transaction() as tx:
        tx.require_stats("orders")
    assert sales.table("orders").version == 2


def test_only_rows_that_a_transaction_adds_count_as_added(sales: Catalog, spark: SparkSession) -> None:
    sales.table("orders").alter("SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 9).coalesce(1))
        tx.table("orders").delete("id = 1 OR id = 5")  # of a file that was there, and of the new one
        tx.require_stats("orders", rows=(3, 3))


def test_who_appends_beneath_a_gate_on_the_whole_table_is_a_conflict(sales: Catalog, spark: SparkSession) -> None:
    with pytest.raises(ConflictError, match="orders"), sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 6))
        tx.require([between("amount", 0, 10)], on="orders")
        sales.table("orders").append(rows(spark, 6, 7, "-5.0D"))
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 6))
        tx.require([between("amount", 0, 10)], on="orders", scope="added")
        sales.table("orders").append(rows(spark, 7, 8, "-5.0D"))
    orphans = "SELECT i.id FROM {items} i LEFT ANTI JOIN {orders} o ON o.id = i.id"
    empty = [gx.expectations.ExpectTableRowCountToEqual(value=0)]
    with pytest.raises(ConflictError, match="orders: a gate"), sales.transaction() as tx:
        tx.table("items").append(rows(spark, 5, 6))
        tx.require(empty, query=orphans, items="items", orders="orders")
        sales.table("orders").delete("id = 5")
    assert sales.table("items").version == 0


def test_an_expectation_of_severity_warning_refuses_nothing(sales: Catalog, spark: SparkSession) -> None:
    mild = gx.expectations.ExpectColumnValuesToBeBetween(
        column="amount", min_value=0, max_value=1, severity=FailureSeverity.WARNING
    )
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 7))
        passed = tx.require([not_null("id"), mild], on="orders")
    assert (passed.success, [each.column for each in passed.warnings]) == (True, ["amount"])
    [kept] = json.loads(runs(sales, "orders")[0]["findings"])
    assert (kept["column"], kept["unexpected"]) == ("amount", 7)
    assert sales.table("orders").version == 2


def test_a_suite_may_come_from_a_file_by_its_name(sales: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "positive.json"
    file.write_text(
        '{"name": "positive", "expectations": [{"type": "expect_column_values_to_be_between", '
        '"kwargs": {"column": "amount", "min_value": 0}}]}'
    )
    with sales.transaction() as tx:
        tx.table("orders").append(rows(spark, 5, 7))
        assert tx.require(str(file), on="orders").suite == "positive"
        with pytest.raises(UsageError, match="no suite nowhere"):
            tx.require("nowhere", on="orders")
        file.write_text('{"expectations": [{"type": "expect_peace"}]}')
        with pytest.raises(UsageError, match="expect_peace"):
            tx.require(str(file), on="orders")
    assert sales.table("orders").version == 2
