"""One Postgres and one Spark session for each process of the run; for every test a catalog of its own, on each engine.

`make test` has two processes, and gives each a file at a time: what a file makes once is made once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from pyspark.sql import SparkSession
from telemetry import Telemetry

from mainstem import Catalog, build_session, open_catalog
from mainstem.engines.postgres_server import PostgresServer, start_postgres_server

ENGINES = ("postgres", "sqlite", "duckdb")
_skipped_engines: list[str] = []


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test sees no MAINSTEM_* of the shell that runs it."""
    for name in [name for name in os.environ if name.startswith("MAINSTEM_") and name not in _FOR_TESTS]:
        monkeypatch.delenv(name)


_FOR_TESTS = {"MAINSTEM_TEST_POSTGRES", "MAINSTEM_CORPUS"}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of our own, whose log shows every statement."""
    server = start_postgres_server(settings={"log_statement": "all", "max_connections": "200"})
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_uri(request: pytest.FixtureRequest) -> str:
    """The database for this run: ours, or the one that MAINSTEM_TEST_POSTGRES names."""
    given = os.environ.get("MAINSTEM_TEST_POSTGRES")
    return given or request.getfixturevalue("postgres_server").uri()


@pytest.fixture(params=ENGINES)
def catalog_uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a catalog that does not exist yet, on each engine in turn."""
    if request.param != "postgres":
        yield f"{request.param}:///{tmp_path}/lake.{request.param}"
        return
    address = request.getfixturevalue("postgres_uri")
    schema = f"test_{uuid4().hex[:12]}"
    yield f"{address}?schema={schema}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a migrated catalog by its engine, made once: migrating DuckDB takes 0.7 s, a copy nothing."""
    folder = tmp_path_factory.mktemp("migrated")

    @cache
    def migrated(engine: str) -> Path:
        with open_catalog(f"{engine}:///{folder}/lake.{engine}") as opened:
            opened.migrate()
        return folder / f"lake.{engine}"

    return migrated


@pytest.fixture
def catalog(catalog_uri: str, migrated_file: Callable[[str], Path]) -> Iterator[Catalog]:
    """A migrated catalog, on each engine in turn."""
    with open_catalog(catalog_uri) as opened:
        if opened.engine.capabilities.file:
            shutil.copy(migrated_file(opened.engine.name), opened.uri.database)
        else:
            opened.migrate()
        yield opened


@pytest.fixture(scope="session")
def _telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def telemetry(_telemetry: Telemetry) -> Iterator[Telemetry]:
    """What this test makes the library tell."""
    _telemetry.spans.clear()
    _telemetry.listening = True
    yield _telemetry
    _telemetry.listening = False


# To compile a query costs more than so few rows can gain: a third of a test's time, measured.
_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of this process; small, because the machine is."""
    # It lives for as long as the run. `make test` spares JVMs of a minute the second compiler, which pays here.
    compilers = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"}
    session = build_session("mainstem tests", master="local[2]", **_FEW_ROWS, **compilers)
    yield session
    session.stop()


# Minutes each, by few tests: begun last, one of them would keep one process busy while the other has nothing to do.
_LONG = (
    "test_corpus.py", "test_validate_spark.py", "test_dml_matrix.py", "test_bench.py", "test_kills.py", "test_files.py",
    "test_connect.py", "test_pruned_mounts.py", "test_data_transactions.py", "test_appends.py", "test_cluster.py",
    "test_rebuild_oracle.py", "test_sparkload.py", "test_mount.py", "test_fence.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, in this order; the rest as it was collected."""
    items.sort(key=lambda item: _LONG.index(item.path.name) if item.path.name in _LONG else len(_LONG))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and any(f"[{engine}" in report.nodeid or f"-{engine}" in report.nodeid for engine in ENGINES):
        _skipped_engines.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped engine is a failed run: what was not tried does not hold."""
    if _skipped_engines:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in _skipped_engines:
        terminalreporter.write_line(f"a skipped engine fails the run: {name}", red=True)
