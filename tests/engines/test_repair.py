"""Repair: what has one right answer is put right, the rest is named with the command that decides it, nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import logs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from catalogs import ask, change
from deltalake import DeltaTable
from tables import add, create, everything, log_files, paths, remove, require_spans_equal_replay

from mainstem import Catalog, Table, open_catalog
from mainstem.cli import main
from mainstem.errors import LogNotWritten
from mainstem.repair import Repaired
from mainstem.repair.spans import put_right, wrong_keys
from mainstem.snapshot import no_session

Break = Callable[["Case"], None]


class Case:
    """A table of 13 versions that the catalog leads and has published, with a checkpoint of version 10."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog = catalog
        self.table = create(catalog, folder)
        self.root = folder / "sales.orders"
        for number in range(6):
            self.put(add(f"f{number}"))
        for number in range(3):
            self.put(remove(f"f{number}"), add(f"g{number}"))
        self.put(add("h"), {"txn": {"appId": "etl", "version": 1}})
        self.put({"txn": {"appId": "etl", "version": 2}}, add("i"))
        self.put(remove("h"))
        self.table_id = self.table.info().table_id

    def put(self, *actions: dict[str, object]) -> None:
        for action in actions:
            if "add" in action:
                body = action["add"]
                assert isinstance(body, dict)
                file = self.root / str(body["path"])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"x" * 100)
        self.table.commit(actions, operation="WRITE", read_version=self.table.version)

    def commit(self, version: int) -> Path:
        return self.root / "_delta_log" / f"{version:020d}.json"

    @property
    def checkpoint(self) -> Path:
        return self.root / "_delta_log" / f"{10:020d}.checkpoint.parquet"

    def sql(self, statement: str) -> None:
        change(self.catalog, f"{statement} AND table_id = :table_id", table_id=self.table_id)

    def disk(self) -> dict[str, bytes]:
        return {str(file.relative_to(self.root)): file.read_bytes() for file in self.root.rglob("*") if file.is_file()}

    def rows(self) -> dict[str, list[str]]:
        """Every row, but for the record that a validation was made."""
        return {name: rows for name, rows in everything(self.catalog).items() if name != "dl_validation_runs"}


@pytest.fixture
def case(catalog: Catalog, tmp_path: Path) -> Case:
    return Case(catalog, tmp_path)


def kinds(done: Repaired) -> list[tuple[str, int | None, str]]:
    return [(step.kind, step.version, step.outcome) for step in done.steps]


