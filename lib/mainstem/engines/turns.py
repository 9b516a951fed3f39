"""One at a time: among the threads of a process by a lock, among processes by a lock on a file."""

from __future__ import annotations

import fcntl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST_POLL = 0.01
_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def thread_turn(key: str, *, patience: float) -> Iterator[None]:
    """One thread of this process at a time, unless that takes too long."""
    lock = _locks[key]
    mine = lock.acquire(timeout=patience)
    try:
        yield
    finally:
        if mine:
            lock.release()


@contextmanager
def file_turn(path: Path, *, patience: float) -> Iterator[None]:
    """One process at a time, unless that takes too long. The file stays: who deletes it lets two in at once."""
    deadline, wait = time.monotonic() + patience, 0.001
    with path.open("ab") as file:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(wait)
                wait = min(wait * 1.5, _LONGEST_POLL)
        yield  # closing the file gives the lock back
