"""Idle connections kept for reuse.

Not psycopg_pool: it connects in background threads and hides why connecting fails (a wrong password ends as a
time-out half a minute later), and the embedded databases need the same reuse without threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mainstem.errors import EngineBusy


class Pool:
    """At most `size` connections at once; the one returned last is handed out first."""

    def __init__(self, connect: Callable[[], Any], usable: Callable[[Any], bool], *, size: int, wait: float) -> None:
        self._connect = connect
        self._usable = usable
        self._size = size
        self._wait = wait
        self._reset()

    def _reset(self) -> None:
        self._idle: list[Any] = []
        self._free = threading.BoundedSemaphore(self._size)
        self._pid = os.getpid()

    @property
    def idle(self) -> bool:
        """Whether a connection is at hand."""
        return self._pid == os.getpid() and bool(self._idle)

    @contextmanager
    def lease(self) -> Iterator[Any]:
        """A usable connection, given back at the end; a broken one is thrown away."""
        if self._pid != os.getpid():
            self._reset()  # after a fork the sockets belong to the parent: neither use nor close them
        free = self._free
        if not free.acquire(timeout=self._wait):
            raise EngineBusy(
                f"all {self._size} connections of this process were in use for {self._wait:g} s.",
                hint="Raise pool_size, or end the reads that hold them.",
            )
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                if self._usable(connection):
                    self._idle.append(connection)
                else:
                    connection.close()
        finally:
            free.release()

    def _take(self) -> Any:
        while self._idle:
            connection = self._idle.pop()
            if self._usable(connection):
                return connection
            connection.close()
        return self._connect()

    def close(self) -> None:
        """Close what is idle; connections in use close when they come back to a pool that is full or gone."""
        if self._pid != os.getpid():
            self._reset()
        while self._idle:
            self._idle.pop().close()
