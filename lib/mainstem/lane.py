"""Work beside the caller's own: one piece after the other, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Self


class Lane:
    """Runs pieces of work in the order in which they are given; one runs, and no other waits.

    Giving the next one waits for the one before, and raises what that raised. Leaving the `with` block waits for the
    last one, also when the block failed: nothing goes on behind the caller's back.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mainstem-lane")
        self._running: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def do(self, work: Callable[[], None]) -> None:
        """Begin a piece of work, once the one before is done."""
        self._wait()
        self._running = self._pool.submit(copy_context().run, work)  # spans keep their parent

    def _wait(self) -> None:
        if self._running is not None:
            self._running.result()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if kind is None:
            self._wait()
