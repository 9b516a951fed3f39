"""The rows of a table at one version, as a checkpoint holds them: all of its files, some of them, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mainstem import pruning
from mainstem.checkpoint import properties as said
from mainstem.checkpoint.described import Described, described
from mainstem.checkpoint.files import ADD_COLUMNS, REMOVE_COLUMNS
from mainstem.columns import Column
from mainstem.identity import app_key
from mainstem.model import FIRST_SEQ, DomainMetadata, Txn
from mainstem.model import Protocol as TableProtocol
from mainstem.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that are held in memory at once, about 50 MB with their statistics. One row group of the file holds as many.
PAGE_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Choice:
    """Which live files a state holds: those for which a condition over `dl_add_files` is true.

    `values` are bound to the names in `condition`. `inlined` is the same for Spark's JDBC, which binds nothing; None
    where there is no such text, and then a state is never written by Spark.
    """

    condition: str
    values: Mapping[str, object] = field(default_factory=dict)
    inlined: str | None = None


ALL_FILES = Choice("TRUE", inlined="1 = 1")
NO_FILES = Choice("FALSE", inlined="1 = 0")


def matching(where: str, snapshot: Snapshot) -> Choice:
    """The files of a snapshot that may match a predicate, and surely all that do."""
    engine = snapshot.store.engine
    condition, values = pruning.bound_condition(where, snapshot, engine)
    return Choice(condition, values, pruning.inlined_condition(where, snapshot, engine))


class Watcher(Protocol):
    """Sees the live files of a state as they are read, each time from the beginning."""

    def begin(self) -> None: ...
    def page(self, rows: pa.Table) -> None: ...


@dataclass(frozen=True)
class State:
    """What a checkpoint of one version says. Reading it twice gives the same rows.

    `protocol` is what is written, which may differ from the table's own. `tombstones_since` is the time, in
    milliseconds, after which a file must have been removed to be remembered; None remembers none. `rewrite` changes
    the rows of live files on their way out; such a state is never written by Spark.
    """

    snapshot: Snapshot
    protocol: TableProtocol
    transactions: tuple[Txn, ...]
    domains: tuple[DomainMetadata, ...]
    choice: Choice
    tombstones_since: int | None
    page_rows: int = PAGE_ROWS
    rewrite: Callable[[pa.Table], pa.Table] | None = None
    watcher: Watcher | None = None

    @property
    def version(self) -> int:
        """The version whose state it is."""
        return self.snapshot.version

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.snapshot.properties

    def described(self) -> list[Described]:
        """Everything but the files."""
        return described(self.protocol, self.snapshot.metadata, self.transactions, self.domains)

    def adds(self) -> Iterator[pa.Table]:
        """The live files, page by page, as ADD_COLUMNS."""
        pages = self._live_pages()
        if self.rewrite is not None:
            pages = map(self.rewrite, pages)
        return pages if self.watcher is None else _watched(pages, self.watcher)

    def _live_pages(self) -> Iterator[pa.Table]:
        if self.choice == NO_FILES:
            return
        # Most states fit one page, and then no order is needed: an index of live files finds them.
        first = self._first(self.page_rows + 1)
        if first.num_rows <= self.page_rows:
            yield first
            return
        yield from self._pages("state_files_page", ADD_COLUMNS, self.choice.condition, **self.choice.values)

    def tombstones(self) -> Iterator[pa.Table]:
        """The files that are gone and not forgotten, page by page, as REMOVE_COLUMNS."""
        if self.tombstones_since is not None:
            yield from self._pages("state_tombstones_page", REMOVE_COLUMNS, "TRUE", since=self.tombstones_since)

    def exceeds(self, most: int) -> bool:
        """Whether the table has more than so many files and young removes; of a choice it says nothing."""
        with self.snapshot.reading() as queries:
            files = int(queries.scalar("files_count_to", **self._bounds, most=most + 1))
            if files <= most and self.tombstones_since is not None:
                since = self.tombstones_since
                files += queries.scalar("state_tombstones_count_to", **self._bounds, since=since, most=most + 1)
        return files > most

    def file_count(self) -> int | None:
        """How many live files there must be; None where only some of the table's are wanted."""
        return self.snapshot.size().files if self.choice == ALL_FILES else None

    @property
    def _bounds(self) -> dict[str, Any]:
        return {"table_id": self.snapshot.table_id, "version": self.version}

    def _first(self, most: int) -> pa.Table:
        values = {**self._bounds, **self.choice.values, "most": most}
        with self.snapshot.reading() as queries:
            if self.snapshot.is_head:
                found = queries.arrow("state_files_at_head", ADD_COLUMNS, condition=self.choice.condition, **values)
                if found.num_rows or self.snapshot.is_still_head(queries):
                    return found
            return queries.arrow("state_files", ADD_COLUMNS, condition=self.choice.condition, **values)

    def _pages(self, name: str, columns: tuple[Column, ...], condition: str, **values: object) -> Iterator[pa.Table]:
        after = (-1, -1)
        while True:
            with self.snapshot.reading() as queries:
                page = queries.arrow(
                    name,
                    columns,
                    condition=condition,
                    **self._bounds,
                    **values,
                    after_version=after[0],
                    after_seq=after[1],
                    most=self.page_rows,
                )
            if page.num_rows:
                yield page
            if page.num_rows < self.page_rows:
                return
            after = (page.column("version")[-1].as_py(), page.column("seq")[-1].as_py())


def _watched(pages: Iterator[pa.Table], watcher: Watcher) -> Iterator[pa.Table]:
    watcher.begin()
    for page in pages:
        watcher.page(page)
        yield page


def open_state(
    snapshot: Snapshot,
    *,
    now_ms: int,
    choice: Choice = ALL_FILES,
    tombstones: Literal["retained", "none"] = "retained",
    protocol: TableProtocol | None = None,
) -> State:
    """The state of a snapshot as Delta would write it down at a moment: tombstones and transactions age.

    `choice` narrows the live files, `tombstones="none"` leaves out those that are gone, `protocol` stands in for
    the table's own.
    """
    kept = said.retention_ms(snapshot.properties, said.FILE_RETENTION)
    assert kept is not None
    with snapshot.reading() as queries:
        rows = queries.rows("transactions_at", table_id=snapshot.table_id, version=snapshot.version)
    lasting = said.retention_ms(snapshot.properties, said.TXN_RETENTION)
    transactions = tuple(
        Txn(place, row["app_id"], app_key(row["app_id"]), row["txn_version"], row["last_updated"])
        for place, row in enumerate(rows, start=FIRST_SEQ)
        if lasting is None or (row["last_updated"] is not None and row["last_updated"] > now_ms - lasting)
    )
    domains = tuple(
        DomainMetadata(place, domain, app_key(domain), configuration, False)
        for place, (domain, configuration) in enumerate(sorted(snapshot.domains.items()), start=FIRST_SEQ)
    )
    return State(
        snapshot=snapshot,
        protocol=protocol or snapshot.protocol,
        transactions=transactions,
        domains=domains,
        choice=choice,
        tombstones_since=now_ms - kept if tombstones == "retained" else None,
    )
