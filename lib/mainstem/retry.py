"""A change made again on a new head after another one came first."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from mainstem import observe
from mainstem.errors import ConflictError, ForeignCommit, UsageError

T = TypeVar("T")
X = TypeVar("X")

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


def run_again(begin: Callable[[], AbstractContextManager[X]], change: Callable[[X], T], *, retries: int) -> T:
    """What `change` makes of a transaction that `begin` gives; after a conflict, of another one, up to `retries` times.

    Each time it reads the tables anew, after a growing, jittered wait. The last conflict is raised as it is.
    """
    if retries < 0:
        raise UsageError(f"retries is {retries}.", hint="Give 0 or more.")
    for attempt in range(retries + 1):
        try:
            with begin() as transaction:
                return change(transaction)
        except ForeignCommit:
            raise  # somebody has to decide: doing it again does not help
        except ConflictError as error:
            if attempt == retries:
                raise
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)
            observe.event("commit.again", attempt=attempt + 1, wait=round(wait, 3), error=error)
            time.sleep(wait)
    raise AssertionError("unreachable")
