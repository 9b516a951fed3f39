"""publish, cutover, rollback, resolve and what doctor says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tables import add, create

from mainstem import Catalog, Table, open_catalog
from mainstem.cli import main


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    catalog = open_catalog(f"sqlite:///{tmp_path}/lake.db", publish_on_commit=False)
    catalog.migrate()
    return catalog


class Shell:
    """Runs commands on one catalog: `json` as a program does, `said` as a person does."""

    def __init__(self, lake: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
        self._catalog = ["--catalog", lake.settings.catalog]
        self._capsys = capsys

    def json(self, *arguments: str) -> tuple[int, Any]:
        """The exit code, and the JSON that the command printed."""
        code = main([*arguments, *self._catalog, "--json"])
        return code, json.loads(self._capsys.readouterr().out)

    def said(self, *arguments: str) -> str:
        """What a person reads."""
        main([*arguments, *self._catalog])
        return self._capsys.readouterr().out


@pytest.fixture
def shell(lake: Catalog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("MAINSTEM_PUBLISH_ATTEMPTS", "1")
    return Shell(lake, capsys)


def by_deltars(root: Path, mode: str = "append") -> Path:
    write_deltalake(root, pa.table({"id": [1, 2]}), mode=mode)  # type: ignore[call-overload]
    return root


def ours(table: Table, name: str) -> None:
    table.commit([add(name, path=f"{name}.parquet", partitionValues={})], operation="WRITE")


def test_publish_brings_one_table_or_all_of_them_up_to_date(
    lake: Catalog, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        create(lake, tmp_path, name=name).commit([add("f")], operation="WRITE")
    code, done = shell.json("publish", "a")
    assert (code, done) == (0, {"name": "a", "from_version": -1, "version": 1, "written": 2})
    (tmp_path / "b").rename(tmp_path / "away")
    code, [failed] = shell.json("publish", "--all")
    assert (code, failed["name"], failed["outcome"], failed["versions"]) == (2, "b", "failed", 2)
    (tmp_path / "away").rename(tmp_path / "b")
    code, [left] = shell.json("publish", "--all")
    assert (code, left["outcome"], 0 < left["wait"] <= 5, left["hint"]) == (
        75, "postponed", True, "Now by: mainstem publish b",
    )  # fmt: skip
    monkeypatch.setenv("MAINSTEM_PUBLISH_BACKOFF", "0")
    code, [done] = shell.json("publish", "--all")
    assert (code, done["outcome"], done["version"]) == (0, "published", 1)
    assert shell.json("publish", "--all") == (0, [])
    for wrong in (("publish",), ("publish", "a", "--all")):
        code, error = shell.json(*wrong)
        assert (code, error["error"]["code"]) == (2, "usage")
    assert shell.json("publish", "nobody")[0] == 5


def test_cutover_and_rollback_hand_the_lead_over_and_back(lake: Catalog, tmp_path: Path, shell: Shell) -> None:
    lake.import_table(str(by_deltars(tmp_path / "t")), name="t")
    code, done = shell.json("cutover", "t", "--fence")
    assert (code, done["version"], done["published"]) == (0, 1, True)
    assert "mainstemFence" in shell.json("show", "t")[1]["features"]
    assert shell.json("cutover", "t")[0] == 2
    assert "its log leads after version 2" in shell.said("rollback", "t")
    assert "the catalog leads from version 3 on" in shell.said("cutover", "t", "--no-in-commit-timestamps")
    assert shell.json("show", "t")[1]["features"] == []
    code, done = shell.json("rollback", "t")
    assert (code, done["version"]) == (0, 4)
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").write_text('{"commitInfo":{}}\n')
    assert shell.json("cutover", "t")[1]["error"]["code"] in ("validation_failed", "corrupt_log")


def test_resolve_shows_foreign_commits_and_adopts_them(lake: Catalog, tmp_path: Path, shell: Shell) -> None:
    root = by_deltars(tmp_path / "t")
    lake.import_table(str(root), name="t")
    table = lake.table("t")
    table.cutover(in_commit_timestamps=False)
    assert "no outside engine has committed anything" in shell.said("resolve", "t")
    by_deltars(root)
    ours(table, "a")
    assert shell.json("publish", "t")[0] == 3
    code, found = shell.json("resolve", "t")
    assert (code, found["adopted"], found["unpublished"], len(found["foreign"])) == (0, False, [2], 1)
    assert "mainstem resolve t --adopt-foreign" in shell.said("resolve", "t")
    code, done = shell.json("resolve", "t", "--adopt-foreign")
    assert (code, done["renumbered"], done["publish_error"]) == (0, [[2, 3]], None)
    ours(table, "b")
    by_deltars(root)
    assert "4 is now 5" in shell.said("resolve", "t", "--adopt-foreign")
    ours(table, "c")
    table.commit([{"remove": {"path": "a.parquet", "dataChange": True}}], operation="DELETE")
    by_deltars(root, "overwrite")
    assert shell.json("resolve", "t", "--adopt-foreign")[0] == 3


def test_doctor_reports_lags_failures_and_foreign_commits_each_with_the_next_step(
    lake: Catalog, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks() -> tuple[int, dict[str, list[tuple[str, str, int]]]]:
        code, told = shell.json("doctor")
        found: dict[str, list[tuple[str, str, int]]] = {}
        for check in told["checks"]:
            found.setdefault(check["name"], []).append((check["said"], check["hint"], check["exit_code"]))
        return code, found

    late = create(lake, tmp_path, name="late")
    code, found = checks()
    assert [each[2] for each in found["publishing"] + found["logs"]] == [0, 0]
    monkeypatch.setenv("MAINSTEM_MIRROR_LAG", "0")
    _, found = checks()
    [(text, hint, code)] = found["publishing"]
    assert ("1 versions of late" in text, "mirror_lag" in text, hint, code) == (True, True, "mainstem publish late", 75)
    (tmp_path / "late").rename(tmp_path / "away")
    assert shell.json("publish", "late")[0] == 2
    _, found = checks()
    [(text, hint, code)] = found["publishing"]
    assert ("attempt 1 failed" in text, "no folder" in text, hint, code) == (True, True, "mainstem publish late", 75)
    assert [each[2] for each in found["logs"]] == [2]
    (tmp_path / "away").rename(tmp_path / "late")
    late.publish()
    root = by_deltars(tmp_path / "t")
    lake.import_table(str(root), name="t")
    lake.table("t").cutover(in_commit_timestamps=False)
    by_deltars(root)
    by_deltars(root)
    code, found = checks()
    assert code == 3
    [(text, hint, code)] = found["logs"]
    assert ("delta-rs" in text, "version 2 to 3 of t" in text, hint, code) == (True, True, "mainstem resolve t", 3)


def test_a_command_that_airflow_starts_names_its_run_in_the_commit(
    lake: Catalog, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.import_table(str(by_deltars(tmp_path / "t")), name="t")
    for name, value in (("DAG_ID", "adopt"), ("TASK_ID", "cutover"), ("DAG_RUN_ID", "r1"), ("TRY_NUMBER", "1")):
        monkeypatch.setenv(f"AIRFLOW_CTX_{name}", value)
    run = {"dag_id": "adopt", "task_id": "cutover", "run_id": "r1", "try_number": 1}
    assert shell.json("cutover", "t")[0] == 0
    monkeypatch.setenv("MAINSTEM_COMMIT_INFO", '{"airflow": "no"}')
    assert shell.json("rollback", "t")[0] == 0
    infos = [json.loads(entry.commit_info or "{}") for entry in lake.table("t").history(limit=2)]
    assert [info["airflow"] for info in infos] == ["no", run]
