"""One version of one table into its rows: what a commit in the log, or a commit of ours, becomes in the catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, NamedTuple

from mainstem.engines import Change, Rows
from mainstem.model import Action, CommitInfo
from mainstem.rows import ADDS, DOMAINS, TXNS, VERSION_COLUMNS, Shape
from mainstem.spans import Closing, Row, grouped, touched, version_rows
from mainstem.store import Queries, as_utc, statement_of_keys

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A statement names so many keys at most; a shorter list repeats its last key, so that few texts are ever prepared.
_KEYS_PER_STATEMENT = (1, 8, 64, 500)
_CLOSE = {"dl_add_files": "close_adds", "dl_txn_actions": "close_txns", "dl_domain_metadata": "close_domains"}
_ENDED = {"dl_add_files": "ended_adds", "dl_txn_actions": "ended_txns", "dl_domain_metadata": "ended_domains"}

Kind = Literal["commit", "checkpoint"]


@dataclass(frozen=True, slots=True)
class Version:
    """What is known of a version beside its actions."""

    version: int
    committed_at: datetime
    kind: Kind = "commit"
    info: CommitInfo | None = None
    txn_id: str | None = None
    group_id: str | None = None
    content_sha256: str | None = None

    def row(self, table_id: str) -> Row:
        """Its row in `dl_table_versions`, in the order of `VERSION_COLUMNS`."""
        info = self.info
        return [
            table_id,
            self.version,
            self.committed_at,
            self.kind,
            (info.user_name or info.engine_info) if info else None,
            info.operation if info else None,
            info.operation_params if info else None,
            info.body if info else None,
            self.txn_id,
            self.group_id,
            self.content_sha256,
        ]


class Appended(NamedTuple):
    """How many live files a version's removes have ended, and how many rows each change beside it has touched."""

    ended: int
    besides: Sequence[int]


def from_millis(millis: int) -> datetime:
    """A moment that Delta gives in milliseconds since 1970."""
    return _EPOCH + timedelta(milliseconds=millis)


def to_millis(moment: datetime | str) -> int:
    """The other way round."""
    return (as_utc(moment) - _EPOCH) // timedelta(milliseconds=1)


class VersionRows:
    """The rows of a version that is to be the next one, made from its actions."""

    def __init__(self, table_id: str, version: int, actions: Collection[Action]) -> None:
        by_kind = grouped(actions)
        self._table_id, self._version = table_id, version
        self._keys = touched(by_kind)
        self._rows = version_rows(table_id, version, actions, by_kind, self._keys)
        self._many = len(self._keys.added) + len(self._keys.removed) > _KEYS_PER_STATEMENT[-1]
        self._sent = self._ends = False

    def send_many(self, queries: Queries) -> None:
        """Write the rows of a large version already, before it is known what there is to say of the version itself."""
        if self._many and not self._sent:
            # A table's first load has nothing to end, and is mostly the largest: 130 ms for 100,000 adds on Postgres.
            self._ends = queries.row("any_live", table_id=self._table_id) is not None
            write_rows(queries, self._rows)
            self._sent = True

    def append(self, queries: Queries, version: Version, *, besides: Sequence[Change] = ()) -> Appended:
        """Write the version, what is not written yet, and close the spans that it ends.

        The head is the caller's to move: what it changes `besides`, and builds on none of this, goes the same way.
        """
        self.send_many(queries)
        keys, bounds = self._keys, {"table_id": self._table_id, "version": self._version}
        ends = [] if self._many else self._closings(ADDS, keys.removed)
        others = [] if self._many else self._closings(ADDS, keys.added - keys.removed)
        others += self._closings(TXNS, keys.applications) + self._closings(DOMAINS, keys.domains)
        rows = [Rows(shape.table, shape.all_columns, [*found]) for shape, found in self._rows]
        rows.append(Rows("dl_table_versions", VERSION_COLUMNS, [version.row(self._table_id)]))
        counts = queries.together([*ends, *others, *rows, *besides])
        ended = sum(counts[: len(ends)])
        if self._sent and self._ends:  # the keys are in the database by now
            ended = queries.change("close_removed", **bounds) if keys.removed else 0
            queries.change("close_added", **bounds)
        return Appended(ended, counts[len(counts) - len(besides) :])

    def _closings(self, shape: Shape, keys: Collection[bytes]) -> list[Change]:
        return _closings(shape.table, self._table_id, self._version, keys)


def write_versions(queries: Queries, table_id: str, versions: Iterable[Version]) -> None:
    """Write the rows of versions, without their actions."""
    queries.copy("dl_table_versions", VERSION_COLUMNS, (version.row(table_id) for version in versions))


def write_rows(queries: Queries, batch: Iterable[tuple[Shape, Iterable[Sequence[Any]]]]) -> None:
    """Write rows by table."""
    for shape, rows in batch:
        queries.copy(shape.table, shape.all_columns, rows)


def apply_closings(queries: Queries, table_id: str, closed: Iterable[tuple[Shape, list[Closing]]]) -> None:
    """Close the rows that were written before the version that ends them was seen."""
    for shape, closings in closed:
        queries.run("ended_create")
        queries.copy("dl_ended", ("version", "seq", "ended"), closings)
        queries.change(_ENDED[shape.table], table_id=table_id)
        queries.run("ended_drop")


def close_spans(queries: Queries, shape: Shape, table_id: str, version: int, keys: Collection[bytes]) -> int:
    """Let a version end what is open under these keys; how many rows that were."""
    return sum(queries.together(_closings(shape.table, table_id, version, keys))) if keys else 0


def _closings(table: str, table_id: str, version: int, keys: Collection[bytes]) -> list[Change]:
    return [
        statement_of_keys(_CLOSE[table], chunk, table_id=table_id, version=version)
        for chunk in key_chunks(sorted(keys))
    ]


def key_chunks(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The keys in pieces that a statement can name."""
    pending = iter(keys)
    while chunk := list(islice(pending, _KEYS_PER_STATEMENT[-1])):
        size = next(size for size in _KEYS_PER_STATEMENT if size >= len(chunk))
        yield chunk + chunk[-1:] * (size - len(chunk))
