"""What proposals have become, and on which terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from mainstem.errors import UsageError
from mainstem.proposal import Proposal
from mainstem.store import Queries


class NameTaken(UsageError):
    """Another table got the name while this one was made."""


# Between the token of a transaction and the place of one of its commits. No token that a user gives has it.
_INNER = "\x1f"


class Entry(NamedTuple):
    """One version that was written: its number, its time, the bytes of its commit file, its token and its group.

    One that an earlier call has written has no bytes here; if it has expired, its time is that of the oldest version
    that is left, and its token and group are not known any more.
    """

    version: int
    committed_at: datetime
    data: bytes
    txn_id: str | None
    group_id: str | None


@dataclass(frozen=True, slots=True)
class Ratified:
    """What a proposal has become. `repeated` says that an earlier call with the same token had done it already."""

    name: str
    table_id: str
    location: str
    published_version: int
    entries: tuple[Entry, ...]
    repeated: bool = False

    @classmethod
    def of(
        cls, proposal: Proposal, published_version: int, entries: tuple[Entry, ...], *, repeated: bool = False
    ) -> Ratified:
        """What this proposal has become."""
        table = proposal.table
        return cls(table.name, table.table_id, table.location, published_version, entries, repeated)


# What else belongs to the same step; it gets what was ratified and says what that has become.
Alongside = Callable[[Queries, Sequence[Ratified]], Sequence[Ratified]]


def nothing_else(queries: Queries, done: Sequence[Ratified]) -> Sequence[Ratified]:
    """A commit and no more."""
    return done


@dataclass(frozen=True, slots=True)
class Terms:
    """What all commits of one transaction share."""

    token: str
    group_id: str | None = None
    authority: str = "catalog"  # who must lead every table; a cut-over wants `log`
    most_unpublished: int | None = None
    publishing: bool = False  # whether the caller publishes right afterwards
    alongside: Alongside = nothing_else

    def token_of(self, place: int, commits: int) -> str:
        """The token of the first commit of so many to a table, the second, …: each version has one of its own.

        The last has the transaction's: versions expire from the oldest on, and it says longest that all were done.
        """
        return self.token if place == commits else f"{self.token}{_INNER}{place}"


def transaction_of(token: str) -> str:
    """The token of the transaction that has given this one to a version."""
    return token.partition(_INNER)[0]
