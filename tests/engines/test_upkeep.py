"""The maintenance round: what must be done is done, what loses something only when asked for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from catalogs import change
from tables import add, create, log_files, paths, remove

from mainstem import Catalog, Table, UsageError, open_catalog
from mainstem.cli import main
from mainstem.upkeep import Maintained


@pytest.fixture
def table(catalog: Catalog, tmp_path: Path) -> Table:
    """Ten versions; the first six are a hundred days old."""
    table = create(catalog, tmp_path)
    for number in range(9):
        table.commit([add(f"f{number}")], operation="WRITE")
    table.commit([remove("f0")], operation="DELETE", read_version=9)
    old = datetime.now(UTC) - timedelta(days=100)
    for version in range(6):
        moment = old + timedelta(seconds=version)
        change(catalog, "UPDATE dl_table_versions SET committed_at = :at WHERE version = :version", at=moment,
               version=version)  # fmt: skip
    return table


def outcomes(done: Maintained) -> dict[str, str]:
    return {task.task: task.outcome for task in done.tasks}


def checkpoints(table: Table) -> list[Path]:
    return sorted((Path(table.location) / "_delta_log").glob("*.checkpoint.*"))


def test_without_being_asked_nothing_is_lost(table: Table) -> None:
    for file in checkpoints(table):
        file.unlink()
    done = table.maintain()
    assert outcomes(done) == {"publish": "nothing", "checkpoint": "done", "cleanup": "nothing"}
    assert [file.name[:20] for file in checkpoints(table)] == [f"{10:020d}"]
    assert (table.info().min_readable_version, log_files(table)) == (0, list(range(11)))
    assert outcomes(table.maintain())["checkpoint"] == "nothing"


def test_old_versions_expire_and_the_newest_of_them_stays(table: Table) -> None:
    done = table.maintain(expire_days=50)
    assert outcomes(done)["expire"] == "done"
    assert table.info().min_readable_version == 5
    assert paths(table) == {f"f{number}" for number in range(1, 9)}
    assert outcomes(table.maintain(expire_days=50))["expire"] == "nothing"


def test_a_tag_holds_what_would_expire_without_failing_the_round(catalog: Catalog, table: Table) -> None:
    change(catalog, "INSERT INTO dl_tags (name, created_at) VALUES ('eod', :now)", now=datetime.now(UTC))
    change(catalog, "INSERT INTO dl_tag_members (tag, table_id, version) VALUES ('eod', :table_id, 3)",
           table_id=table.info().table_id)  # fmt: skip
    assert table.maintain(expire_days=50).exit_code == 0
    assert table.info().min_readable_version == 3


def test_vacuum_is_part_of_the_round_when_asked_for(table: Table) -> None:
    import os

    file = Path(table.location) / "day=2026-11-18" / "left over.parquet"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"x")
    os.utime(file, (0, 0))
    table.maintain()
    assert file.exists()
    assert outcomes(table.maintain(vacuum=True))["vacuum"] == "done"
    assert not file.exists()
    with pytest.raises(UsageError, match="not asked for"):
        table.maintain(retention_hours=1)


def test_a_round_says_so_where_vacuum_would_have_to_keep_what_is_forgotten(table: Table) -> None:
    done = table.maintain(expire_days=50, vacuum=True, retention_hours=49 * 24)
    assert (outcomes(done)["expire"], done.exit_code) == ("done", 0)  # what removed them lately is still there
    table.expire(before_version=10)
    done = table.maintain(vacuum=True, retention_hours=49 * 24)
    assert (outcomes(done)["vacuum"], done.exit_code) == ("failed", UsageError.exit_code)
    assert "reaches back beyond version 10" in done.tasks[-1].said


def test_of_a_table_whose_log_leads_only_versions_expire(table: Table) -> None:
    table.rollback()
    before = log_files(table)
    done = table.maintain(expire_days=50, vacuum=True)
    assert outcomes(done) == {"expire": "done"}
    assert log_files(table) == before


def test_the_command_goes_round_all_tables_and_one_that_fails_holds_up_no_other(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        create(catalog, tmp_path, name=name)
    catalog.close()
    with open_catalog(catalog_uri, publish_on_commit=False) as slow:
        for name in ("a", "b"):
            slow.table(name).commit([add("f")], operation="WRITE")
    (tmp_path / "a").rename(tmp_path / "away")
    code = main(["maintain", "--all", "--catalog", catalog_uri, "--json"])
    rows = json.loads(capsys.readouterr().out)
    said = {row["name"]: {task["task"]: task["outcome"] for task in row["tasks"]} for row in rows}
    assert code != 0
    assert (said["a"]["publish"], said["b"]["publish"]) == ("failed", "done")
    (tmp_path / "away").rename(tmp_path / "a")
    assert main(["maintain", "a", "--catalog", catalog_uri]) == 0
    assert main(["maintain", "--catalog", catalog_uri]) == 2
