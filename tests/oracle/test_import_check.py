"""With a session, an import is compared with what Delta itself reads before it is committed."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogs import row_counts
from logs import Log, add, metadata, protocol, remove
from pyspark.sql import SparkSession

from mainstem import Catalog, deltacheck, open_catalog
from mainstem.errors import CorruptLog
from mainstem.importer import Imported

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("catalog_uri", ["sqlite"], indirect=True)]


@pytest.fixture
def connected(catalog: Catalog, spark: SparkSession) -> Catalog:
    return open_catalog(catalog.settings.catalog, spark=spark)


def test_odd_partition_values_are_the_same_files_to_both(
    connected: Catalog, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = ["a b", "50%", "%20", "é", "x/y", "a:b", "k=v", "2024-01-01 10:00:00", "'", "#?", None]
    location = str(tmp_path / "a table %41")
    rows = spark.createDataFrame([(number, value) for number, value in enumerate(values)], "id int, part string")
    rows.coalesce(1).write.format("delta").partitionBy("part").save(location)
    done = connected.import_table(location, name="t")
    assert done.files == len(values)
    assert "not_compared" not in caplog.text


def test_a_difference_is_told_and_nothing_is_imported(connected: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    one, other = Log.begin(tmp_path / "one", add("a")), Log.begin(tmp_path / "other", add("b"))
    connected.import_table(one.location, name="t")
    table = connected.table("t").info()
    claimed = Imported("t", table.table_id, other.location, 0, 0, 1, 1)
    with connected.store.reading() as queries, pytest.raises(CorruptLog, match=r"1 files are missing .*1 are too many"):
        deltacheck.compare(spark)(claimed, queries)


def test_a_log_that_delta_does_not_open_is_imported_with_a_warning(
    connected: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log(tmp_path / "t")
    log.checkpoint(5, protocol("v2Checkpoint"), metadata(), add("a"))  # without its commit file: Delta wants one
    connected.import_table(log.location, name="t")
    assert "import.not_compared" in caplog.text


def test_files_that_only_delta_keeps_are_told(connected: Catalog, tmp_path: Path) -> None:
    """Removed under another spelling of an absolute path: what Delta says depends on how it shares its work out."""
    root = tmp_path / "t"
    log = Log.begin(root, *(add(f"file:{root}/f{number}") for number in range(16)))
    log.commit(*(remove(f"file://{root}/f{number}") for number in range(16)))
    before = row_counts(connected)
    assert connected.import_table(log.location, name="t").files == 0
    assert row_counts(connected)["dl_remove_files"] == before["dl_remove_files"] + 16
