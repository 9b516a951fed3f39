"""Where scratch logs live, and how those that a crash has left are swept."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from mainstem import observe
from mainstem.errors import UsageError
from mainstem.mount.folder import Folder
from mainstem.session import is_spark_error
from mainstem.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OWNER = "owner"
_ELSEWHERE = "elsewhere"
_HINT = (
    "Set spark.mainstem.scratch to a folder, or a URI of an object store, that this process and executors can write."
)
# Hadoop's viewfs makes a URI of a link's target without encoding it, and fails on what a URI cannot hold.
_UNLINKABLE = re.compile(r'[\x00-\x20"#%<>?\[\\\]^`{|}\x7f]')
_swept: set[str] = set()
_sweeping = threading.Lock()


def new_folder(settings: Settings, spark: SparkSession) -> Folder:
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
        with _sweeping:
            if str(home) not in _swept:
                _require_seen(home, spark)
                sweep(settings)
                _swept.add(str(home))
        folder = (home / uuid4().hex).make()
        folder.write(_OWNER, f"{os.getpid()} {_started(os.getpid())} {_machine()}")
    except OSError as error:
        raise UsageError(
            f"the scratch folder {home} cannot be used: {error.strerror or error}.", hint=_HINT, scratch=str(home)
        ) from error
    return folder


def remember_log(folder: Folder, log: Folder) -> None:
    """Let a mount's folder name a log that is elsewhere, so that whoever sweeps the one sweeps the other."""
    folder.write(_ELSEWHERE, str(log))


def drop_folder(folder: Folder) -> None:
    """Remove a mount's folder, and the log that it names if that is elsewhere; what is gone already is gone.

    Data beside such a log stays: it is the table's, or will be taken by its vacuum.
    """
    try:
        place = folder.read(_ELSEWHERE)
    except OSError:
        place = ""
    if place:
        log = Folder(Path(place)) if place.startswith("/") else Folder(place)
        log.drop()
        if log.local is not None:
            Folder(log.local.parent).drop_if_empty()
    folder.drop()


def sweep(settings: Settings) -> int:
    """Remove the folders of processes of this machine that are no more; how many they were."""
    home, swept = _home(settings), 0
    for name in home.folders():
        try:
            pid, started, machine = (home / name).read(_OWNER).split(maxsplit=2)
            left = machine == _machine() and _started(int(pid)) != started
        except (OSError, ValueError):
            continue  # somebody is just making it, or it is none of ours
        if left:
            drop_folder(home / name)
            swept += 1
    if swept:
        observe.event("mount.swept", folders=swept, scratch=str(home))
    return swept


def _home(settings: Settings) -> Folder:
    # A folder a user: what one has made, another may not be allowed to write.
    name, given = f"mainstem-mounts-{os.getuid()}", settings.scratch
    if isinstance(given, str):
        return Folder(given) / name
    return Folder(Path(given or tempfile.gettempdir()).absolute() / name)


def _require_seen_by_executors(settings: Settings, spark: SparkSession) -> None:
    """On a cluster the system's own folder is another one on every machine: a job would look for files in vain."""
    master = spark.conf.get("spark.master", None) or "local"
    if settings.scratch is None and not master.startswith("local"):
        raise UsageError(
            f"this session runs on a cluster ({master}), and no scratch folder is set that its executors see.",
            hint=_HINT,
        )


def _require_seen(home: Folder, spark: SparkSession) -> None:
    """Let an executor read what this process has written, where the two may be on different machines."""
    master = spark.conf.get("spark.master", None) or "local"
    if master.startswith("local") and not type(spark).__module__.startswith("pyspark.sql.connect"):
        return
    probe = (home / f"probe-{uuid4().hex}").make()
    try:
        probe.write("seen", "by all")
        found = spark.read.text(f"{probe.location.hadoop_path}/seen").collect()
        assert [row.value for row in found] == ["by all"]
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise UsageError(
            f"the scratch folder {home} cannot be used: Spark ({master}) does not see what this process writes there.",
            hint=_HINT,
            scratch=str(home),
        ) from error
    finally:
        probe.drop()


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
