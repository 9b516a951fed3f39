from __future__ import annotations

from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from mainstem import Catalog, frames, open_catalog

pytestmark = pytest.mark.spark

COLUMNS = ("table_id", "version", "size_bytes", "modification_time", "seq", "path_bucket", "data_change")
COLUMNS += ("file_key", "path", "partition_values", "stats")


@pytest.fixture
def files(catalog: Catalog) -> Catalog:
    """A catalog with one table of 512 files, spread over all buckets."""
    with catalog.store.writing() as queries:
        table_id = str(uuid4())
        queries.connection.execute(
            "INSERT INTO dl_tables (table_id, name, location, authority, created_at, protocol_min_reader, "
            f"protocol_min_writer) VALUES ('{table_id}', 't', 'l', 'log', '2026-11-18T00:00:00Z', 1, 2)"
        )
        rows = ((table_id, n, 2**40 + n, n, 0, n % 256, True, bytes(16), f"naïve-{n}", "{}", None) for n in range(512))
        queries.copy("dl_add_files", COLUMNS, rows)
    return catalog


def test_spark_reads_what_python_wrote(spark: SparkSession, files: Catalog) -> None:
    frame = frames.read_query(
        spark, files.engine, "SELECT version, size_bytes, path, stats FROM dl_add_files WHERE version = 300"
    )
    assert [tuple(row) for row in frame.collect()] == [(300, 2**40 + 300, "naïve-300", None)]


def test_each_slice_is_one_task_and_none_is_lost_or_twice(spark: SparkSession, files: Catalog) -> None:
    slices = [f"path_bucket BETWEEN {low} AND {low + 63}" for low in range(0, 256, 64)]
    frame = frames.read_query(spark, files.engine, "SELECT version, path_bucket FROM dl_add_files", slices=slices)
    found = [(row.version, row.path_bucket) for row in frame.collect()]
    assert sorted(found) == [(n, n % 256) for n in range(512)]
    assert frame.selectExpr("spark_partition_id() AS part").distinct().count() == 4


def test_python_may_write_again_after_spark_has_read(spark: SparkSession, files: Catalog) -> None:
    frames.read_query(spark, files.engine, "SELECT version FROM dl_add_files").count()
    with files.store.writing() as queries:
        queries.connection.execute("DELETE FROM dl_add_files")
    assert frames.read_query(spark, files.engine, "SELECT version FROM dl_add_files").count() == 0


def test_the_password_is_in_no_plan_and_no_configuration(spark: SparkSession, postgres_uri: str) -> None:
    with open_catalog(postgres_uri) as catalog:
        password = catalog.uri.password
        assert password is not None
        frame = frames.read_query(spark, catalog.engine, "SELECT 1 AS one")
        plan = frame._jdf.queryExecution().toString()
        dump = " ".join(f"{key}={value}" for key, value in spark.sparkContext.getConf().getAll())
        assert frame.collect()[0].one == 1
    assert "JDBC" in plan
    assert password.reveal() not in plan + dump + repr(frame)