def open_a_span(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET removed_version = NULL WHERE version = 1")


def close_a_span(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET removed_version = 12 WHERE version = 5")


def close_a_span_too_late(case: Case) -> None:
    """No validation of the first, the middle and the last version sees this one."""
    case.sql("UPDATE dl_add_files SET removed_version = 9 WHERE version = 2")


def open_a_transaction(case: Case) -> None:
    case.sql("UPDATE dl_txn_actions SET superseded_version = NULL WHERE version = 10")


def lose_a_commit(case: Case) -> None:
    case.commit(4).unlink()


def lose_the_first_commit(case: Case) -> None:
    """And the checkpoint that would do without it."""
    case.commit(0).unlink()
    lose_the_checkpoint(case)


def lose_the_checkpoint(case: Case) -> None:
    case.checkpoint.unlink()


def break_the_checkpoint(case: Case) -> None:
    case.checkpoint.write_bytes(b"PAR1 is not enough")


def shorten_the_checkpoint(case: Case) -> None:
    rows = pq.read_table(case.checkpoint)
    keep = [row["add"] is None or "f5" not in row["add"]["path"] for row in rows.to_pylist()]
    assert not all(keep)
    pq.write_table(rows.filter(pa.array(keep)), case.checkpoint)


def lose_the_start_of_the_log(case: Case) -> None:
    for version in range(5):
        case.commit(version).unlink()
    case.checkpoint.unlink()
    (case.root / "_delta_log" / "_last_checkpoint").unlink()


REPAIRED: list[tuple[Break, list[tuple[str, int | None]]]] = [
    (open_a_span, [("spans", None)]),
    (close_a_span, [("spans", None)]),
    (close_a_span_too_late, [("spans", None)]),
    (open_a_transaction, [("spans", None)]),
    (lose_a_commit, [("commit", 4)]),
    (lose_the_checkpoint, [("checkpoint", 10)]),
    (break_the_checkpoint, [("checkpoint", 10)]),
    (shorten_the_checkpoint, [("checkpoint", 10)]),
    (lose_the_first_commit, [("commit", 0), ("checkpoint", 10)]),
    (lose_the_start_of_the_log, [*(("commit", version) for version in range(5)), ("checkpoint", 10)]),
]


def test_a_good_table_is_left_alone(case: Case) -> None:
    assert case.checkpoint.exists()
    rows, disk = case.rows(), case.disk()
    done = case.table.repair()
    assert (done.success, list(done.steps), list(done.decisions)) == (True, [], [])
    assert (case.rows(), case.disk()) == (rows, disk)


@pytest.mark.parametrize(("break_it", "wanted"), REPAIRED, ids=lambda each: getattr(each, "__name__", ""))
def test_what_has_one_right_answer_is_put_right_once(
    case: Case, break_it: Break, wanted: list[tuple[str, int | None]]
) -> None:
    good = paths(case.table), case.rows()
    break_it(case)
    broken = case.rows(), case.disk()
    planned = case.table.repair(dry_run=True)
    assert kinds(planned) == [(kind, version, "planned") for kind, version in wanted]
    assert list(planned.decisions) == []
    assert (case.rows(), case.disk()) == broken
    done = case.table.repair()
    assert kinds(done) == [(kind, version, "done") for kind, version in wanted]
    assert (done.success, list(done.decisions)) == (True, [])
    require_spans_equal_replay(case.table)
    assert (paths(case.table), case.rows()) == good
    assert set(DeltaTable(case.root).file_uris()) == {
        str(case.root / path) for path in case.table.snapshot().to_arrow().column("path").to_pylist()
    }
    mended = case.rows(), case.disk()
    again = case.table.repair()
    assert (list(again.steps), again.success) == ([], True)
    assert (case.rows(), case.disk()) == mended


def test_a_dry_run_changes_no_row_at_all(case: Case) -> None:
    open_a_span(case)
    before = everything(case.catalog), case.disk()
    assert kinds(case.table.repair(dry_run=True)) == [("spans", None, "planned")]
    assert (everything(case.catalog), case.disk()) == before


def test_a_table_that_cannot_be_opened_is_left_to_decide(case: Case) -> None:
    case.sql("DELETE FROM dl_metadata_updates WHERE version >= 0")
    before = case.disk()
    done = case.table.repair()
    assert (done.success, case.disk()) == (False, before)
    [decision] = [each for each in done.decisions if each.check == "head_opens"]
    assert decision.command.startswith("mainstem import")


def test_a_lost_commit_comes_back_with_the_bytes_that_were_committed(case: Case) -> None:
    before = case.commit(4).read_bytes()
    lose_a_commit(case)
    case.table.repair()
    assert case.commit(4).read_bytes() == before


def test_what_waits_for_publishing_is_published(catalog: Catalog, catalog_uri: str, tmp_path: Path) -> None:
    create(catalog, tmp_path)
    with open_catalog(catalog_uri, publish_on_commit=False) as slow:
        table = slow.table("sales.orders")
        table.commit([add("a")], operation="WRITE")
        table.commit([add("b")], operation="WRITE")
        assert kinds(table.repair(dry_run=True)) == [("publish", 2, "planned")]
        assert log_files(table) == [0]
        assert kinds(table.repair()) == [("publish", 2, "done")]
        assert log_files(table) == [0, 1, 2]
        assert table.repair().steps == ()


def test_a_checkpoint_that_was_written_from_wrong_spans_is_written_again(case: Case) -> None:
    from mainstem.checkpoint import write_checkpoint

    open_a_span(case)
    write_checkpoint(case.catalog.store, "sales.orders", 10)
    assert any("f0.parquet" in path for path in DeltaTable(case.root).file_uris())
    done = case.table.repair()
    assert kinds(done) == [("spans", None, "done"), ("checkpoint", 10, "done")]
    assert done.success
    assert not any("f0.parquet" in path for path in DeltaTable(case.root).file_uris())


def test_what_expiry_and_a_bridged_clean_up_have_taken_is_no_wrong_span(
    case: Case, catalog: Catalog, tmp_path: Path
) -> None:
    case.table.expire(before_version=8)
    assert case.table.repair().steps == ()
    log = logs.Log.begin(tmp_path / "t", logs.add("a"))
    log.commit(logs.add("b"), logs.txn("silent", 1), logs.domain("d", "1"))
    catalog.import_table(log.location, name="t")
    log.commit(logs.remove("a"))
    log.commit(logs.add("c"))
    log.checkpoint(3, logs.protocol(), logs.metadata(), logs.add("b", dataChange=False))  # the application is gone
    log.clean_up(before=3)
    table = catalog.table("t")
    table.follow()
    assert (dict(table.snapshot().app_transactions), table.history()[0].kind) == ({}, "checkpoint")
    rows = case.rows()
    assert table.repair().steps == ()
    assert case.rows() == rows


def test_a_commit_between_finding_a_wrong_span_and_mending_it_is_respected(case: Case) -> None:
    close_a_span(case)
    row = case.catalog.store.table("sales.orders")
    keys = wrong_keys(case.catalog.store, row, session=no_session)
    case.put(add("f4"))
    case.put(remove("f4"))
    assert put_right(case.catalog.store, row, keys) == 1
    require_spans_equal_replay(case.table)
    assert "f4" not in paths(case.table)


def test_a_store_that_refuses_a_file_fails_that_step_alone(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    open_a_span(case)
    lose_a_commit(case)

    def refuse(place: object, version: int, data: bytes) -> str:
        raise LogNotWritten("the store is full.", hint="Make room.")

    monkeypatch.setattr("mainstem.repair.logfiles.put_commit", refuse)
    done = case.table.repair()
    assert kinds(done) == [("spans", None, "done"), ("commit", 4, "failed")]
    assert "the store is full" in str(done.steps[1].error)
    assert not done.success
    monkeypatch.undo()
    assert case.table.repair().success


@pytest.fixture
def imaged(catalog_uri: str) -> Iterator[Catalog]:
    with open_catalog(catalog_uri, image_files=1) as opened:
        opened.migrate()
        yield opened


def images(catalog: Catalog) -> int:
    return int(ask(catalog, "SELECT count(*) FROM dl_snapshot_images")[0][0])


def test_an_image_that_a_wrong_span_has_spoilt_is_dropped(imaged: Catalog, tmp_path: Path) -> None:
    case = Case(imaged, tmp_path)
    good = paths(case.table)
    change(imaged, "DELETE FROM dl_snapshot_images")
    close_a_span(case)
    case.table.snapshot().keep_image()
    assert paths(case.table) != good
    case.table.repair()
    assert images(imaged) == 0
    assert paths(case.table) == good


def test_an_image_that_outlived_its_wrong_span_is_dropped_and_a_good_one_stays(imaged: Catalog, tmp_path: Path) -> None:
    case = Case(imaged, tmp_path)
    good = paths(case.table)
    assert case.table.snapshot().keep_image() or images(imaged)
    assert case.table.repair().steps == ()
    assert images(imaged) > 0
    change(imaged, "DELETE FROM dl_snapshot_images")
    close_a_span(case)
    case.table.snapshot().keep_image()
    case.sql("UPDATE dl_add_files SET removed_version = NULL WHERE version = 5")
    assert paths(case.table) != good
    assert kinds(case.table.repair(dry_run=True)) == [("images", case.table.version, "planned")]
    assert images(imaged) > 0
    assert case.table.repair().success
    assert paths(case.table) == good


def commit_from_outside(case: Case) -> None:
    case.commit(13).write_text('{"commitInfo":{"operation":"WRITE"}}\n')


def damage_a_commit(case: Case) -> None:
    case.commit(4).write_bytes(case.commit(4).read_bytes()[:40])


def lose_an_add(case: Case) -> None:
    case.sql("DELETE FROM dl_add_files WHERE version = 5")


def move_the_head_back(case: Case) -> None:
    case.sql("UPDATE dl_table_heads SET current_version = 11, published_version = 11 WHERE 1 = 1")


def lose_a_data_file(case: Case) -> None:
    (case.root / "day=2026-11-18" / "i.parquet").unlink()


def lose_a_remove(case: Case) -> None:
    """Then replay says that a removed file is live, and its span, which is right, that it is not."""
    case.sql("DELETE FROM dl_remove_files WHERE version = 12")


DECIDED: list[tuple[Break, str, str]] = [
    (commit_from_outside, "foreign_commit", "mainstem resolve sales.orders"),
    (damage_a_commit, "unreadable_commit", "move 00000000000000000004.json out"),
    (lose_an_add, "missing_in_catalog", "--name sales.orders --force; then: mainstem cutover sales.orders"),
    (lose_a_remove, "missing_in_catalog", "--name sales.orders --force; then: mainstem cutover sales.orders"),
    (move_the_head_back, "head_is_newest", "--force"),
    (lose_a_data_file, "data_file_missing", "backup"),
]


@pytest.mark.parametrize(("break_it", "check", "command"), DECIDED, ids=lambda each: getattr(each, "__name__", ""))
def test_what_a_person_must_decide_is_named_and_not_touched(
    case: Case, break_it: Break, check: str, command: str
) -> None:
    break_it(case)
    broken = case.rows(), case.disk()
    done = case.table.repair()
    assert not done.success
    assert list(done.steps) == []
    assert command in next(each for each in done.decisions if each.check == check).command
    assert (case.rows(), case.disk()) == broken


def test_a_damaged_commit_is_put_back_once_somebody_has_moved_it_away(case: Case) -> None:
    before = case.commit(4).read_bytes()
    damage_a_commit(case)
    case.table.repair()
    case.commit(4).unlink()
    assert case.table.repair().success
    assert case.commit(4).read_bytes() == before


def test_no_checkpoint_is_made_of_rows_that_may_be_wrong(case: Case) -> None:
    lose_an_add(case)
    lose_the_checkpoint(case)
    assert list(case.table.repair().steps) == []
    assert not case.checkpoint.exists()


def test_a_log_that_leads_is_not_written(case: Case) -> None:
    case.table.rollback()
    break_the_checkpoint(case)
    lose_a_commit(case)
    broken = case.disk()
    done = case.table.repair()
    assert (list(done.steps), done.success, case.disk()) == ([], False, broken)
    assert {each.check for each in done.decisions} >= {"missing_in_log", "checkpoint_unreadable"}


def test_a_log_that_is_gone_is_not_begun_anew_at_the_wrong_version(case: Case) -> None:
    import shutil

    shutil.rmtree(case.root / "_delta_log")
    done = case.table.repair()
    assert list(done.steps) == []
    assert {each.command for each in done.decisions} == {"mainstem rebuild-log sales.orders"}
    assert not (case.root / "_delta_log").exists()


def test_the_command_repairs_only_when_asked(case: Case, catalog_uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    open_a_span(case)
    case.catalog.close()
    given = ["validate", "sales.orders", "--catalog", catalog_uri, "--json"]

    def run(*more: str) -> tuple[int, list[dict[str, object]]]:
        code = main([*given, *more])
        return code, json.loads(capsys.readouterr().out)

    assert run()[0] == 4
    code, [planned] = run("--repair", "--dry-run")
    assert (code, planned["steps"][0]["outcome"]) == (4, "planned")  # type: ignore[index]
    assert run()[0] == 4
    code, [done] = run("--repair")
    assert (code, done["success"], done["steps"][0]["outcome"]) == (0, True, "done")  # type: ignore[index]
    assert run()[0] == 0
    assert main([*given, "--dry-run"]) == 2


def test_one_table_that_cannot_be_repaired_does_not_hold_up_the_others(
    catalog: Catalog, tmp_path: Path, catalog_uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, other = Case(catalog, tmp_path), create(catalog, tmp_path, name="b")
    assert isinstance(other, Table)
    damage_a_commit(broken)
    catalog.close()
    assert main(["validate", "--all", "--repair", "--catalog", catalog_uri]) == 4
    assert "mainstem validate sales.orders --repair" in capsys.readouterr().out
