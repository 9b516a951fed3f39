"""Executors in processes of their own (`local-cluster`): what they read and import is what the driver does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyspark
import pytest
from spark_cases import odd_commits, write_log

import mainstem

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def found(postgres_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What a cluster of two executors made of a log, in a catalog on Postgres and one on SQLite."""
    folder, schema = tmp_path_factory.mktemp("cluster"), f"test_{uuid4().hex[:12]}"
    log = write_log(folder / "log", odd_commits())
    uris = [f"{postgres_uri}?schema={schema}", f"sqlite:///{folder}/lake.db"]
    script = Path(__file__).with_name("on_cluster.py")
    done = subprocess.run(
        [sys.executable, str(script), str(log), *uris],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(mainstem.__file__).parents[1]),  # absolute: executors run in folders of their own
            "SPARK_HOME": str(home(folder / "spark")),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    yield json.loads(line.removeprefix("FOUND "))
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


def home(folder: Path) -> Path:
    """Spark as it is installed, in a place where a cluster's workers may write."""
    folder.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (folder / entry.name).symlink_to(entry)
    return folder


def test_the_tasks_run_in_two_executors(found: dict[str, Any]) -> None:
    assert found["master"] == "local-cluster[2,1,1024]"
    assert found["executors"] == 2
    assert len(found["outcomes"]) == 2


def test_executors_read_the_files_of_to_arrow(found: dict[str, Any]) -> None:
    for outcome in found["outcomes"]:
        assert outcome["files"] == {"spans": True, "replay": True}


def test_executors_import_the_drivers_rows_although_every_first_attempt_is_lost(found: dict[str, Any]) -> None:
    for outcome in found["outcomes"]:
        assert outcome["differ"] == []
        assert outcome["staging"] == []
        assert all(outcome["rows"].values())
