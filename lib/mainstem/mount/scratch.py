"""Where scratch logs live, and how those that a crash has left are swept."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from mainstem import observe
from mainstem.errors import UsageError
from mainstem.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OWNER = "owner"
_HINT = "Set spark.mainstem.scratch to a folder that this process and all executors can write."
# Hadoop's viewfs makes a URI of a link's target without encoding it, and fails on what a URI cannot hold.
_UNLINKABLE = re.compile(r'[\x00-\x20"#%<>?\[\\\]^`{|}\x7f]')
_swept: set[Path] = set()
_sweeping = threading.Lock()


def new_folder(settings: Settings, spark: SparkSession) -> Path:
    """An empty folder for one mount. It says which process it belongs to, so that others know when it is left over.

    The first one of a process sweeps what dead ones have left in the same place.
    """
    _require_seen_by_executors(settings, spark)
    home = _home(settings)
    if odd := _UNLINKABLE.search(str(home)):
        raise UsageError(
            f"the scratch folder {home} cannot be used: no log can be mounted from a path with {odd[0]!r}.",
            hint="Set spark.mainstem.scratch to a path without blanks, %, # and the like. Tables may have them.",
            scratch=str(home),
        )
    try:
        home.mkdir(parents=True, exist_ok=True)
        folder = home / uuid4().hex
        folder.mkdir()
        (folder / _OWNER).write_text(f"{os.getpid()} {_started(os.getpid())} {_machine()}")
        (folder / "table" / "_delta_log").mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"the scratch folder {home} cannot be used: {error.strerror or error}.", hint=_HINT, scratch=str(home)
        ) from error
    with _sweeping:
        if home not in _swept:
            _swept.add(home)
            sweep(settings)
    return folder


def drop_folder(folder: Path) -> None:
    """Remove a mount's folder; what is gone already is gone."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep(settings: Settings) -> int:
    """Remove the folders of processes of this machine that are no more; how many they were."""
    home, swept = _home(settings), 0
    if not home.is_dir():
        return 0
    for folder in home.iterdir():
        try:
            pid, started, machine = (folder / _OWNER).read_text().split(maxsplit=2)
            left = machine == _machine() and _started(int(pid)) != started
        except (OSError, ValueError):
            continue  # somebody is just making it, or it is none of ours
        if left:
            drop_folder(folder)
            swept += 1
    if swept:
        observe.event("mount.swept", folders=swept, scratch=str(home))
    return swept


def _home(settings: Settings) -> Path:
    # A folder a user: what one has made, another may not be allowed to write.
    return Path(settings.scratch or tempfile.gettempdir()).absolute() / f"mainstem-mounts-{os.getuid()}"


def _require_seen_by_executors(settings: Settings, spark: SparkSession) -> None:
    """On a cluster the system's own folder is another one on every machine: a job would look for files in vain."""
    master = spark.conf.get("spark.master", None) or "local"
    if settings.scratch is None and not master.startswith("local"):
        raise UsageError(
            f"this session runs on a cluster ({master}), and no scratch folder is set that its executors see.",
            hint=_HINT,
        )


def _machine() -> str:
    """Where a process id means something: this machine, or this container of it."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    """When a process began, as the system counts it; a process id alone may belong to another one by now."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        pass
    try:
        os.kill(pid, 0)  # without /proc only this is known: it lives, or it does not
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        pass
    return "running"
