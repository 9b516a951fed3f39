"""A table exactly as it was at one version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import orjson

from mainstem import images, observe
from mainstem.chronicle import properties
from mainstem.columns import FILE_COLUMNS, Column
from mainstem.deltalog.jsontext import decoded
from mainstem.errors import CorruptCatalog, UnsupportedFeature, UsageError
from mainstem.leases import LISTING, Leases
from mainstem.livefiles import LiveFiles
from mainstem.model import Metadata, Protocol
from mainstem.opened import Opened, opened_at, opened_at_head
from mainstem.resolve import Resolved, change_of, require_unchanged, resolve
from mainstem.session import in_utc
from mainstem.store import Queries, Row, Store
from mainstem.tableschema import column_rows, require_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FilesEngine = Literal["auto", "sql", "spans", "replay"]
# So many partitions are looked at before the files are: 20 microseconds each, and 2 for each file that this spares.
_MOST_PARTITIONS = 5000


@dataclass(frozen=True, slots=True)
class Size:
    """How large a table is. `records` is None where a file does not say, and counts rows that are marked as deleted."""

    files: int
    size_bytes: int
    records: int | None


@dataclass(frozen=True)
class Snapshot:
    """The table exactly as it was at one version. Nothing that it returns ever changes between calls.

    Schema, protocol and properties are there when it is opened; files are fetched when they are asked for. Every later
    statement is bounded by the version; a version that expires meanwhile raises, and is never silently short.
    """

    table: str
    table_id: str
    version: int
    timestamp: datetime
    metadata: Metadata
    protocol: Protocol
    domains: Mapping[str, str]
    app_transactions: Mapping[str, int]
    content_sha256: str | None = field(repr=False)
    is_head: bool = field(repr=False)
    store: Store = field(repr=False, compare=False)
    session: Callable[[], SparkSession] = field(repr=False, compare=False)

    @cached_property
    def schema(self) -> StructType:
        """The table's schema, as Spark has it."""
        from pyspark.sql.types import StructType

        try:
            return StructType.fromJson(orjson.loads(self.schema_json))
        except ValueError as error:
            raise UnsupportedFeature(
                f"the table {self.table} has a type at version {self.version} that this Spark does not know: {error}",
                hint="`schema_json` has it as the log says it.",
            ) from error

    @cached_property
    def schema_json(self) -> str:
        """The table's schema, verbatim. Raises CorruptLog if its metadata has something else there, or nothing."""
        return require_schema(self.metadata.schema_json, table=self.table, version=self.version)

    @cached_property
    def partition_columns(self) -> list[str]:
        """The columns that the table is partitioned by, in their order."""
        found: list[str] = decoded(self.metadata.partition_columns or "[]")
        return found

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table's properties, as Delta's metadata has them."""
        return properties(self.metadata)

    @property
    def in_utc(self) -> bool:
        """Whether a moment in a predicate that names no zone is in UTC: by the session's zone, or without a session."""
        return in_utc(self.session)

    def columns(self) -> list[tuple[str, str, bool]]:
        """Each column's name, type and whether it may be null, for people; needs no Spark."""
        return column_rows(self.schema_json)

    def size(self) -> Size:
        """How many files are live, their bytes, and their rows where every file says how many it has."""
        with self.reading() as queries:
            found = queries.row("files_size", **self._bounds)
        assert found is not None
        size_bytes, records = (
            (int(found[f"{what}_high"] or 0) << 32) + int(found[f"{what}_low"] or 0) for what in ("size", "records")
        )
        return Size(found["files"], size_bytes, records if found["without_records"] == 0 else None)

    def to_arrow(self, *, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The live files as an Arrow table, without Spark; with `where`, those that may match it.

        A moment in it that names no zone is in the session's, and without a session in UTC. The order of the rows means
        nothing.
        """
        wanted = _columns(columns)
        if where is None:
            return self._live.table().select([column.name for column in wanted])
        if "_live" in self.__dict__:
            from mainstem.pruning.snapshots import condition_of

            found = self._live.matching(condition_of(where, self))
            if found is not None:
                return found.select([column.name for column in wanted])
        condition, values = self._condition(where)
        with self.reading() as queries:
            return self._fetch(queries, wanted, condition, values)

    def iter_files(self, *, page_size: int = 10_000, where: str | None = None) -> Iterator[Row]:
        """The live files one by one, fetched in pages by keyset: memory stays bounded however many there are."""
        if page_size < 1:
            raise UsageError(f"page_size is {page_size}.", hint="Give 1 or more.")
        condition, values = self._condition(where)
        after: tuple[int, int] = (-1, -1)
        while True:
            with self.reading() as queries:
                page = queries.page(
                    "files_page",
                    FILE_COLUMNS,
                    condition=condition,
                    **self._bounds,
                    after_version=after[0],
                    after_seq=after[1],
                    page_size=page_size,
                    **values,
                )
            for row in page:
                after = (row["version"], row.pop("seq"))
                row["data_change"] = bool(row["data_change"])
                yield row
            if len(page) < page_size:
                return

    def files(self, *, where: str | None = None, engine: FilesEngine = "auto") -> DataFrame:
        """The live files as a Spark DataFrame; with `where`, those that may match it.

        `sql` reads on the driver, `spans` and `replay` in the executors over JDBC; `replay` computes the snapshot from
        the log rows alone. `auto` takes `sql` up to the setting `driver_files` and `spans` beyond it.
        """
        from mainstem import frames

        if engine not in ("auto", "sql", "spans", "replay"):
            raise UsageError(f"{engine!r} is no engine for files().", hint="Give auto, sql, spans or replay.")
        spark = self.session()
        if engine == "auto":
            engine = "spans" if self.has_more_files_than(self.store.engine.settings.driver_files) else "sql"
        if engine == "sql":
            return spark.createDataFrame(self.to_arrow(where=where))
        Leases("read", lasting=LISTING).hold(self.store, self.table_id, self.version)
        with self.reading():
            pass  # Spark reads later and on its own, and asks again; what is gone already is told now
        condition = None if where is None else self._inlined(where)
        read = frames.spans if engine == "spans" else frames.replayed
        return read(
            spark, self.store.engine, self.table_id, self.version,
            condition=condition, content_sha256=self.content_sha256,
        )  # fmt: skip

    def refresh(self) -> Snapshot:
        """The table at its head. Files that this snapshot has fetched are kept: only what came since is read.

        Unless this snapshot itself has expired or was replaced: then its files say nothing about what came since.
        """
        newer = open_head(self.store, self.table, session=self.session)
        if newer is None or newer.table_id != self.table_id:
            return open_snapshot(self.store, self.table, self.table_id, session=self.session)
        if "_live" in self.__dict__ and newer.version >= self.version:
            with newer.reading() as queries:
                moved = self._live.moved(queries, self._bounds, newer._bounds)
                if change_of(queries, self.table_id, self._at) is None:
                    newer.__dict__["_live"] = moved
        return newer

    def keep_image(self) -> bool:
        """Keep the live files as columns in the catalog, where it pays: later opens then begin with them."""
        return images.keep(self.store, self._bounds, lambda: self._live.rows, at=self._at)

    @cached_property
    def partition_texts(self) -> Sequence[str] | None:
        """The partition values of the table's adds, of this version or a later one too: their beginnings, each once.

        None where the database has no index of them, or where they are too many to look at.
        """
        prefix = self.store.engine.file_sql.partition_prefix
        if prefix is None or not self.partition_columns:
            return None
        with self.reading() as queries:
            bounds = {"table_id": self.table_id, "most": _MOST_PARTITIONS + 1}
            found = [row["said"] for row in queries.rows("partition_texts", {"prefix": prefix}, **bounds)]
        return None if len(found) > _MOST_PARTITIONS else found

    def _condition(self, where: str | None) -> tuple[str, dict[str, object]]:
        if where is None:
            return "TRUE", {}
        from mainstem import pruning

        return pruning.bound_condition(where, self, self.store.engine)

    def _inlined(self, where: str) -> str:
        from mainstem import pruning

        return pruning.inlined_condition(where, self, self.store.engine)

    @property
    def _at(self) -> Resolved:
        return Resolved(self.version, self.timestamp, self.content_sha256, self.is_head)

    @property
    def _bounds(self) -> dict[str, Any]:
        return {"table_id": self.table_id, "version": self.version}

    @cached_property
    def _live(self) -> LiveFiles:
        with self.reading() as queries:
            found = images.live_at(queries, self._bounds)
            return found or LiveFiles(self._fetch(queries, images.COLUMNS, "TRUE", {}))

    def _fetch(
        self, queries: Queries, columns: Sequence[Column], condition: str, values: Mapping[str, object]
    ) -> pa.Table:
        given = {**self._bounds, **values}
        if self.is_head:
            found = queries.arrow("files_at_head", columns, condition=condition, **given)
            if found.num_rows or self.is_still_head(queries):
                return found
        # Not the head, or no longer: the statement above finds nothing once the head has moved.
        return queries.arrow("files_at_version", columns, condition=condition, **given)

    def is_still_head(self, queries: Queries) -> bool:
        """Whether no version has come since: then none had come either when a statement before this one ran."""
        head = queries.row("head_row", table_id=self.table_id)
        return head is not None and bool(head["current_version"] == self.version)

    def has_more_files_than(self, most: int) -> bool:
        """Whether more files are live; it counts no further than it must."""
        with self.reading() as queries:
            return int(queries.scalar("files_count_to", **self._bounds, most=most + 1)) > most

    @contextmanager
    def reading(self) -> Iterator[Queries]:
        """Queries on one connection; on leaving it raises if the version expired meanwhile."""
        with self.store.reading() as queries:
            yield queries
            require_unchanged(queries, self.table, self.table_id, self._at)


def _columns(names: Sequence[str] | None) -> Sequence[Column]:
    if names is None:
        return FILE_COLUMNS
    known = {column.name: column for column in FILE_COLUMNS}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no column {name!r} of files.", hint=f"There are {', '.join(known)}.")
    return [known[name] for name in names]


def open_head(store: Store, table: str, *, session: Callable[[], SparkSession]) -> Snapshot | None:
    """The newest version of the table of this name, by one statement; None if there is none to read."""
    with _opening(store, table) as queries:
        found = opened_at_head(queries, table)
        return None if found is None else _snapshot(found, store, table, session)


def open_snapshot(
    store: Store,
    table: str,
    table_id: str,
    *,
    session: Callable[[], SparkSession],
    version: int | None = None,
    timestamp: datetime | str | None = None,
    tag: str | None = None,
) -> Snapshot:
    """The table at the version, the moment or the tag that is asked for; at its head if none is."""
    with _opening(store, table) as queries:
        at = resolve(queries, name=table, table_id=table_id, version=version, timestamp=timestamp, tag=tag)
        found = opened_at(queries, table_id, at)
        require_unchanged(queries, table, table_id, at)
        return _snapshot(found, store, table, session)


@contextmanager
def _opening(store: Store, table: str) -> Iterator[Queries]:
    with (
        observe.timed("metadata_open_latency_ms", table=table),
        observe.span("snapshot.open", table=table),
        store.reading() as queries,
    ):
        yield queries


def _snapshot(found: Opened, store: Store, table: str, session: Callable[[], SparkSession]) -> Snapshot:
    if not isinstance(found.metadata, Metadata) or not isinstance(found.protocol, Protocol):
        lacking = "protocol" if isinstance(found.metadata, Metadata) else "metadata"
        raise CorruptCatalog(
            f"the table {table} has no {lacking} at version {found.at.version}.",
            hint="Import it again: mainstem import --force",
        )
    return Snapshot(
        table=table,
        table_id=found.table_id,
        version=found.at.version,
        timestamp=found.at.committed_at,
        metadata=found.metadata,
        protocol=found.protocol,
        domains=found.domains,
        app_transactions=found.app_transactions,
        content_sha256=found.at.content_sha256,
        is_head=found.at.is_head,
        store=store,
        session=session,
    )


def keep_image(store: Store, table: str, table_id: str) -> bool:
    """Keep an image of the table's head, where it pays; see `Snapshot.keep_image`."""
    return open_snapshot(store, table, table_id, session=no_session).keep_image()


def no_session() -> SparkSession:
    """For snapshots that nobody asks for DataFrames."""
    raise UsageError("this needs a Spark session.", hint="Give one: open_catalog(uri, spark=spark).")
