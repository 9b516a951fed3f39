"""The checkpoints that are due after commits: those of a large table by Spark, where the catalog has a session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tables import add, create, remove

from mainstem import Catalog, open_catalog
from mainstem.cli import main

pytestmark = pytest.mark.spark

PART = re.compile(r"\d{20}\.checkpoint\.\d{10}\.0000000002\.parquet")
V2 = {"delta__checkpointPolicy": "v2", "delta__feature__v2Checkpoint": "supported"}


@pytest.fixture(autouse=True)
def _few_files_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSTEM_CHECKPOINT_FILES", "3")
    monkeypatch.setenv("MAINSTEM_JDBC_SLICES", "2")


def grow(catalog: Catalog, folder: Path, **properties: str) -> Path:
    """Version 4 of a table, with six files; every fourth one has a checkpoint. Its log."""
    table = create(catalog, folder, delta__checkpointInterval="4", **properties)
    table.commit([add(name) for name in "abcd"], operation="WRITE")
    table.commit([remove("a")], operation="DELETE", read_version=1)
    table.commit([add(name) for name in "efg"], operation="WRITE")
    table.commit([remove("g")], operation="DELETE", read_version=3)
    return Path(table.location) / "_delta_log"


def checkpoints(log: Path) -> list[str]:
    return sorted(file.name for file in log.glob("*.checkpoint.*"))


def seen_by_delta(log: Path, spark: SparkSession) -> set[str]:
    """The live files as Delta finds them in the checkpoint: of the commits it is left the last one."""
    for file in sorted(log.glob("*.json"))[:4]:
        assert "checkpoint" not in file.name
        file.unlink()
    return {Path(file).stem for file in spark.read.format("delta").load(str(log.parent)).inputFiles()}


def require_from_spark(files: list[Path]) -> None:
    writers = {pq.read_metadata(file).created_by.split()[0] for file in files}
    assert writers == {"parquet-mr"}


def require_written_by_spark(log: Path, spark: SparkSession, policy: str) -> None:
    if policy == "classic":
        assert len(checkpoints(log)) == 2
        assert all(PART.fullmatch(name) for name in checkpoints(log))
        assert json.loads((log / "_last_checkpoint").read_bytes())["parts"] == 2
        require_from_spark(list(log.glob("*.parquet")))
    else:
        [name] = checkpoints(log)
        assert name.endswith(".json")
        require_from_spark(list((log / "_sidecars").iterdir()))
    assert seen_by_delta(log, spark) == set("bcdef")


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_the_catalogs_session_writes_the_checkpoint_after_a_commit(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, spark: SparkSession, policy: str
) -> None:
    catalog.close()
    with open_catalog(catalog_uri, spark=spark) as opened:
        log = grow(opened, tmp_path, **(V2 if policy == "v2" else {}))
    require_written_by_spark(log, spark, policy)


@pytest.mark.parametrize("command", ["publish", "maintain"])
def test_a_job_writes_the_checkpoint_by_its_session(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, spark: SparkSession, command: str
) -> None:
    catalog.close()
    with open_catalog(catalog_uri, publish_on_commit=command == "maintain") as opened:
        log = grow(opened, tmp_path)
    for file in log.glob("*checkpoint*"):  # the driver's own: publishing may have failed to write it
        file.unlink()
    assert main([command, "sales.orders", "--catalog", catalog_uri], job=True, spark=spark) == 0
    require_written_by_spark(log, spark, "classic")


def test_without_a_session_none_is_looked_for(
    catalog: Catalog, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("somebody asked for a session")

    monkeypatch.setattr(SparkSession, "getActiveSession", refuse)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)
    log = grow(catalog, tmp_path)
    monkeypatch.undo()
    assert checkpoints(log) == [f"{4:020d}.checkpoint.parquet"]
    assert seen_by_delta(log, spark) == set("bcdef")


def test_a_session_that_cannot_do_it_leaves_the_checkpoint_to_this_process(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.close()
    stopped: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default=None: default))
    with open_catalog(catalog_uri, spark=stopped) as opened:
        log = grow(opened, tmp_path)
    assert checkpoints(log) == [f"{4:020d}.checkpoint.parquet"]
    assert "checkpoint.not_by_spark" in caplog.text
