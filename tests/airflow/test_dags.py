"""Run by `make airflow`: the DAGs of `jobs/airflow` in an Airflow of their own, for real, on a catalog in Postgres."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from catalogs import change
from deltalake import DeltaTable, write_deltalake

from mainstem import Catalog, open_catalog

pytestmark = pytest.mark.timeout(1800)  # a test starts several JVMs, perhaps on a machine that has other work

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
DAGS = ROOT / "jobs" / "airflow"
AIRFLOW = ROOT / ".venv-airflow" / "bin"
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
SPARK = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}


class Airflow:
    """An Airflow with a database of its own, whose tasks find Spark, the jobs and the catalog."""

    def __init__(self, home: Path, catalog: str) -> None:
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("MAINSTEM_", "AIRFLOW_"))},
            "PATH": f"{AIRFLOW}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(SPARK),
            "MAINSTEM_HOME": str(ROOT),
            "MAINSTEM_CATALOG": catalog,
        }

    def cli(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """One call of the command `airflow`."""
        return subprocess.run(
            [str(AIRFLOW / "airflow"), *arguments], env={**self.environment, **environment}, capture_output=True,
            text=True, timeout=300, check=False,
        )  # fmt: skip

    def start(self, script: str, *arguments: str, cwd: Path = ROOT, **environment: str) -> Script:
        """A script of this folder, in Airflow's environment."""
        command = [str(AIRFLOW / "python"), str(HERE / script), *arguments]
        return Script(command, {**self.environment, **environment}, cwd)

    def run(
        self, dag: str, conf: dict[str, Any] | None = None, *, cwd: Path = ROOT, **environment: str
    ) -> dict[str, Any]:
        """What came of one run of a DAG."""
        return self.start("run_dag.py", dag, json.dumps(conf or {}), cwd=cwd, **environment).result()


class Script:
    """A process and all that it says."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: Path) -> None:
        self._process = subprocess.Popen(
            command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._said.extend(self._process.stdout)

    @property
    def said(self) -> str:
        return "".join(self._said)

    def wait_for(self, words: str) -> None:
        """Return when it has said these words."""
        until = time.monotonic() + 240
        while words not in self.said:
            assert self._process.poll() is None, self.said[-5000:]
            assert time.monotonic() < until, self.said[-5000:]
            time.sleep(0.2)

    def result(self) -> dict[str, Any]:
        code = self._process.wait(timeout=540)
        self._reader.join()
        found = [line for line in self._said if line.startswith("CAME OF IT ")]
        assert (code, len(found)) == (0, 1), self.said[-8000:]
        came: dict[str, Any] = json.loads(found[0].removeprefix("CAME OF IT "))
        return {**came, "said": self.said}


@pytest.fixture(scope="module")
def uri(postgres_uri: str) -> Iterator[str]:
    schema = f"test_{uuid4().hex[:12]}"
    yield f"{postgres_uri}?schema={schema}"
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stays until the last test: they share a catalog, which goes on naming the tables in it."""
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory, uri: str) -> Airflow:
    assert AIRFLOW.is_dir(), "there is no Airflow yet: make airflow installs it."
    made = Airflow(tmp_path_factory.mktemp("airflow"), uri)
    done = made.cli("db", "migrate")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture
def catalog(uri: str) -> Iterator[Catalog]:
    """The catalog of all tests here; each has tables of its own."""
    with open_catalog(uri, publish_on_commit=False) as opened:
        opened.migrate()
        yield opened


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def test_every_dag_parses(airflow: Airflow) -> None:
    # Without --local it would only ask Airflow's database, which has parsed nothing yet.
    found = airflow.cli("dags", "list-import-errors", "--local")
    assert found.returncode == 0, found.stdout
    listed = airflow.cli("dags", "list", "--local", "--output", "json").stdout
    names = {each["dag_id"] for each in json.loads(listed[listed.index("[{") :])}
    assert names == {file.stem for file in DAGS.glob("*.py")}


def test_a_broken_dag_is_found(airflow: Airflow, tmp_path: Path) -> None:
    shutil.copytree(DAGS, tmp_path / "dags")
    broken = tmp_path / "dags" / "import_tables.py"
    broken.write_text(broken.read_text().replace("submit", "submitt"))
    found = airflow.cli("dags", "list-import-errors", "--local", AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path / "dags"))
    assert found.returncode == 1
    assert "import_tables.py" in found.stdout
    assert "submitt" in found.stdout


def test_a_dag_without_its_jobs_says_so(airflow: Airflow) -> None:
    found = airflow.cli("dags", "list-import-errors", "--local", MAINSTEM_HOME="/nowhere")
    assert found.returncode == 1
    assert "MAINSTEM_HOME" in found.stdout


def test_many_tables_are_imported_and_those_that_are_there_are_left_alone(
    airflow: Airflow, catalog: Catalog, tmp_path: Path
) -> None:
    wanted = {f"imported.t{number}": str(tmp_path / f"t{number}") for number in range(2)}
    for location in wanted.values():
        write_deltalake(location, rows(1, 2))
    done = airflow.run("import_tables", {"tables": wanted})
    assert (done["state"], len(done["tasks"])) == ("success", 3), done["said"][-8000:]
    assert {table.name for table in catalog.tables() if table.name.startswith("imported.")} == set(wanted)
    again = airflow.run("import_tables", {"tables": wanted})
    assert (again["state"], again["tasks"]["import_table[-1]"]) == ("success", "skipped")


