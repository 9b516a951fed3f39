"""Processes that do the same thing at the same moment, started once for all tests: an import takes a second."""

from __future__ import annotations

import multiprocessing
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

# Work gets the number of its worker and the barrier at which all of them wait before they begin.
Work = Callable[..., Any]


class Crew:
    """So many processes, each a fresh interpreter."""

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._gate = context.Barrier(size)  # gone with its last owner, before a process that starts has seen it
        self._pipes: list[Connection] = []
        self._processes = []
        for worker in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(worker, self._gate, theirs), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def do(self, work: Work, *args: object) -> list[Any]:
        """What each process has made of `work(worker, gate, *args)`. Raises if one of them failed."""
        for pipe in self._pipes:
            pipe.send((work, args))
        answers = [pipe.recv() for pipe in self._pipes]
        for failed, answer in answers:
            if failed:
                raise AssertionError(answer)
        return [answer for _, answer in answers]

    def dismiss(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def _serve(worker: int, gate: threading.Barrier, pipe: Connection) -> None:
    while (job := pipe.recv()) is not None:
        work, args = job
        try:
            pipe.send((False, work(worker, gate, *args)))
        except BaseException:
            gate.abort()  # the others must not wait for one who never comes
            pipe.send((True, traceback.format_exc()))
