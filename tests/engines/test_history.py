"""Who did what, and when; which tables there are; how a table is addressed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from catalogs import paths
from logs import Log, add, info, metadata, protocol

from mainstem import Catalog, open_catalog
from mainstem.errors import TableNotFound, UsageError


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log.begin(tmp_path / "orders", add("a"))
    log.commit(
        info(operation="MERGE", operationParameters={"predicate": "[]", "n": 1}, userName="ann", engineInfo="Spark/4"),
        add("b"),
    )
    log.commit(info(operation="WRITE", engineInfo="delta-rs:1"), add("c"))
    log.commit({"commitInfo": {"timestamp": 5}}, add("d"))
    return log


def test_history_is_newest_first_and_says_who_did_what(catalog: Catalog, log: Log) -> None:
    catalog.import_table(log.location, name="t")
    newest, written, merged, first = catalog.table("t").history()
    assert [entry.version for entry in (newest, written, merged, first)] == [3, 2, 1, 0]
    assert (merged.operation, merged.operation_params, merged.committer) == (
        "MERGE",
        {"predicate": "[]", "n": 1},
        "ann",
    )
    assert (written.operation, written.operation_params, written.committer) == ("WRITE", None, "delta-rs:1")
    assert (newest.operation, newest.committer, newest.kind) == (None, None, "commit")
    assert json.loads(merged.commit_info or "")["userName"] == "ann"
    assert first.committed_at < merged.committed_at < written.committed_at < newest.committed_at
    modified = log.path(0).stat().st_mtime_ns // 1_000_000
    assert first.committed_at == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=modified)


def test_history_may_be_limited(catalog: Catalog, log: Log) -> None:
    catalog.import_table(log.location, name="t")
    table = catalog.table("t")
    assert [[entry.version for entry in table.history(limit=limit)] for limit in (1, 2, 4, 99)] == [
        [3], [3, 2], [3, 2, 1, 0], [3, 2, 1, 0],
    ]  # fmt: skip
    for limit in (0, -1):
        with pytest.raises(UsageError, match="limit"):
            table.history(limit=limit)


def test_history_of_a_cleaned_up_log_begins_with_its_checkpoint(catalog: Catalog, log: Log) -> None:
    log.checkpoint(2, protocol(), metadata(), add("a"), add("b"), add("c"))
    log.clean_up(before=2)
    catalog.import_table(log.location, name="t")
    assert [(entry.version, entry.kind, entry.operation) for entry in catalog.table("t").history()] == [
        (3, "commit", None),
        (2, "checkpoint", "WRITE"),
    ]


def test_tables_are_listed_by_name(catalog: Catalog, log: Log, tmp_path: Path) -> None:
    assert catalog.tables() == []
    other = Log.begin(tmp_path / "other", add("x"))
    for name, location in (("sales.orders", log.location), ("a", other.location), ("Z", other.location)):
        catalog.import_table(location, name=name)
    found = {table.name: table for table in catalog.tables()}
    assert sorted(found) == ["Z", "a", "sales.orders"]
    orders = found["sales.orders"]
    assert (orders.version, orders.published_version, orders.min_readable_version) == (3, 3, 0)
    assert (orders.location, orders.authority) == (log.location, "log")
    assert abs(orders.created_at - datetime.now(UTC)) < timedelta(hours=1)
    assert orders == catalog.table("sales.orders").info()


def address(catalog: Catalog, table: str) -> str:
    """A `deltasql://` URI of a table, as a user writes it: without password and options."""
    uri = catalog.uri
    if uri.engine != "postgres":
        return f"deltasql://{uri.engine}/{quote(uri.database)}?table={quote(table, safe='')}"
    place = f"{uri.user}@{uri.host}:{uri.port}/{quote(uri.database)}/{uri.schema}"
    return f"deltasql://postgres/{place}/{quote(table, safe='')}"


@pytest.mark.parametrize("name", ["sales.orders", "a/b?c#d %", "\U0001f600"])
def test_a_table_may_be_addressed_by_a_uri(catalog: Catalog, log: Log, name: str) -> None:
    catalog.import_table(log.location, name=name)
    table = catalog.table(address(catalog, name))
    assert (table.name, table.version) == (name, 3)
    with pytest.raises(TableNotFound, match="nothing"):
        catalog.table(address(catalog, "nothing"))


def test_a_catalog_may_be_opened_by_the_uri_of_a_table(catalog: Catalog, log: Log) -> None:
    catalog.import_table(log.location, name="sales.orders")
    given = catalog.settings.catalog
    with open_catalog(f"{given}{'&' if '?' in given else '?'}table=sales.orders") as opened:
        assert opened.table().name == "sales.orders"
        assert paths(opened.table().snapshot(version=0)) == {"a"}
        assert [table.name for table in opened.tables()] == ["sales.orders"]
    with pytest.raises(UsageError, match="no table was named"):
        catalog.table()


def test_a_uri_of_another_catalog_or_without_a_table_is_a_usage_error(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="another catalog"):
        catalog.table(f"deltasql://sqlite/{tmp_path}/elsewhere.db?table=t")
    with pytest.raises(UsageError, match="no table was named"):
        catalog.table(address(catalog, "t").replace("?table=t", "").removesuffix("/t"))
    with pytest.raises(UsageError, match="URI is wrong"):
        catalog.table("deltasql://mysql/x/t")