def test_logs_are_followed_and_what_waits_is_published(airflow: Airflow, catalog: Catalog, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    write_deltalake(log, rows(1))
    catalog.import_table(log, name="kept.log")
    write_deltalake(log, rows(2), mode="append")
    ours = catalog.create_table("kept.ours", location=str(tmp_path / "ours"), schema=SCHEMA)
    assert ours.info().published_version == -1
    done = airflow.run("follow_and_publish")
    assert done["tasks"] == {"follow[-1]": "success", "publish[-1]": "success"}, done["said"][-8000:]
    assert catalog.table("kept.log").version == 1
    assert ours.info().published_version == 0
    assert DeltaTable(ours.location).version() == 0


class Webhook:
    """What was posted to it."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        posted = self.posted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing: what arrived is asserted."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/alert"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    hook = Webhook()
    yield hook
    hook.server.shutdown()


def expect_ids_up_to(largest: int, folder: Path) -> None:
    """A suite of the table's own, where the validation job finds it by the table's name."""
    expectation = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "id", "min_value": 1, "max_value": largest},
    }
    (folder / "conf" / "expectations").mkdir(parents=True, exist_ok=True)
    suite = {"name": "ids", "expectations": [expectation]}
    (folder / "conf" / "expectations" / "checked.t.json").write_text(json.dumps(suite))


def test_a_night_without_findings_leaves_a_tag_and_one_with_findings_an_alert(
    airflow: Airflow, catalog: Catalog, webhook: Webhook, tmp_path: Path
) -> None:
    def night() -> dict[str, Any]:
        return airflow.run("nightly_validation", cwd=tmp_path, MAINSTEM_ALERT_URL=webhook.url)

    location = str(tmp_path / "checked")
    write_deltalake(location, rows(1, 2, 3))
    table = catalog.import_table(location, name="checked.t")
    expect_ids_up_to(3, tmp_path)
    good = night()
    assert good["state"] == "success", good["said"][-8000:]
    [tag] = catalog.tags()
    assert (tag.name[:5], tag.versions["checked.t"], webhook.posted) == ("good-", 0, [])
    catalog.untag(tag.name)

    resize = "UPDATE dl_add_files SET size_bytes = size_bytes + :by WHERE table_id = :table_id"
    change(catalog, resize, by=1, table_id=table.table_id)
    differs = night()
    change(catalog, resize, by=-1, table_id=table.table_id)
    expect_ids_up_to(2, tmp_path)
    refused = night()
    for bad, alert in zip((differs, refused), webhook.posted, strict=True):
        assert (bad["state"], bad["tasks"]["validate[-1]"]) == ("failed", "failed")
        run = {"dag_id": "nightly_validation", "task_id": "validate", "run_id": bad["run_id"], "try_number": 1}
        assert alert["airflow"] == {**run, "map_index": -1}
        assert alert["text"].startswith("nightly_validation.validate failed")
        assert "Error code is: 4" in alert["text"]
    assert catalog.tags() == []


def test_a_load_waits_for_a_version_and_its_commit_names_the_run(
    airflow: Airflow, catalog: Catalog, tmp_path: Path
) -> None:
    upstream = str(tmp_path / "upstream")
    write_deltalake(upstream, rows(1))
    catalog.import_table(upstream, name="loads.upstream")
    into = catalog.create_table("loads.into", location=str(tmp_path / "into"), schema=SCHEMA)
    pq.write_table(rows(7, 8), tmp_path / "new.parquet")
    conf = {
        "after": "loads.upstream",
        "version": 1,
        "into": "loads.into",
        "source": str(tmp_path / "new.parquet"),
    }
    waiting = airflow.start("run_dag.py", "load_when_published", json.dumps(conf))
    waiting.wait_for("running trigger in line")
    time.sleep(1)
    assert into.version == 0
    write_deltalake(upstream, rows(2), mode="append")
    catalog.table("loads.upstream").follow()
    done = waiting.result()
    assert done["state"] == "success", done["said"][-8000:]
    assert into.version == 1
    run = {"dag_id": "load_when_published", "task_id": "append", "run_id": done["run_id"], "try_number": 1}
    assert json.loads(into.history(limit=1)[0].commit_info or "{}")["airflow"] == {**run, "map_index": -1}
    assert DeltaTable(into.location).history(1)[0]["airflow"]["dag_id"] == "load_when_published"

    again = airflow.run("load_when_published", conf)
    assert again["state"] == "success"
    assert into.version == 1


def test_what_airflow_stores_of_a_trigger_holds_no_password(airflow: Airflow, catalog: Catalog, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "s", rows(1))
    catalog.import_table(str(tmp_path / "s"), name="loads.stored")
    address = catalog.uri
    assert address.password is not None
    secret = address.password.reveal()
    connection = {
        "conn_type": "postgres", "host": address.host, "port": address.port, "login": address.user,
        "password": secret, "schema": address.database, "extra": {"schema": address.schema},
    }  # fmt: skip
    both = {"LAKE": airflow.environment["MAINSTEM_CATALOG"], "AIRFLOW_CONN_LAKE": json.dumps(connection)}
    found = airflow.start("stored_triggers.py", "loads.stored", "0", **both).result()
    for way in ("by environment", "by variable", "by connection", "another state"):
        text, event = found[way]
        assert event == {"version": 0}, way
        assert secret not in text
    assert "no table nobody" in found["no such table"]
    assert "stored in Airflow's database" in found["trigger with a password"]
    assert "s3cret" not in found["trigger with a password"]
    assert "exclude each other" in found["both places"]
