"""The process that holds a throw-away Postgres: starts it, waits until its owner is gone, stops it, removes its folder.

It is a file of its own, and imports the standard library only, because it is run by path (`python -I -S`): it starts
in milliseconds and needs neither the package on its path nor anything that the package's `__init__` may load.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypedDict

HOST = "127.0.0.1"
USER = "postgres"
LOG = "server.log"
DEFAULTS = {"fsync": "off", "shared_buffers": "128MB", "max_connections": "100"}
_ATTEMPTS = 5
_INITDB_SECONDS = 120.0
_READY_SECONDS = 60.0
# Nothing of the caller's PG* or LC_* may leak in, and a given TZ spares initdb a search through all zone files.
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


class Request(TypedDict):
    """What the owner asks for, as one JSON line on standard input; so the password is on no command line."""

    owner: int
    binaries: str
    password: str
    settings: dict[str, str]


class LaunchFailed(Exception):
    """initdb or the server ended before the server could answer; the log says why."""


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def launch(request: Request, folder: Path, undo: ExitStack) -> int:
    """A server that accepts connections, all of it below `folder`; returns its port. `undo` stops it."""
    run_as = _account()
    if run_as:
        folder.chmod(0o711)  # the server's account passes through, but cannot plant links where root writes
    binaries = _reachable(Path(request["binaries"]), folder, run_as)
    data = folder / "data"
    data.mkdir(mode=0o700)
    password_file = folder / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(request["password"])
    _give((data, password_file), run_as)
    common = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": data, "env": _ENVIRONMENT, **run_as}
    initdb = [str(binaries / "initdb"), "-D", str(data), "-U", USER, f"--pwfile={password_file}"]
    initdb += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
    with (folder / LOG).open("wb") as log:
        done = subprocess.run(initdb, stdout=log, timeout=_INITDB_SECONDS, **common)
    password_file.unlink()
    if done.returncode:
        raise LaunchFailed(f"initdb ended with code {done.returncode}")
    # Another process may take the port before the server does. What the log then says is no one's promise, so any
    # early end is tried again on another port; a wrong setting fails as often, within a fraction of a second.
    for _ in range(_ATTEMPTS):
        port = free_port()
        fixed = {"listen_addresses": HOST, "port": str(port), "unix_socket_directories": "", "logging_collector": "off"}
        options = [f"--{name}={value}" for name, value in {**DEFAULTS, **request["settings"], **fixed}.items()]
        with (folder / LOG).open("wb") as log:
            server = subprocess.Popen([binaries / "postgres", "-D", data, *options], stdout=log, **common)
        undo.callback(_stop, server)
        if _becomes_ready(server, data):
            return port
    raise LaunchFailed(f"the server ended with code {server.returncode}")


def _account() -> dict[str, Any]:
    """Whom to run Postgres as, as arguments of subprocess: it refuses root, so root becomes nobody."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _give(paths: Iterable[Path], run_as: dict[str, Any]) -> None:
    for path in paths if run_as else ():
        os.chown(path, run_as["user"], run_as["group"], follow_symlinks=False)


def _reachable(binaries: Path, folder: Path, run_as: dict[str, Any]) -> Path:
    """The same binaries where the account can run them: in place, or copied below `folder`. No mode is changed."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **run_as}
    versions = [[str(binaries / name), "--version"] for name in ("initdb", "postgres")]
    with suppress(PermissionError):
        if all(subprocess.run(version, **quiet).returncode == 0 for version in versions):
            return binaries
    install, ignore = binaries.parent, shutil.ignore_patterns("include", "*.a")
    package = folder / "copy" / install.parent.name
    shutil.copytree(install, package / install.name, symlinks=True, ignore=ignore)
    libraries = install.parent.with_name(f"{install.parent.name}.libs")  # a wheel's libraries lie beside its package
    if libraries.is_dir():
        shutil.copytree(libraries, package.with_name(libraries.name), symlinks=True)
    _give((folder / "copy", *(folder / "copy").rglob("*")), run_as)
    return package / install.name / binaries.name


def _becomes_ready(server: subprocess.Popen[bytes], data: Path) -> bool:
    """True once connections are accepted, False if the server ended first."""
    deadline = time.monotonic() + _READY_SECONDS
    while server.poll() is None:
        # The eighth line of this file is what pg_ctl waits for too.
        with suppress(FileNotFoundError):
            if re.match(r"(?:.*\n){7}ready", (data / "postmaster.pid").read_text()):
                return True
        if time.monotonic() > deadline:
            raise LaunchFailed(f"the server was not ready within {_READY_SECONDS:.0f} s")
        time.sleep(0.01)
    return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGQUIT)  # "immediate": what it could still save is thrown away anyway
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _temporary_parent() -> Path:
    """Where the folder goes: the usual place, unless that lies below a folder that nobody cannot pass."""
    usual = Path(tempfile.gettempdir()).resolve()
    passable = os.geteuid() != 0 or all(path.stat().st_mode & 0o001 for path in (usual, *usual.parents))
    return usual if passable else Path("/tmp")


def main() -> None:
    """Serve one request, until the owner says so, closes its end, or is gone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.chdir("/")
    line = sys.stdin.buffer.readline()
    if not line:
        return
    request: Request = json.loads(line)
    with ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="mainstem-postgres-", dir=_temporary_parent()))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        reply: dict[str, Any]
        try:
            reply = {"port": launch(request, folder, undo), "directory": str(folder)}
        except (LaunchFailed, OSError, LookupError, subprocess.SubprocessError) as exc:
            log = folder / LOG
            tail = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
            reply = {"error": str(exc), "log": tail}
        with suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
        # A child forked by the owner inherits the pipe and may hold it open after the owner's death: hence the parent's
        # number is looked at too.
        while os.getppid() == request["owner"] and not select.select([0], [], [], 0.5)[0]:
            pass


if __name__ == "__main__":
    main()
