"""Leases: who reads a version, or writes files that no version names yet. Expiry and vacuum leave both alone.

A lease ends by its time when its holder is killed. Nobody is refused a commit because a lease has ended.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import uuid4

from mainstem import observe
from mainstem.errors import MainstemError
from mainstem.store import Queries, Store, as_utc

# One operation of Delta's may take hours, and nobody renews while it runs. Longer than it takes costs only disk.
STAGING = timedelta(hours=24)
READING = timedelta(hours=1)
LISTING = timedelta(minutes=15)  # of files by Spark, which reads the rows when the frame is used


@dataclass(slots=True)
class _Lease:
    store: Store
    lease_id: str
    created_at: datetime
    renew_at: float


class Leases:
    """The leases of one holder: one for each version that it reads or builds on, renewed when half of it is over.

    For `stage` a lease that cannot be had raises. A reader reads without one: its role may not be allowed to write, and
    where one process alone may write the database at a time, reading must not wait for that.
    """

    def __init__(
        self,
        purpose: Literal["read", "stage"],
        *,
        lasting: timedelta,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._purpose = purpose
        self._lasting = lasting
        self._clock = clock
        self._held: dict[tuple[str, int], _Lease] = {}
        self._lock = threading.Lock()

    def hold(self, store: Store, table_id: str, version: int) -> None:
        """Hold a version from now on, until `drop` or until the time is over. Nothing, if it is held for long yet."""
        if self._purpose == "read" and not store.engine.capabilities.many_processes:
            return
        with self._lock:
            known = self._held.get((table_id, version))
            if known is not None and self._clock() < known.renew_at:
                return
            try:
                self._held[table_id, version] = self._taken(store, table_id, version, known)
            except MainstemError as error:
                if self._purpose == "stage":
                    raise
                observe.event("lease.not_taken", level=30, table=table_id, version=version, reason=error)

    def _taken(self, store: Store, table_id: str, version: int, known: _Lease | None) -> _Lease:
        renew_at = self._clock() + self._lasting.total_seconds() / 2
        with store.writing() as queries:
            now = queries.now()
            lease_id, since = str(uuid4()), known.created_at if known else now
            if known is not None:
                queries.change("lease_drop", lease_id=known.lease_id)
            queries.change("leases_over", table_id=table_id, now=now)
            queries.change(
                "lease_insert", lease_id=lease_id, table_id=table_id, version=version, purpose=self._purpose,
                holder=f"process {os.getpid()} on {socket.gethostname()}", created_at=since,
                expires_at=now + self._lasting,
            )  # fmt: skip
        return _Lease(store, lease_id, since, renew_at)

    def drop(self, keys: Sequence[tuple[str, int]] | None = None) -> None:
        """Give these back, by table and version, or all. One that cannot be given back ends by its time."""
        with self._lock:
            wanted = list(self._held) if keys is None else [key for key in keys if key in self._held]
            gone = [self._held.pop(key) for key in wanted]
        if not gone:
            return
        try:
            with gone[0].store.writing() as queries:
                for lease in gone:
                    queries.change("lease_drop", lease_id=lease.lease_id)
        except MainstemError as error:
            observe.event("lease.not_dropped", level=30, leases=len(gone), reason=error)


def staging_since(queries: Queries, table_id: str) -> datetime | None:
    """When the oldest transaction began that may still write files of the table; None if there is none."""
    found = queries.scalar("staging_since", table_id=table_id)
    return None if found is None else as_utc(found)
