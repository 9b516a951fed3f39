"""A process that is killed in the middle of a commit: by itself, so that it is exactly where it should be."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from tables import add

import mainstem.checkpoint.upkeep as upkeep
import mainstem.committing as committing
from mainstem import open_catalog
from mainstem.deltalog.writing import LogWriter
from mainstem.publish import Publisher

# In the order in which a commit passes them.
POINTS = (
    "before the database commits",
    "after the database has committed",
    "before the file",
    "half-way through the file",
    "before the status",
    "during a checkpoint",
)
IN_PUBLISHING = POINTS[2:]


def commit_and_die(uri: str, names: Sequence[str], file: str, token: str, point: str) -> None:
    """Add a file to every table in one transaction, and be killed at the point; if every table has one, at the last."""
    PLACES[point](len(names))
    with open_catalog(uri) as catalog, catalog.transaction(txn_id=token) as changes:
        for name in names:
            changes.table(name).stage([add(file)], operation="WRITE")


def publish_and_die(uri: str, name: str, point: str) -> None:
    """Publish all that waits, and be killed at the point: of the files at the second, of the rest where it comes."""
    PLACES[point](2 if "file" in point else 1)
    with open_catalog(uri) as catalog:
        catalog.table(name).publish()


def die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def _before_commit(tables: int) -> None:
    ratify = committing.ratify

    def and_die(*args: Any) -> NoReturn:
        ratify(*args)
        die()

    committing.ratify = and_die


def _after_commit(tables: int) -> None:
    committing._published = die


def _at_file(die_at: Callable[[LogWriter, str, bytes], None]) -> Callable[[int], None]:
    def arrange(tables: int) -> None:
        create, left = LogWriter.create, tables

        def counting(self: LogWriter, name: str, data: bytes) -> bool:
            nonlocal left
            left -= 1
            if not left:
                die_at(self, name, data)
            return create(self, name, data)

        LogWriter.create = counting  # type: ignore[method-assign]

    return arrange


def _half(writer: LogWriter, name: str, data: bytes) -> None:
    """What obstore leaves behind on a disk: a part of the bytes under a name of its own."""
    assert writer.location.local is not None
    Path(writer.location.local, "_delta_log", f"{name}#1").write_bytes(data[: len(data) // 2])
    die()


def _before_status(tables: int) -> None:
    complete, left = Publisher._complete, tables

    def counting(self: Publisher, written: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            die()
        complete(self, written)

    Publisher._complete = counting  # type: ignore[method-assign]


def _during_checkpoint(tables: int) -> None:
    """The part is in the log, what points to it is not."""
    upkeep.due = lambda version, properties: True
    LogWriter.replace = die  # type: ignore[method-assign]


PLACES: dict[str, Callable[[int], None]] = dict(
    zip(
        POINTS,
        (_before_commit, _after_commit, _at_file(die), _at_file(_half), _before_status, _during_checkpoint),
        strict=True,
    )
)


class Victims:
    """Fresh interpreters that wait for what to die of. Some are always ready: an import takes longer than a commit.

    Not forked: pyarrow and duckdb have threads from their import on, and a fork leaves those behind.
    """

    def __init__(self, ready: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._ready = deque(self._start() for _ in range(ready))

    def _start(self) -> tuple[Any, Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_wait, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return process, ours

    def kill(self, uri: str, names: Sequence[str], file: str, token: str, point: str) -> int | None:
        """Let one commit and die; its exit code."""
        return self._exit_code(commit_and_die, uri, names, file, token, point)

    def kill_publisher(self, uri: str, name: str, point: str) -> int | None:
        """Let one publish and die; its exit code."""
        return self._exit_code(publish_and_die, uri, name, point)

    def _exit_code(self, work: Callable[..., None], *args: object) -> int | None:
        process, pipe = self._ready.popleft()
        self._ready.append(self._start())
        pipe.send((work, args))
        process.join()
        exit_code: int | None = process.exitcode
        return exit_code

    def dismiss(self) -> None:
        """Let those go that were spared."""
        for process, pipe in self._ready:
            pipe.send(None)
            process.join()


def _wait(pipe: Connection) -> None:
    if (job := pipe.recv()) is not None:
        work, args = job
        work(*args)
