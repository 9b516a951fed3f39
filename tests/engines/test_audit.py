"""The history as plain SQL: the same answers on every engine, checked against what was written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mainstem import Catalog


@pytest.fixture
def sales(catalog: Catalog, tmp_path: Path) -> Catalog:
    """A table of three commits: five rows, three more, and a delete that rewrites the first file."""
    location = tmp_path / "sales"
    first = pa.table({"id": [1, 2, 3, 4, 5], "who": pa.array(["a", None, "c", None, None])})
    second = pa.table({"id": [6, 7, 8], "who": pa.array(["f", "g", "h"])})
    write_deltalake(location, first)
    write_deltalake(location, second, mode="append")
    DeltaTable(location).delete("id = 2")
    catalog.import_table(str(location), name="sales")
    return catalog


def _ask(catalog: Catalog, sql: str) -> list[tuple[Any, ...]]:
    with catalog.engine.reading() as connection:
        return [tuple(row) for row in connection.execute(sql).fetchall()]


def test_operations_are_found_by_time(sales: Catalog) -> None:
    found = _ask(sales, "SELECT version, operation FROM vw_operations WHERE name = 'sales' ORDER BY version")
    assert found == [(0, "WRITE"), (1, "WRITE"), (2, "DELETE")]
    written = sales.table("sales").history()[1].committed_at
    with sales.store.engine.reading() as connection:
        sql = "SELECT version FROM vw_operations WHERE committed_at >= :moment ORDER BY version"
        later = sales.engine.execute(connection, sql, {"moment": written}).fetchall()
    assert [row[0] for row in later] == [1, 2]


def test_a_file_knows_the_commits_that_added_and_removed_it(sales: Catalog) -> None:
    [first] = sales.table("sales").snapshot(version=0).to_arrow().column("path").to_pylist()
    sql = f"SELECT action, version, operation FROM vw_file_history WHERE path = '{first}' ORDER BY version"
    assert _ask(sales, sql) == [("add", 0, "WRITE"), ("remove", 2, "DELETE")]


def test_sizes_by_version_are_those_of_the_snapshots(sales: Catalog) -> None:
    found = _ask(sales, "SELECT version, files, size_bytes, records FROM vw_size_by_version ORDER BY version")
    for version, files, size_bytes, records in found:
        size = sales.table("sales").snapshot(version=version).size()
        assert (files, size_bytes, records) == (size.files, size.size_bytes, size.records)
    assert [row[3] for row in found] == [5, 8, 7]


def test_growth_by_day_shows_a_table_as_the_day_left_it(sales: Catalog) -> None:
    found = _ask(sales, "SELECT day, version, records, files FROM vw_growth_by_day ORDER BY day")
    today = {str(datetime.now(UTC).date()), str(sales.table("sales").snapshot(version=0).timestamp.date())}
    assert str(found[-1][0]) in today
    assert found[-1][1:] == (2, 7, 2)


def test_null_rates_follow_the_live_files_of_each_version(sales: Catalog) -> None:
    sql = "SELECT version, nulls, records FROM vw_null_rates WHERE column_name = 'who' ORDER BY version"
    assert _ask(sales, sql) == [(0, 3, 5), (1, 3, 8), (2, 2, 7)]


def test_statistics_that_make_no_sense_do_not_break_the_views(sales: Catalog) -> None:
    hostile = '{"numRecords":5,"nullCount":{"who":1e400,"id":"many","a\\u0000b":1,"deep":{"x":-1}}}'
    with sales.store.writing() as queries:
        sales.engine.execute(queries.connection, "UPDATE dl_add_files SET stats = :stats", {"stats": hostile})
    assert all(row[0] != "id" for row in _ask(sales, "SELECT column_name FROM vw_null_rates"))
