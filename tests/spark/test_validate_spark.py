"""Validation in Spark tells of every corruption what the driver's form tells, and nothing of a good table."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corruptions import CORRUPTIONS, Case, Corrupt, change_a_size_in_the_catalog, lose_a_data_file
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from spark_cases import odd_commits, write_log
from tables import run_sql

from mainstem import Catalog, open_catalog
from mainstem.cli import main
from mainstem.validate import Report
from mainstem.validate.distributed.files import data_files_present
from mainstem.validate.distributed.states import checkpoints_equal

pytestmark = pytest.mark.spark
# What Delta says of the log, nobody can say without Spark.
_SPARK_ALONE = {"snapshots_equal_delta"}
_EVERY_RUN = {
    "change_a_size_in_the_log", "checkpoint_other_cardinality", "checkpoint_other_partition_values",
    "checkpoint_other_statistics", "flip_a_byte", "lose_a_file_named_by_its_whole_address", "open_a_span",
    "write_a_checkpoint_that_lacks_a_file",
}  # fmt: skip


@pytest.fixture
def sqlite(tmp_path: Path, migrated_file: Callable[[str], Path], spark: SparkSession) -> Iterator[Catalog]:
    """A catalog on the cheapest engine: what is tried here does not depend on it."""
    file = tmp_path / "lake.sqlite"
    file.write_bytes(migrated_file("sqlite").read_bytes())
    with open_catalog(f"sqlite:///{file}", spark=spark) as opened:
        yield opened


def told(report: Report) -> set[tuple[object, ...]]:
    """What a report says, without its words and without what only one form can look at."""
    return {
        (found.check, found.severity, found.version, found.path, found.column)
        for found in report.findings
        if found.check not in _SPARK_ALONE
    }


def _each() -> Iterator[object]:
    """All corruptions. A validation in Spark is some thirty jobs: every run tries one for each kind of check."""
    for each in CORRUPTIONS:
        marks = () if each[0].__name__ in _EVERY_RUN else (pytest.mark.slow,)
        yield pytest.param(*each, marks=marks, id=each[0].__name__)


@pytest.mark.parametrize(("corrupt", "check", "version", "names_path"), list(_each()))
def test_both_forms_tell_the_same_of_a_corruption(
    sqlite: Catalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    corrupt: Corrupt,
    check: str,
    version: int | None,
    names_path: bool,
) -> None:
    monkeypatch.setattr("mainstem.validate.suiteruns.suites_on_frames", lambda: iter(()))  # seconds that say no more
    case = Case(sqlite, tmp_path)
    corrupt(case)
    by_driver, by_spark = case.table.validate(engine="driver"), case.table.validate(engine="spark")
    assert not by_spark.success
    assert told(by_spark) == told(by_driver)
    found = [finding for finding in by_spark.findings if finding.check == check]
    assert found, by_spark.findings
    assert version is None or version in {finding.version for finding in found}
    assert not names_path or all(finding.path for finding in found)


def test_a_good_table_passes_in_spark_on_every_engine(catalog: Catalog, tmp_path: Path, spark: SparkSession) -> None:
    case = Case(catalog, tmp_path)
    report = case.table.validate(snapshots="all")  # which is enough to need Spark
    assert list(report.findings) == []
    assert report.success
    assert report.engine == "spark"
    assert [(run.suite, run.on, run.success) for run in report.suites] == [
        ("catalog_commits", "commits", True), ("catalog_files", "files", True), ("catalog_spans", "spans", True),
    ]  # fmt: skip
    change_a_size_in_the_catalog(case)
    wrong = case.table.validate(engine="spark")
    assert {run.suite for run in wrong.suites if not run.success} == {"catalog_commits", "catalog_files"}
    [differs] = [found for found in wrong.findings if found.check == "differs"]
    assert (differs.version, differs.path, differs.column) == (1, case.files_of(1)[0], "size_bytes")
    assert int(differs.catalog) == int(differs.log) + 1
    runs = catalog.store.rows("validation_runs", table_id=case.table_id)
    kept = {(run["suite"], bool(run["success"])) for run in runs}
    assert kept >= {("catalog against log", True), ("catalog against log", False), ("catalog_files", False)}


def test_spark_reads_a_log_with_everything_in_it(sqlite: Catalog, tmp_path: Path) -> None:
    root = write_log(tmp_path / "odd", odd_commits())
    sqlite.import_table(str(root), name="odd")
    report = sqlite.table("odd").validate(engine="spark", snapshots="all")
    unexpected = [found for found in report.findings if found.check != "data_file_missing"]
    assert unexpected == []  # there is a log, and no data


def test_only_large_tables_go_to_spark_by_themselves(sqlite: Catalog, tmp_path: Path, spark: SparkSession) -> None:
    Case(sqlite, tmp_path)
    assert sqlite.table("orders").validate().engine == "driver"
    with open_catalog(str(sqlite.settings.catalog), spark=spark, validate_files=1) as small:
        assert small.table("orders").validate().engine == "spark"


def test_many_differences_are_counted_and_the_first_are_told(
    sqlite: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_log(tmp_path / "odd", odd_commits())
    sqlite.import_table(str(root), name="odd")
    monkeypatch.setattr("mainstem.validate.distributed.told.MOST", 5)
    run_sql(sqlite, "UPDATE dl_add_files SET size_bytes = size_bytes + 1 WHERE version = 1")
    differs = [found for found in sqlite.table("odd").validate(engine="spark").findings if found.check == "differs"]
    assert [found.column for found in differs] == ["size_bytes"] * 5 + [None]
    assert differs[-1].message == "and 315 more, of which nothing is told here"


def test_the_suites_of_a_table_run_on_its_data_with_docs(
    sqlite: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(sqlite, tmp_path)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "conf" / "expectations"
    folder.mkdir(parents=True)
    (folder / "orders.json").write_text(json.dumps({"expectations": [between("id", 0, 5, severity="warning")]}))
    report = case.table.validate(engine="driver")
    assert report.success
    [found] = report.findings
    assert (found.check, found.severity, found.column, found.version) == ("expectations", "warning", "id", 3)
    (tmp_path / "strict.json").write_text(json.dumps({"name": "strict", "expectations": [between("id", 0, 5)]}))
    report = case.table.validate(suites=[str(tmp_path / "strict.json")], docs=tmp_path / "docs")
    assert report.engine == "spark"
    assert not report.success
    assert {(run.suite, run.on) for run in report.suites} >= {("orders", "data"), ("strict", "data")}
    assert [found.severity for found in report.findings] == ["warning", "error"]
    assert report.docs is not None
    assert "strict" in "".join(page.read_text() for page in Path(report.docs).parent.rglob("*.html"))
    [*_, found] = case.table.validate(suites=["nowhere"]).findings
    assert (found.check, found.severity) == ("expectations", "error")
    assert "there is no suite nowhere" in found.message


def test_the_command_prints_findings_and_suites_and_exits_with_4(sqlite: Catalog, tmp_path: Path) -> None:
    case = Case(sqlite, tmp_path)
    lose_a_data_file(case)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(
            ["validate", "--all", "--engine", "spark", "--json", "--docs", str(tmp_path / "docs"), "--catalog",
             str(sqlite.settings.catalog)], spark=sqlite.spark,
        )  # fmt: skip
    [report] = json.loads(out.getvalue())
    assert code == 4
    assert {found["check"] for found in report["findings"]} == {"data_file_missing"}
    assert {run["suite"]: run["success"] for run in report["suites"]}["catalog_files"] is False
    assert Path(report["docs"]).is_file()


def between(column: str, low: int, high: int, **more: str) -> dict[str, object]:
    kwargs = {"column": column, "min_value": low, "max_value": high}
    return {"type": "expect_column_values_to_be_between", "kwargs": kwargs, **more}


def test_a_deletion_vector_that_is_none_is_told_by_a_task_too(
    sqlite: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.validate.suiteruns.suites_on_frames", lambda: iter(()))
    case = Case(sqlite, tmp_path)
    case.sql("UPDATE dl_add_files SET deletion_vector = 'u?' WHERE table_id = $ID AND version = 1")
    found = case.table.validate(engine="spark").findings
    assert any(each.check == "data_files_present" and "none of Delta's" in each.message for each in found), found


def test_a_state_that_has_statistics_as_columns_alone_is_the_same_and_what_is_wrong_there_is_told(
    sqlite: Catalog, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.validate.suiteruns.suites_on_frames", lambda: iter(()))
    root = tmp_path / "typed"
    spark.sql(
        f"""CREATE TABLE delta.`{root}` (id INT, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, amount DECIMAL(9,2),
        rough FLOAT, text STRING, nested STRUCT<n: BIGINT>, part TIMESTAMP) USING delta PARTITIONED BY (part)
        TBLPROPERTIES (delta.checkpoint.writeStatsAsJson = false, delta.checkpoint.writeStatsAsStruct = true,
        delta.checkpointInterval = 1)"""
    )
    spark.sql(
        f"""INSERT INTO delta.`{root}` SELECT 1, TIMESTAMP '2026-10-25 02:30:00.123456',
        TIMESTAMP_NTZ '2026-01-01 00:00:00.5', DATE '2026-01-01', 0.30, 0.1, repeat('x', 40), named_struct('n', 5),
        TIMESTAMP '2026-01-01 00:00:00.25'"""
    )
    sqlite.import_table(str(root), name="typed")
    table = sqlite.table("typed")
    for engine in ("driver", "spark"):
        assert list(table.validate(engine=engine).findings) == []
    for file in (root / "_delta_log").glob("*1.checkpoint.parquet"):
        found = pq.read_table(file, coerce_int96_timestamp_unit="us")
        rows = found.to_pylist()
        for row in rows:
            if row["add"]:
                row["add"]["stats_parsed"]["numRecords"] = 2
                row["add"]["stats_parsed"]["maxValues"]["amount"] += 1
        pq.write_table(pa.Table.from_pylist(rows, found.schema), file)
        file.with_name(f".{file.name}.crc").unlink()
    by_driver, by_spark = table.validate(engine="driver"), table.validate(engine="spark")
    assert told(by_spark) == told(by_driver)
    assert {found.column for found in by_driver.findings} == {"stats.numRecords", "stats.maxValues.amount"}
    assert "snapshots_equal_delta" in {found.check for found in by_spark.findings}


def test_files_behind_links_in_the_tables_folder_are_found_where_they_are(
    sqlite: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.validate.distributed.CHECKS", (data_files_present,))
    monkeypatch.setattr("mainstem.validate.suiteruns.suites_on_frames", lambda: iter(()))
    case = Case(sqlite, tmp_path)
    (case.root / "sub").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (case.root / "short").symlink_to("sub")
    (case.root / "out").symlink_to(tmp_path / "elsewhere")
    body = {"partitionValues": {}, "size": 3, "modificationTime": 1, "dataChange": True, "stats": '{"numRecords":1}'}
    for path, file in (("short/a.parquet", case.root / "sub"), ("out/b.parquet", tmp_path / "elsewhere")):
        (file / Path(path).name).write_bytes(b"abc")
        case.table.commit([{"add": {"path": path, **body}}], operation="WRITE")
    assert list(case.table.validate(engine="driver").findings) == []
    assert list(case.table.validate(engine="spark").findings) == []
    (case.root / "sub" / "a.parquet").unlink()
    (tmp_path / "elsewhere" / "b.parquet").write_bytes(b"abcd")
    by_driver, by_spark = case.table.validate(engine="driver"), case.table.validate(engine="spark")
    assert told(by_spark) == told(by_driver)
    found = {(each.check, each.path) for each in by_driver.findings}
    assert found == {("data_file_missing", "short/a.parquet"), ("data_file_size", "out/b.parquet")}


def test_a_checkpoint_in_parts_is_whole_though_no_part_has_all_columns(
    sqlite: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.validate.distributed.CHECKS", (checkpoints_equal,))
    monkeypatch.setattr("mainstem.validate.suiteruns.suites_on_frames", lambda: iter(()))
    case = Case(sqlite, tmp_path)
    DeltaTable(case.root).create_checkpoint()
    [file] = (case.root / "_delta_log").glob("*.checkpoint.parquet")
    whole = pq.read_table(file)
    file.unlink()
    files = [row["add"] is not None for row in whole.to_pylist()]
    others = whole.filter(pa.array([not each for each in files]))
    for number, part in enumerate((whole.filter(pa.array(files)).select(["add"]), others.drop_columns(["add"])), 1):
        name = file.name.replace(".parquet", f".{number:010d}.{2:010d}.parquet")
        pq.write_table(part, file.with_name(name))
    assert list(case.table.validate(engine="spark").findings) == []
