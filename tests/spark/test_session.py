from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mainstem import Catalog, build_session, session
from mainstem.cli import main

pytestmark = pytest.mark.spark


def test_the_session_carries_the_defaults_of_the_file(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.extensions") == session.defaults()["spark.sql.extensions"]


def test_a_session_that_runs_is_taken_as_it_is(spark: SparkSession) -> None:
    assert build_session("another", **{"spark.sql.shuffle.partitions": "77"}) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_workers_are_the_python_that_runs_here(spark: SparkSession) -> None:
    which = F.udf(lambda _: sys.executable, "string")
    [row] = spark.range(1).select(which("id").alias("worker")).collect()
    assert row["worker"] == os.environ["PYSPARK_PYTHON"] == sys.executable


def test_what_spark_refuses_is_a_sentence_of_the_command(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"sqlite:///{tmp_path}/lake.db"
    assert main(["migrate", "--catalog", uri]) == 0
    capsys.readouterr()
    arguments = ["append", "t", "--source", f"{tmp_path}/missing", "--catalog", uri]
    assert main(arguments, spark=spark) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: Spark refused it: ")
    assert f"{tmp_path}/missing" in told
    assert "\nnext: " in told


def test_a_session_with_delta_and_the_drivers_passes(spark: SparkSession, catalog: Catalog) -> None:
    session.require_delta(spark)
    session.require_driver(spark, catalog.engine.jdbc())


def test_settings_are_read_from_the_session(spark: SparkSession, tmp_path: object) -> None:
    from mainstem import open_catalog

    spark.conf.set("spark.mainstem.catalog", f"sqlite:///{tmp_path}/by-spark.db")
    try:
        catalog = open_catalog(spark=spark)
        assert str(catalog.uri).endswith("by-spark.db")
        assert catalog.settings.source("catalog") == "spark.mainstem.catalog"
    finally:
        spark.conf.unset("spark.mainstem.catalog")


def test_a_bare_session_is_told_what_it_lacks() -> None:
    """In a process of its own: the session of this run has everything."""
    script = textwrap.dedent(
        """
        from pyspark.sql import SparkSession
        from mainstem import UnsupportedFeature, session
        from mainstem.engines import Jdbc

        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        for check in (
            lambda: session.require_delta(spark),
            lambda: session.require_driver(spark, Jdbc("jdbc:sqlite:/tmp/x.db", "org.sqlite.JDBC")),
        ):
            try:
                check()
            except UnsupportedFeature as error:
                print("SAID", error)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if line.startswith("SAID")]
    assert len(said) == 2
    assert "no Delta Lake" in said[0]
    assert "org.sqlite.JDBC" in said[1]
    assert all("spark-defaults.conf" in line for line in said)
