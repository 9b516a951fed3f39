"""Over Spark Connect: a client without py4j and without Java gets the same from every engine."""

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
import pytest
from spark_cases import odd_commits, write_log

import mainstem

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
ENV = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(Path(mainstem.__file__).parents[1])}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The port of a Connect server in a process of its own."""
    folder = tmp_path_factory.mktemp("server")
    with (folder / "stderr").open("w+") as complaints:
        server = subprocess.Popen(
            [sys.executable, str(HERE / "connect_server.py")],
            env=ENV,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        assert server.stdout is not None
        said = next((line for line in server.stdout if line.startswith("PORT ")), None)
        assert said is not None, (folder / "stderr").read_text()[-5000:]
        yield said.split()[1]
        server.communicate(timeout=60)  # the end of its input is its end


@pytest.fixture(scope="module")
def found(port: str, postgres_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What a client got, with catalogs on the three engines."""
    folder, schema = tmp_path_factory.mktemp("connect"), f"test_{uuid4().hex[:12]}"
    log = write_log(folder / "log", odd_commits())
    uris = [f"{postgres_uri}?schema={schema}", f"sqlite:///{folder}/lake.db", f"duckdb:///{folder}/lake.duckdb"]
    done = subprocess.run(
        [sys.executable, str(HERE / "over_connect.py"), port, str(log), str(folder / "delta"), *uris],
        env={**ENV, "JAVA_HOME": str(folder / "no-java-here")},
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


def test_the_client_never_reached_for_java(found: dict[str, Any]) -> None:
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["gateway"] is False
    assert len(found["outcomes"]) == 3


def test_files_are_those_of_to_arrow(found: dict[str, Any]) -> None:
    for outcome in found["outcomes"]:
        assert len(outcome["files"]) == 8
        assert all(outcome["files"].values()), outcome["files"]


def test_an_import_is_compared_with_delta(found: dict[str, Any]) -> None:
    assert [outcome["live"] for outcome in found["outcomes"]] == [found["live"]] * 3
    assert "import.not_compared" not in found["events"]


def test_executors_import_the_drivers_rows(found: dict[str, Any]) -> None:
    assert [outcome["differ"] for outcome in found["outcomes"]] == [[], [], []]


def test_a_schema_is_sparks(found: dict[str, Any]) -> None:
    assert [outcome["schema"] for outcome in found["outcomes"]] == [True, True, True]


def test_rows_are_read_written_and_merged_and_nothing_stays_behind(found: dict[str, Any]) -> None:
    expected = [[0, "a"], [1, "a"], [2, "a"], [4, "a"], [5, "m"], [6, "m"]]
    assert (found["data"]["rows"], found["data"]["published"], found["data"]["first"]) == (expected, True, 2)
    assert found["data"]["history"] == ["MERGE", "DELETE", "WRITE", "CREATE TABLE"]
    assert found["left"] == []


def test_every_other_operation_works_but_a_stream_cannot_take_a_catalog_along(found: dict[str, Any]) -> None:
    data = found["data"]
    assert (data["ids"], data["restored"]) == ([0, 5, 9], 6)
    assert data["changes"] > 0
    assert data["stream"] is not None
