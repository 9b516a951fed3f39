"""From a log in order to rows with their spans: which version ends which action. Pure: values in, values out.

An add lives until a later action removes or adds the same file; an application transaction or a domain until a later
action writes it again. Within one version the last action of a file counts, as Delta Spark reads a commit file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from mainstem.model import Action, AddFile, DomainMetadata, RemoveFile, Txn
from mainstem.rows import ADDS, BY_KIND, DOMAINS, TXNS, Shape

_VERSION, _END = 1, 2  # where version and removed_version or superseded_version stand in a row
_OPEN = {2: (), 3: (None,)}  # what a row says of its end while nothing has ended it, by how many keys it has


class Closing(NamedTuple):
    """A row that was handed out as open and is closed by a later version."""

    version: int
    seq: int
    ended: int


Row = list[Any]


class _Open:
    """The rows of one table that nothing has ended yet, by key: the row itself, or its place once it was handed out."""

    def __init__(self, shape: Shape, key: str) -> None:
        self.shape = shape
        self.key, self.seq = (len(shape.keys) + shape.columns.index(name) for name in (key, "seq"))
        self.rows: dict[bytes, Row | tuple[int, int]] = {}
        self.closings: list[Closing] = []

    def end(self, key: bytes, version: int) -> None:
        found = self.rows.pop(key, None)
        if type(found) is list:
            found[_END] = version
        elif found is not None:
            self.closings.append(Closing(found[0], found[1], version))

    def hand_out(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if self.rows.get(row[self.key]) is row:
                self.rows[row[self.key]] = (row[_VERSION], row[self.seq])


class SpanBook:
    """Takes actions in the order of their versions, hands out rows in batches, and remembers only what is still open.

    A row that ends while it is still in the batch leaves with its end filled in; one that left before is named in
    `closings`. Memory grows with the open rows and the batch, not with the length of the log.
    """

    def __init__(self, table_id: str) -> None:
        self._table_id = table_id
        self._adds = _Open(ADDS, "file_key")
        self._txns = _Open(TXNS, "app_key")
        self._domains = _Open(DOMAINS, "domain_key")
        self._rows: dict[str, list[Row]] = {}
        self.pending = 0

    def take(self, version: int, action: Action) -> None:
        """Add one action of a version. CommitInfo has no row here: it belongs to the version's own."""
        shape = BY_KIND.get(type(action))
        if shape is None:
            return
        row: Row = [self._table_id, version, *_OPEN[len(shape.keys)], *shape.values(action)]
        self._rows.setdefault(shape.table, []).append(row)
        self.pending += 1
        if type(action) is AddFile:
            self._adds.end(action.file_key, version)
            self._adds.rows[action.file_key] = row
        elif type(action) is RemoveFile:
            self._adds.end(action.file_key, version)
        elif type(action) is Txn:
            self._txns.end(action.app_key, version)
            self._txns.rows[action.app_key] = row
        elif type(action) is DomainMetadata:
            self._domains.end(action.app_key, version)
            self._domains.rows[action.app_key] = row

    def batch(self) -> Iterator[tuple[Shape, list[Row]]]:
        """Hand out all pending rows by table; from here on they can only be closed by name."""
        rows, self._rows, self.pending = self._rows, {}, 0
        for shape in BY_KIND.values():
            if shape.table in rows:
                yield shape, rows[shape.table]
        for live in (self._adds, self._txns, self._domains):
            live.hand_out(rows.get(live.shape.table, ()))

    def closings(self) -> Iterator[tuple[Shape, list[Closing]]]:
        """The rows handed out earlier that have ended since, by table."""
        for live in (self._adds, self._txns, self._domains):
            if live.closings:
                closed, live.closings = live.closings, []
                yield live.shape, closed

    def live_keys(self) -> Set[bytes]:
        """The keys of the files that are live after the last action."""
        return self._adds.rows.keys()


class Touched(NamedTuple):
    """The keys that the actions of one version name: whose open spans it ends."""

    added: set[bytes]
    removed: set[bytes]
    applications: set[bytes]
    domains: set[bytes]


def grouped(actions: Iterable[Action]) -> dict[type[Any], list[Any]]:
    """Actions by their kind, each kind in its order."""
    found: dict[type[Any], list[Any]] = {}
    for action in actions:
        found.setdefault(type(action), []).append(action)
    return found


def touched(by_kind: Mapping[type[Any], Sequence[Any]]) -> Touched:
    """The keys of every file, application and domain that the actions of a version name."""
    return Touched(
        {action.file_key for action in by_kind.get(AddFile, ())},
        {action.file_key for action in by_kind.get(RemoveFile, ())},
        {action.app_key for action in by_kind.get(Txn, ())},
        {action.app_key for action in by_kind.get(DomainMetadata, ())},
    )


def version_rows(
    table_id: str, version: int, actions: Iterable[Action], by_kind: Mapping[type[Any], Sequence[Any]], keys: Touched
) -> Iterator[tuple[Shape, Iterable[Sequence[Any]]]]:
    """The rows of one version alone, as a book hands them out: without its work where no action ends another one.

    Such rows never change, so they are tuples, each made when it is asked for: 100,000 lists at once take 210 ms, most
    of it for the garbage collector.
    """
    spanned = sum(len(by_kind.get(kind, ())) for kind in (AddFile, RemoveFile, Txn, DomainMetadata))
    if sum(map(len, keys)) != spanned or not keys.added.isdisjoint(keys.removed):
        book = SpanBook(table_id)
        for action in actions:
            book.take(version, action)
        yield from book.batch()
        return
    for kind, shape in BY_KIND.items():
        if kind in by_kind:
            yield shape, _open_rows((table_id, version, *_OPEN[len(shape.keys)]), shape, by_kind[kind])


def _open_rows(keys: tuple[Any, ...], shape: Shape, actions: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    return ((*keys, *values) for values in map(shape.values, actions))
