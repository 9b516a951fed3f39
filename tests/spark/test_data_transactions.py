"""Data in transactions: several tables, several operations, SQL, conflicts, and streams that are written once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mainstem import Catalog, Table, open_catalog
from mainstem.errors import ConflictError, UsageError

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(catalog_uri: str, catalog: Catalog, spark: SparkSession) -> Iterator[Catalog]:
    """A migrated catalog with Spark, on each engine in turn."""
    with open_catalog(catalog_uri, spark=spark) as opened:
        yield opened


def create(lake: Catalog, folder: Path, name: str, columns: str = "id BIGINT, v STRING") -> Table:
    return lake.create_table(name, location=str(folder / name), schema=columns)


def rows(spark: SparkSession, *values: str) -> DataFrame:
    return spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(values)} AS x(id, v)")


def found(frame: DataFrame | None) -> list[tuple[object, ...]]:
    assert frame is not None
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_operations_on_two_tables_see_each_other_and_are_committed_together(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    orders, items = create(lake, tmp_path, "sales.orders"), create(lake, tmp_path, "sales.items")
    orders.append(rows(spark, "(1L, 'a')", "(2L, 'b')"))
    with lake.transaction(committer="etl", info={"run": 7, "userMetadata": "nightly"}) as tx:
        staged = tx.table("sales.orders").append(rows(spark, "(3L, 'c')")).delete("id = 1")
        staged.alter("ADD COLUMNS (w INT)").update(set={"w": 5}, where="w IS NULL AND id = 3")
        assert found(staged.read()) == [(2, "b", None), (3, "c", 5)]
        tx.sql("INSERT INTO {items} SELECT id, v FROM {orders} WHERE w = 5", items="sales.items", orders="sales.orders")
        tx.sql(
            "MERGE INTO {items} t USING {src} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *",
            items="sales.items",
            src=rows(spark, "(3L, 'merged')", "(4L, 'd')"),
        )
        seen = tx.sql("SELECT count(*) FROM {i} JOIN {o} USING (id)", i="sales.items", o="sales.orders")
        assert found(seen) == [(1,)]
        assert found(items.read()) == []  # nobody else sees it
        assert (orders.version, items.version) == (1, 0)
        with pytest.raises(UsageError, match="which was not given"):
            tx.sql("DELETE FROM {nothing}", items="sales.items")
    assert found(orders.read()) == [(2, "b", None), (3, "c", 5)]
    assert found(items.read()) == [(3, "merged"), (4, "d")]
    assert (orders.version, items.version) == (5, 2)
    groups = {entry.group_id for table, count in ((orders, 4), (items, 2)) for entry in table.history(limit=count)}
    assert len(groups) == 1
    assert None not in groups
    assert {entry.committer for entry in orders.history(limit=4)} == {"etl"}
    for table in (orders, items):
        assert found(spark.read.format("delta").load(table.location)) == found(table.read())


def test_who_comes_second_is_rebased_where_the_rules_allow_it_and_is_told_where_not(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    orders = create(lake, tmp_path, "sales.orders")
    orders.append(rows(spark, "(1L, 'a')", "(2L, 'b')"))
    with lake.transaction() as tx:
        tx.table("sales.orders").append(rows(spark, "(5L, 'e')"))
        orders.append(rows(spark, "(4L, 'd')"))
    assert orders.version == 3
    with pytest.raises(ConflictError) as caught, lake.transaction() as tx:
        tx.table("sales.orders").update(set={"v": "'x'"}, where="id = 1")
        orders.delete("id = 2")
    assert "sales.orders" in str(caught.value)
    assert found(orders.read()) == [(1, "a"), (4, "d"), (5, "e")]
    assert found(spark.read.format("delta").load(orders.location)) == found(orders.read())


def test_what_was_read_in_a_transaction_can_be_used_until_it_ends(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    orders = create(lake, tmp_path, "sales.orders")
    orders.append(rows(spark, "(1L, 'a')"))
    orders.append(rows(spark, "(2L, 'a')"))
    with lake.transaction() as tx:
        staged = tx.table("sales.orders")
        first, second = staged.read(where="id = 1"), staged.read(where="id = 2")
        assert found(first.join(second, "v")) == [("a", 1, 2)]
        queried = tx.sql("SELECT id FROM {o}", o="sales.orders")
        staged.overwrite(first.join(second.select("v"), "v").select("id", "v"), replace_where="id = 1")
        added = staged.read_added()
        staged.append(rows(spark, "(3L, 'c')"))
        assert found(added) == [(1, "a")]
        assert found(queried)[:2] == [(1,), (2,)]
    assert found(orders.read()) == [(1, "a"), (2, "a"), (3, "c")]


def test_a_number_of_an_application_that_was_written_meanwhile_is_a_conflict_for_data_too(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    orders = create(lake, tmp_path, "sales.orders")
    with pytest.raises(ConflictError, match="app"), lake.transaction(txn=("app", 7)) as tx:
        tx.table("sales.orders").append(rows(spark, "(1L, 'a')"))
        orders.append(rows(spark, "(2L, 'b')"), txn=("app", 6))
    assert found(orders.read()) == [(2, "b")]


def test_a_stream_is_written_once_however_often_it_starts_again(
    lake: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    target = create(lake, tmp_path, "sales.stream")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"

    def run(fail: bool = False) -> None:
        stream = spark.readStream.schema("id BIGINT, v STRING").json(str(source))
        write = target.foreach_batch("loader")

        def batch(frame: DataFrame, number: int) -> None:
            write(frame, number)
            if fail:
                raise RuntimeError("after the commit, before the stream has noted it")

        writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    rows(spark, "(1L, 'a')").write.mode("append").json(str(source))
    run()
    rows(spark, "(2L, 'b')").write.mode("append").json(str(source))
    with pytest.raises(Exception, match="before the stream has noted it"):
        run(fail=True)
    version = target.version
    run()  # the same batch again
    assert (target.version, found(target.read())) == (version, [(1, "a"), (2, "b")])
    assert target.snapshot().app_transactions == {"loader": 1}
    rows(spark, "(3L, 'c')").write.mode("append").json(str(source))
    run()
    assert found(target.read()) == [(1, "a"), (2, "b"), (3, "c")]
