"""kill -9 in the middle of a transaction over data: both tables or neither, nothing stays, and the next run works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from killed import POINTS
from pyspark.sql import SparkSession

import mainstem
from mainstem import Catalog, open_catalog
from mainstem.mount import scratch, sweep

pytestmark = [pytest.mark.spark, pytest.mark.slow]
BOTH = ("sales.orders", "sales.items")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Catalog]:
    """Two tables with ids 0 to 2."""
    with open_catalog(f"sqlite:///{tmp_path}/lake.db", spark=spark, scratch=tmp_path / "scratch") as opened:
        opened.migrate()
        for name in BOTH:
            opened.create_table(name, location=str(tmp_path / name), schema="id BIGINT").append(spark.range(0, 3, 1, 1))
        yield opened


def ids(lake: Catalog, name: str) -> list[int]:
    return sorted(row.id for row in lake.table(name).read().collect())


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_transaction_over_data_changes_both_tables_or_neither(
    point: str, lake: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    lake.close()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed.py")), str(lake.uri), str(tmp_path / "scratch"), point],
        env={**os.environ, "PYTHONPATH": str(Path(mainstem.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    committed = point == POINTS[-1]
    assert [lake.table(name).version for name in BOTH] == [1 + committed] * 2
    expected = [[0, 2], [0, 1, 2, 10, 11]] if committed else [[0, 1, 2]] * 2
    assert [ids(lake, name) for name in BOTH] == expected
    lake.close()
    home = scratch._home(lake.settings)
    assert home.folders()  # what it has left
    assert sweep(lake.settings) > 0
    assert home.folders() == []
    with lake.transaction(txn_id=point) as tx:
        tx.table("sales.orders").delete("id = 1")
        tx.table("sales.items").append(spark.range(10, 12))
    assert {each.repeated for each in tx.committed.values()} == {committed}
    assert [ids(lake, name) for name in BOTH] == [[0, 2], [0, 1, 2, 10, 11]]
    for name in BOTH:
        lake.table(name).publish()
        assert lake.table(name).validate().success
        published = spark.read.format("delta").load(lake.table(name).location)
        assert sorted(row.id for row in published.collect()) == ids(lake, name)
