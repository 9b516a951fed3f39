"""Validation: each corruption is told as what it is, by name, version and path; a good table passes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from corruptions import CORRUPTIONS, Case, Corrupt
from deltalake import DeltaTable, write_deltalake
from tables import add, create, run_sql

from mainstem import Catalog, EngineBusy, Table, UsageError
from mainstem.cli import main
from mainstem.snapshot import no_session
from mainstem.validate import validate


@pytest.fixture
def case(catalog: Catalog, tmp_path: Path) -> Case:
    return Case(catalog, tmp_path)


def test_a_good_table_passes_and_the_run_is_kept(case: Case) -> None:
    report = case.table.validate()
    assert report.success
    assert list(report.findings) == []
    assert len(report.checks) == 10
    assert json.loads(report.to_json())["success"] is True
    [run] = case.catalog.store.rows("validation_runs", table_id=case.table_id)
    assert (run["suite"], bool(run["success"]), run["version"]) == ("catalog against log", True, 3)


@pytest.mark.parametrize(("corrupt", "check", "version", "names_path"), CORRUPTIONS, ids=lambda each: getattr(each, "__name__", ""))  # fmt: skip  # noqa: E501
def test_a_corruption_is_told_as_what_it_is(
    case: Case, corrupt: Corrupt, check: str, version: int | None, names_path: bool
) -> None:
    corrupt(case)
    report = case.table.validate()
    assert not report.success
    found = [finding for finding in report.findings if finding.check == check]
    assert found, report.findings
    assert version is None or version in {finding.version for finding in found}
    assert not names_path or all(finding.path for finding in found)


def test_a_version_that_waits_for_publishing_is_a_warning_with_the_next_step(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    from mainstem import open_catalog

    create(catalog, tmp_path)
    with open_catalog(catalog_uri, publish_on_commit=False) as slow:
        slow.table("sales.orders").commit([add("a")], operation="WRITE")
        findings = slow.table("sales.orders").validate().findings
    waiting = [finding for finding in findings if finding.check == "published_in_time"]
    assert [(finding.version, finding.severity) for finding in waiting] == [(1, "warning")]
    assert "mainstem publish sales.orders" in waiting[0].message


def test_a_checkpoint_that_another_engine_has_written_passes(catalog: Catalog, tmp_path: Path) -> None:
    moment = datetime(2026, 10, 25, 0, 30, 0, 123456, UTC)
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3]), "part": pa.array(["a b", None, "é"]), "day": pa.array([date(2026, 1, 1)] * 3),
            "at": pa.array([moment] * 3, pa.timestamp("us", "UTC")), "amount": pa.array([Decimal("0.30")] * 3),
            "rough": pa.array([0.1, None, 2.5], pa.float32()), "text": pa.array(["x" * 40] * 3),
            "local": pa.array([moment.replace(tzinfo=None)] * 3, pa.timestamp("us")),
            "in": pa.array([{"n": 1}, {"n": None}, {"n": 3}]), "when": pa.array([moment, None, moment]),
        }
    )  # fmt: skip
    write_deltalake(tmp_path / "t", rows, partition_by=["part", "day", "when"])
    DeltaTable(tmp_path / "t").create_checkpoint()
    catalog.import_table(str(tmp_path / "t"), name="t")
    assert list(catalog.table("t").validate().findings) == []


def test_statistics_that_are_no_object_are_told_and_stop_nothing(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET stats = '[1]' WHERE table_id = $ID AND version = 1")
    report = case.table.validate()
    found = [(each.severity, each.version, each.path) for each in report.findings if each.check == "statistics"]
    assert found == [("warning", 1, case.files_of(1)[0])]
    assert "orphans_counted" in report.checks


def test_a_file_named_by_its_whole_address_is_looked_for_in_the_tables_folder(case: Case, tmp_path: Path) -> None:
    for file in (case.root / "by address.parquet", tmp_path / "elsewhere.parquet"):
        body = {"path": file.as_uri(), "partitionValues": {}, "size": 3, "modificationTime": 1, "dataChange": True}
        case.table.commit([{"add": {**body, "stats": '{"numRecords":1}'}}], operation="WRITE")
    (case.root / "by address.parquet").write_bytes(b"abc")
    assert list(case.table.validate().findings) == []
    (case.root / "by address.parquet").write_bytes(b"abcd")
    [found] = case.table.validate().findings
    assert (found.check, found.version, found.catalog, found.log) == ("data_file_size", 4, 3, 4)


def test_all_snapshots_need_spark_and_are_never_passed_over(case: Case, catalog_uri: str) -> None:
    with pytest.raises(UsageError, match="needs Spark") as refused:
        case.table.validate(engine="driver", snapshots="all")
    assert "spark or auto" in str(refused.value)
    with pytest.raises(UsageError):
        validate(case.catalog.store, "orders", session=no_session, snapshots="all")
    case.catalog.close()
    assert main(["validate", "--all", "--engine", "driver", "--snapshots", "all", "--catalog", catalog_uri]) == 2


def test_the_command_starts_a_session_for_all_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(name: str) -> None:
        started.append(name)
        raise UsageError("there is no JVM here.")

    monkeypatch.setattr("mainstem.session.build_session", start)
    assert main(["validate", "orders", "--snapshots", "all", "--catalog", "sqlite:////nowhere/x.db"]) == 2
    assert started == ["mainstem"]


def leave_an_orphan(case: Case) -> None:
    old = time.time() - 30 * 24 * 3600
    for folder, name in ((case.root, "old.parquet"), (case.root / "day=1", "old one.parquet")):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"nobody names it")
        os.utime(folder / name, (old, old))
    (case.root / "young.parquet").write_bytes(b"somebody may commit it yet")


def test_files_that_no_version_names_are_counted_and_no_failure(case: Case) -> None:
    leave_an_orphan(case)
    report = case.table.validate()
    assert report.success
    [finding] = report.findings
    assert (finding.check, finding.severity, finding.log) == ("orphans_counted", "warning", 2)
    assert "2 files of 30 bytes" in finding.message


def test_a_wrong_span_of_a_domain_or_an_application_is_told_by_its_name(catalog: Catalog, tmp_path: Path) -> None:
    table = create(catalog, tmp_path)
    for number in (1, 2):
        table.commit([add(f"f{number}")], operation="WRITE", txn=("loader", number))
    run_sql(catalog, "UPDATE dl_txn_actions SET superseded_version = NULL")
    spans = [found for found in table.validate().findings if found.check == "spans_equal_replay"]
    assert [(found.version, found.path, found.column, found.catalog, found.log) for found in spans] == [
        (1, "loader", "superseded_version", None, 2)
    ]


def test_suites_that_need_spark_are_a_warning_without_it(catalog: Catalog, tmp_path: Path) -> None:
    create(catalog, tmp_path, mainstem__expectations="orders_are_sane")
    report = validate(catalog.store, "sales.orders", session=no_session)
    assert report.success
    [found] = report.findings
    assert (found.check, found.severity) == ("expectations", "warning")
    assert "orders_are_sane" in found.message
    assert "--engine spark" in found.message


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        ("DELETE FROM dl_table_versions WHERE table_id = $ID AND version = 3", "head_is_newest"),
        ("DELETE FROM dl_table_versions WHERE table_id = $ID", "head_is_newest"),
        ("UPDATE dl_table_heads SET current_version = 7 WHERE table_id = $ID", "head_is_newest"),
        ("DELETE FROM dl_metadata_updates WHERE table_id = $ID", "head_opens"),
        ("DELETE FROM dl_protocol_updates WHERE table_id = $ID", "head_opens"),
    ],
)
def test_a_table_whose_rows_are_too_damaged_to_be_opened_is_reported(case: Case, damage: str, check: str) -> None:
    case.sql(damage)
    report = case.table.validate()
    assert not report.success
    found = {finding.check for finding in report.findings}
    assert {check, "head_opens"} <= found
    [run] = case.catalog.store.rows("validation_runs", table_id=case.table_id)
    assert not run["success"]


def test_a_deletion_vector_that_is_none_is_a_finding(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET deletion_vector = 'u?' WHERE table_id = $ID AND version = 1")
    messages = [found.message for found in case.table.validate().findings if found.check == "data_files_present"]
    assert len(messages) == 1
    assert "none of Delta's" in messages[0]


def test_one_table_that_cannot_be_validated_does_not_hold_up_the_others(
    case: Case, catalog_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(case.catalog, tmp_path)
    validate_one, repair_one = Table.validate, Table.repair

    def busy(of_table: Callable[..., Any]) -> Callable[..., Any]:
        def but_one(self: Table, **given: Any) -> Any:
            if self.name == "orders":
                raise EngineBusy("the database does not answer.")
            return of_table(self, **given)

        return but_one

    monkeypatch.setattr(Table, "validate", busy(validate_one))
    monkeypatch.setattr(Table, "repair", busy(repair_one))
    case.catalog.close()
    for more in ([], ["--repair"]):
        assert main(["validate", "--all", "--json", "--catalog", catalog_uri, *more]) == 4
        told = json.loads(capsys.readouterr().out)
        assert [each["success"] for each in told] == [False, True]
        assert "does not answer" in json.dumps(told[0])


@pytest.mark.parametrize("given", [["--engine", "driver"], ["--snapshots", "all"], ["--suite", "s"], ["--docs", "d"]])
def test_a_repair_takes_no_flags_of_a_validation(given: list[str]) -> None:
    assert main(["validate", "--all", "--repair", *given, "--catalog", "sqlite:////nowhere/x.db"]) == 2
