"""Writers in processes of their own, which wait and then commit at the same moment: as the jobs of a lake do."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from mainstem.errors import MainstemError

# What a writer does: prepared, and then called once. It answers with how many commits it has made.
Work = Callable[..., AbstractContextManager[Callable[[], int]]]


class WriterFailed(MainstemError):
    """A writer of the benchmark raised; its traceback is the message."""

    code = "writer_failed"


class Crew:
    """So many processes, each a fresh interpreter that is started once: an import takes longer than a commit."""

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    @contextmanager
    def ready(self, work: Work, each: Sequence[tuple[Any, ...]]) -> Iterator[Callable[[], int]]:
        """As many writers as there are arguments, each with `work` prepared; the call lets them do it, and adds up."""
        pipes = self._pipes[: len(each)]
        for pipe, arguments in zip(pipes, each, strict=True):
            pipe.send((work, arguments))
        _answers(pipes)
        called: list[bool] = []

        def go() -> int:
            called.append(True)
            for pipe in pipes:
                pipe.send("go")
            return sum(_answers(pipes))

        try:
            yield go
        finally:
            if not called:
                for pipe in pipes:
                    pipe.send("leave it")
                _answers(pipes)

    def dismiss(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def _answers(pipes: Sequence[Connection]) -> list[Any]:
    found = [pipe.recv() for pipe in pipes]
    for failed, answer in found:
        if failed:
            raise WriterFailed(str(answer), hint="Please report this.")
    return [answer for _, answer in found]


def _serve(pipe: Connection) -> None:
    while (job := pipe.recv()) is not None:
        work, arguments = job
        try:
            with work(*arguments) as call:
                pipe.send((False, None))
                done = call() if pipe.recv() == "go" else 0
            pipe.send((False, done))
        except BaseException:  # noqa: BLE001  the parent raises it again
            pipe.send((True, traceback.format_exc()))
