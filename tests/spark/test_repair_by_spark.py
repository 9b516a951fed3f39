"""Wrong spans of a large table are found by Spark: the same ones as by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import change
from pyspark.sql import SparkSession
from tables import add, create, remove, require_spans_equal_replay

from mainstem import Catalog, Table, open_catalog
from mainstem.repair.spans import wrong_keys


@pytest.fixture
def large(catalog: Catalog, catalog_uri: str, spark: SparkSession) -> Iterator[Catalog]:
    """A catalog to which three files are many."""
    catalog.close()
    with open_catalog(catalog_uri, spark=spark, driver_files=3) as opened:
        yield opened


def broken(catalog: Catalog, folder: Path) -> Table:
    """Files of which one is open too long, one is closed without cause, and one ends too late; the others are right."""
    table = create(catalog, folder)
    table.commit([add(name) for name in "abcdefgh"], operation="WRITE")
    table.commit([remove("a"), remove("b"), remove("c")], operation="UPDATE", read_version=1)
    table.commit([remove("d"), add("b"), add("i")], operation="UPDATE", read_version=2)
    for name, end in (("a", "NULL"), ("h", "3"), ("c", "3")):
        sql = f"UPDATE dl_add_files SET removed_version = {end} WHERE table_id = :table_id AND path LIKE :path"
        change(catalog, sql, table_id=table.info().table_id, path=f"%/{name}.parquet")
    return table


def test_spark_and_sql_find_the_same_wrong_spans_and_repair_makes_them_right(
    large: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    table = broken(large, tmp_path)
    row = large.store.table("sales.orders")
    sql = sorted(bytes(found["file_key"]) for found in large.store.rows("add_keys_wrong", table_id=row["table_id"]))
    asked = []

    def session() -> SparkSession:
        asked.append(1)
        return spark

    assert wrong_keys(large.store, row, session=session) == sql
    assert (len(sql), asked) == (3, [1])
    done = table.repair()
    assert [(step.kind, step.outcome) for step in done.steps] == [("spans", "done")]
    assert "rebuild 3 spans" in done.steps[0].message
    require_spans_equal_replay(table)
    assert wrong_keys(large.store, row, session=session) == []


def test_a_commit_after_the_head_that_was_looked_at_is_not_taken_for_a_wrong_span(
    large: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    table = create(large, tmp_path)
    table.commit([add(name) for name in "abcde"], operation="WRITE")
    row = large.store.table("sales.orders")
    table.commit([remove("a")], operation="DELETE", read_version=1)
    assert wrong_keys(large.store, row, session=lambda: spark) == []


def test_without_a_session_the_database_replays(large: Catalog, catalog_uri: str, tmp_path: Path) -> None:
    broken(large, tmp_path)
    large.close()
    from mainstem.snapshot import no_session

    with open_catalog(catalog_uri, driver_files=3) as opened:
        assert len(wrong_keys(opened.store, opened.store.table("sales.orders"), session=no_session)) == 3
