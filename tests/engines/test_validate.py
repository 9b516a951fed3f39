"""Validation: each corruption is told as what it is, by name, version and path; a good table passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tables import add, create

from mainstem import Catalog, Table

Corrupt = Callable[["Case"], None]


class Case:
    """A table of four versions that the catalog leads, with its data on disk, and ways to break it."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog, self.root = catalog, folder / "orders"
        for start in (0, 10):
            rows = pa.table({"id": list(range(start, start + 10))})
            write_deltalake(self.root, rows, mode="append")
        DeltaTable(self.root).delete("id = 3")
        catalog.import_table(str(self.root), name="orders")
        self.table: Table = catalog.table("orders")
        self.table.cutover()
        self.files = sorted(self.table.snapshot().to_arrow().column("path").to_pylist())
        self.table_id = self.table.info().table_id

    def sql(self, statement: str) -> None:
        with self.catalog.engine.writing() as connection:
            connection.execute(statement.replace("$ID", f"'{self.table_id}'"))

    def commit(self, version: int) -> Path:
        return self.root / "_delta_log" / f"{version:020d}.json"

    def edit(self, version: int, old: str, new: str) -> None:
        text = self.commit(version).read_text()
        assert old in text
        self.commit(version).write_text(text.replace(old, new, 1))


@pytest.fixture
def case(catalog: Catalog, tmp_path: Path) -> Case:
    return Case(catalog, tmp_path)


def flip_a_byte(case: Case) -> None:
    data = bytearray(case.commit(1).read_bytes())
    data[10] ^= 0xFF
    case.commit(1).write_bytes(bytes(data))


def drop_a_commit(case: Case) -> None:
    case.commit(1).unlink()


def change_a_size_in_the_log(case: Case) -> None:
    [line] = [line for line in case.commit(1).read_text().splitlines() if '"add"' in line]
    size = json.loads(line)["add"]["size"]
    case.edit(1, f'"size":{size}', f'"size":{size + 1}')


def change_a_size_in_the_catalog(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET size_bytes = size_bytes + 1 WHERE table_id = $ID AND version = 1")


def delete_an_add(case: Case) -> None:
    case.sql("DELETE FROM dl_add_files WHERE table_id = $ID AND version = 1")


def delete_a_remove(case: Case) -> None:
    case.sql("DELETE FROM dl_remove_files WHERE table_id = $ID AND version = 2")


def open_a_span(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET removed_version = NULL WHERE table_id = $ID AND version = 0")


def close_a_span(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET removed_version = 2 WHERE table_id = $ID AND version = 1")


def move_the_head_back(case: Case) -> None:
    case.sql("UPDATE dl_table_heads SET current_version = 2, published_version = 2 WHERE table_id = $ID")


def drop_a_version(case: Case) -> None:
    case.sql("DELETE FROM dl_table_versions WHERE table_id = $ID AND version = 1")


def turn_time_back(case: Case) -> None:
    case.sql("UPDATE dl_table_versions SET committed_at = '2001-01-01 00:00:00' WHERE table_id = $ID AND version = 2")


def commit_from_outside(case: Case) -> None:
    case.commit(4).write_text('{"commitInfo":{"operation":"WRITE"}}\n')


def write_half_a_commit(case: Case) -> None:
    case.commit(2).write_bytes(case.commit(2).read_bytes()[:40])


def lose_a_data_file(case: Case) -> None:
    (case.root / case.files[0]).unlink()


def cut_a_data_file(case: Case) -> None:
    file = case.root / case.files[0]
    file.write_bytes(file.read_bytes()[:-1])


def write_a_checkpoint_that_lacks_a_file(case: Case) -> None:
    DeltaTable(case.root).create_checkpoint()
    [file] = (case.root / "_delta_log").glob("*.checkpoint.parquet")
    rows = pq.read_table(file)
    keep = [row["add"] is None or row["add"]["path"] != case.files[0] for row in rows.to_pylist()]
    pq.write_table(rows.filter(pa.array(keep)), file)


def break_a_checkpoint(case: Case) -> None:
    DeltaTable(case.root).create_checkpoint()
    [file] = (case.root / "_delta_log").glob("*.checkpoint.parquet")
    file.write_bytes(b"PAR1 is not enough")


def lie_about_nulls(case: Case) -> None:
    case.sql("""UPDATE dl_add_files SET stats = '{"numRecords":10,"minValues":{"id":5},"maxValues":{"id":4},"""
             """"nullCount":{"id":11}}' WHERE table_id = $ID AND version = 1""")  # fmt: skip


def swap_the_protocol(case: Case) -> None:
    case.sql("UPDATE dl_protocol_updates SET min_reader_version = 3 WHERE table_id = $ID AND version = 0")


def forget_to_publish(case: Case) -> None:
    case.sql("UPDATE dl_table_heads SET published_version = 9 WHERE table_id = $ID")


CORRUPTIONS: list[tuple[Corrupt, str, int | None, bool]] = [
    (flip_a_byte, "unreadable_commit", 1, False),
    (drop_a_commit, "missing_in_log", 1, False),
    (change_a_size_in_the_log, "differs", 1, True),
    (change_a_size_in_the_catalog, "differs", 1, True),
    (delete_an_add, "missing_in_catalog", 1, True),
    (delete_a_remove, "missing_in_catalog", 2, True),
    (open_a_span, "spans_equal_replay", 0, True),
    (close_a_span, "spans_equal_replay", 1, True),
    (move_the_head_back, "head_is_newest", 2, False),
    (drop_a_version, "versions_contiguous", 1, False),
    (turn_time_back, "versions_contiguous", 2, False),
    (commit_from_outside, "foreign_commit", 4, False),
    (write_half_a_commit, "unreadable_commit", 2, False),
    (lose_a_data_file, "data_file_missing", None, True),
    (cut_a_data_file, "data_file_size", None, True),
    (write_a_checkpoint_that_lacks_a_file, "checkpoint_lacks_file", 3, True),
    (break_a_checkpoint, "checkpoint_unreadable", 3, False),
    (lie_about_nulls, "statistics", 1, True),
    (swap_the_protocol, "differs", 0, False),
    (forget_to_publish, "head_is_newest", 9, False),
]


def test_a_good_table_passes_and_the_run_is_kept(case: Case) -> None:
    report = case.table.validate()
    assert report.success
    assert list(report.findings) == []
    assert len(report.checks) == 9
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
