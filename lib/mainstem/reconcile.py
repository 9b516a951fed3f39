"""Everything that waits for publishing, on its way again: what a crash left, and what a store refused before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mainstem import observe
from mainstem.errors import EngineBusy, ForeignCommit, MainstemError, told
from mainstem.publish import Lag, lags, publish
from mainstem.store import Store

_FIRST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What came of one table: `published` up to `version`, `failed`, or `postponed` for `wait` more seconds.

    `versions` are those that were published, or that still wait. `exit_code` is 0 where nothing is left to do.
    """

    name: str
    outcome: Literal["published", "failed", "postponed"]
    versions: int
    version: int | None = None
    wait: float = 0.0
    error: str | None = None
    hint: str | None = None
    exit_code: int = 0


def reconcile(store: Store, *, progress: Callable[[int, int], None] = lambda done, total: None) -> list[Reconciled]:
    """Publish what waits in every table, the longest waiting first. One that fails does not hold up the others.

    A table whose last attempt failed is left alone until a wait has passed that doubles with each attempt, up to the
    setting `publish_backoff`. Any number of these may run at once, and be killed anywhere.
    """
    found = lags(store)
    done = []
    with observe.span("reconcile", tables=len(found)):
        for place, lag in enumerate(found, start=1):
            done.append(_reconciled(store, lag))
            progress(place, len(found))
    return done


def patience(lag: Lag, *, longest: float) -> float:
    """How many more seconds a table is left alone: nothing, unless its last attempt failed."""
    if lag.status != "FAILED":
        return 0.0
    wait = _FIRST_WAIT * 2.0 ** min(lag.attempts - 1, 30)  # 2**30 is beyond any setting
    return max(0.0, min(longest, wait) - lag.idle)


def _reconciled(store: Store, lag: Lag) -> Reconciled:
    wait = patience(lag, longest=store.engine.settings.publish_backoff)
    if wait > 0:
        observe.event("publish.postponed", table=lag.name, attempts=lag.attempts, wait=round(wait, 1))
        foreign = lag.foreign_version is not None
        hint = f"Decide by: mainstem resolve {lag.name}" if foreign else f"Now by: mainstem publish {lag.name}"
        code = (ForeignCommit if foreign else EngineBusy).exit_code
        return Reconciled(
            lag.name, "postponed", lag.versions, wait=wait, error=lag.last_error, hint=hint, exit_code=code
        )
    try:
        done = publish(store, lag.name)
    except MainstemError as error:
        return Reconciled(
            lag.name, "failed", lag.versions, error=error.message, hint=error.hint, exit_code=error.exit_code
        )
    except Exception as error:  # noqa: BLE001  whatever it is, the other tables wait for their turn
        observe.event("publish.failed", level=30, table=lag.name, error=told(error))
        return Reconciled(lag.name, "failed", lag.versions, error=told(error), exit_code=MainstemError.exit_code)
    return Reconciled(lag.name, "published", done.version - done.from_version, version=done.version)
