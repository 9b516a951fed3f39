"""A change made again on a new head after another one came first."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from mainstem import observe
from mainstem.engines import EngineError, Outcome
from mainstem.errors import ConflictError, EngineBusy, ForeignCommit, MainstemError, UsageError
from mainstem.transaction import Transaction

T = TypeVar("T")
X = TypeVar("X", bound=Transaction)

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


def run_again(begin: Callable[[], AbstractContextManager[X]], change: Callable[[X], T], *, retries: int) -> T:
    """What `change` makes of a transaction that `begin` gives; if somebody else won, of another, up to `retries` times.

    They won by a conflict, or because the database gave them a lock that both waited for. Each time the tables are read
    anew, after a growing, jittered wait. The last error is raised as it is. What has committed already is never done
    again, nor is what may have.
    """
    if retries < 0:
        raise UsageError(f"retries is {retries}.", hint="Give 0 or more.")
    for attempt in range(retries + 1):
        transaction: X | None = None
        try:
            with begin() as transaction:
                return change(transaction)
        except (ConflictError, EngineBusy) as error:
            committed = transaction is not None and transaction.committed
            if attempt == retries or committed or not _lost(error):
                raise
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)
            observe.event("commit.again", attempt=attempt + 1, wait=round(wait, 3), error=error)
            time.sleep(wait)
    raise AssertionError("unreachable")


def _lost(error: MainstemError) -> bool:
    """Whether nothing was written because somebody else was first, so that doing it again may help."""
    if isinstance(error, ForeignCommit):
        return False  # somebody has to decide
    if isinstance(error, EngineBusy):
        # A database that did not answer was asked often enough: reconnect_attempts is the limit of that.
        cause = error.__cause__
        return isinstance(cause, EngineError) and cause.outcome is Outcome.BUSY
    return True
