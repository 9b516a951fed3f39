"""One table of the catalog. It delegates and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mainstem.authority import cutover, rollback
from mainstem.committing import Committed
from mainstem.deltalog.jsontext import decoded
from mainstem.errors import TableNotFound, UsageError
from mainstem.follower import Followed, Progress, follow
from mainstem.foreign import Resolution, resolve_foreign
from mainstem.maintain import Expired, Vacuumed, expire, vacuum
from mainstem.naming import storable
from mainstem.operations import DataTable, DataTransaction, Merge, Reader
from mainstem.publish import Published, publish
from mainstem.repair import Repaired, repair
from mainstem.snapshot import Snapshot, open_head, open_snapshot
from mainstem.store import Row, Store, as_utc
from mainstem.upkeep import Maintained, maintain
from mainstem.validate import Form, Report, validate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table of the catalog as it stood when it was asked for."""

    name: str
    table_id: str
    location: str
    authority: str
    created_at: datetime
    version: int
    published_version: int
    min_readable_version: int

    @classmethod
    def of(cls, row: Row) -> TableInfo:
        """From a row of `tables_all` or `table_by_name`."""
        return cls(
            name=row["name"],
            table_id=row["table_id"],
            location=row["location"],
            authority=row["authority"],
            created_at=as_utc(row["created_at"]),
            version=row["current_version"],
            published_version=row["published_version"],
            min_readable_version=row["min_readable_version"],
        )


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version: who did what, and when. `kind` is `checkpoint` where the commits before it were already gone."""

    version: int
    committed_at: datetime
    operation: str | None
    operation_params: dict[str, Any] | None
    committer: str | None
    kind: str
    txn_id: str | None
    group_id: str | None
    commit_info: str | None


class Table:
    """One table by its name. Holds no state: every property asks the catalog."""

    def __init__(self, store: Store, name: str, *, session: Callable[[], SparkSession], reader: Reader) -> None:
        self.name = name
        self._store = store
        self._session = session
        self._reader = reader
        self.info()  # a name that is not there is told at once

    def __repr__(self) -> str:
        return f"Table({self.name!r})"

    def info(self) -> TableInfo:
        """What the catalog says of the table now."""
        row = self._store.row("table_by_name", name=self.name) if storable(self.name) else None
        if row is None:
            raise TableNotFound(f"the catalog has no table {self.name}.", hint="See: mainstem tables", table=self.name)
        return TableInfo.of(row)

    @property
    def version(self) -> int:
        """The newest version."""
        return self.info().version

    @property
    def authority(self) -> str:
        """Who leads: `log` or `catalog`."""
        return self.info().authority

    @property
    def location(self) -> str:
        """The folder that holds the table's data and its `_delta_log`."""
        return self.info().location

    def snapshot(
        self, *, version: int | None = None, timestamp: datetime | str | None = None, tag: str | None = None
    ) -> Snapshot:
        """The table at a version, at the newest version up to a moment, or at a tag; at its head if none is given.

        A moment after the last commit finds the head; one before the first raises VersionNotFound with the range.
        """
        if version is None and timestamp is None and tag is None:
            head = open_head(self._store, self.name, session=self._session)
            if head is not None:
                return head
        table_id = self.info().table_id  # a name that is gone, or a table without a version, is told by what follows
        return open_snapshot(
            self._store, self.name, table_id, session=self._session, version=version, timestamp=timestamp, tag=tag
        )

    def history(self, *, limit: int | None = None) -> list[HistoryEntry]:
        """Its versions, newest first; with `limit`, so many of them."""
        if limit is not None and limit < 1:
            raise UsageError(f"limit is {limit}.", hint="Give 1 or more, or leave it out for all.")
        info = self.info()
        most = _ALL if limit is None else limit
        rows = self._store.rows("history", table_id=info.table_id, version=info.version, most=most)
        return [
            HistoryEntry(
                version=row["version"],
                committed_at=as_utc(row["committed_at"]),
                operation=row["operation"],
                operation_params=decoded(row["operation_params"]) if row["operation_params"] else None,
                committer=row["committer"],
                kind=row["kind"],
                txn_id=row["txn_id"],
                group_id=row["group_id"],
                commit_info=row["commit_info"],
            )
            for row in rows
        ]

    def follow(self, *, progress: Progress = lambda version, newest: None) -> Followed:
        """Bring in what the log has beyond the head; see `mainstem.follower.follow`."""
        return follow(self._store, self.name, progress=progress)

    def commit(
        self,
        actions: Sequence[Mapping[str, Any]],
        *,
        operation: str,
        operation_params: Mapping[str, Any] | None = None,
        read_version: int | None = None,
        read_where: str | None = None,
        committer: str | None = None,
        info: Mapping[str, Any] | None = None,
        txn: tuple[str, int] | None = None,
        txn_id: str | None = None,
    ) -> Committed:
        """Commit ready actions, Delta's JSON objects such as `{"add": {…}}`, as the table's next version.

        See `StagedTable.stage` for what was read. With the same `txn_id`, or the same `txn` (application, number), it
        is committed once, however often it is repeated. A `txn_id` is known as long as its version: after `expire` has
        forgotten that, the same one commits again; an application's newest `txn` is never forgotten so.
        """
        return self._change(
            lambda table: table.stage(
                actions,
                operation=operation,
                operation_params=operation_params,
                read_version=read_version,
                read_where=read_where,
            ),
            committer=committer, info=info, txn=txn, txn_id=txn_id,
        )  # fmt: skip

    def publish(self, *, progress: Progress = lambda done, total: None) -> Published:
        """Write every ratified version that its log does not have yet; see `mainstem.publish.publish`."""
        return publish(self._store, self.name, progress=progress)

    def cutover(
        self, *, fence: bool = False, in_commit_timestamps: bool = True, committer: str | None = None
    ) -> Committed:
        """Let the catalog lead from the next version on; see `mainstem.authority.cutover`."""
        return cutover(
            self._store, self.name, fence=fence, in_commit_timestamps=in_commit_timestamps, committer=committer
        )

    def rollback(self, *, committer: str | None = None) -> Committed:
        """Let the log lead again, with everything published; see `mainstem.authority.rollback`."""
        return rollback(self._store, self.name, committer=committer)

    def resolve(self, *, adopt_foreign: bool = False) -> Resolution:
        """What outside engines have committed beside the catalog; with `adopt_foreign`, bring it in."""
        return resolve_foreign(self._store, self.name, adopt_foreign=adopt_foreign)

    def validate(
        self,
        *,
        engine: Form = "auto",
        snapshots: Literal["sample", "all"] = "sample",
        suites: Sequence[Any] = (),
        docs: Path | str | None = None,
    ) -> Report:
        """Compare the catalog with the table's log and files; see `mainstem.validate.validate`."""
        return validate(
            self._store, self.name, session=self._session, engine=engine, snapshots=snapshots, rows=self.read,
            suites=suites, docs=None if docs is None else Path(docs),
        )  # fmt: skip

    def repair(self, *, dry_run: bool = False) -> Repaired:
        """Put right what has one right answer, and name what decides the rest; see `mainstem.repair.repair`."""
        done = repair(self._store, self.name, session=self._session, dry_run=dry_run)
        if any(step.kind == "spans" and step.outcome == "done" for step in done.steps):
            self._reader.forget(self.info().table_id)
        return done

    def expire(self, *, before_version: int) -> Expired:
        """Forget the versions before one; see `mainstem.maintain.expire`."""
        return expire(self._store, self.name, before_version=before_version)

    def vacuum(
        self,
        *,
        retention_hours: float | None = None,
        dry_run: bool = False,
        short_retention: Literal["refuse", "allow"] = "refuse",
    ) -> Vacuumed:
        """Delete the files in the table's folder that nothing needs any more; see `mainstem.maintain.vacuum`."""
        return vacuum(
            self._store, self.name, retention_hours=retention_hours, dry_run=dry_run, short_retention=short_retention
        )

    def maintain(
        self, *, expire_days: float | None = None, vacuum: bool = False, retention_hours: float | None = None
    ) -> Maintained:
        """Publish, checkpoint and clean the log; expire and vacuum if asked to; see `mainstem.upkeep.maintain`."""
        return maintain(self._store, self.name, expire_days=expire_days, vacuum=vacuum, retention_hours=retention_hours)

    # Data, by Delta's own engine. Each is a transaction of its own; `Catalog.transaction` makes one of several.

    def read(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
        tag: str | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """The table's rows at a version, a moment or a tag, at its head if none is given; with `where`, those that
        meet it, read from the files that may match alone."""
        info, snapshot = self.info(), self.snapshot(version=version, timestamp=timestamp, tag=tag)
        return self._reader.read(snapshot, location=info.location, published=info.published_version, where=where)

    def read_as(self, info: TableInfo) -> DataFrame:
        """The table's rows as it stood when `info` was asked for; they stay readable until the catalog is closed."""
        snapshot = self.snapshot(version=info.version)
        return self._reader.read(snapshot, location=info.location, published=info.published_version, pinned=True)

    def changes(self, *, from_version: int, to_version: int | None = None) -> DataFrame:
        """The rows that changed from a version to another, both included, as Delta's change feed shows them."""
        return self._reader.changes(
            self.snapshot(version=to_version), location=self.location, from_version=from_version
        )

    def append(self, rows: DataFrame, *, schema_evolution: bool = False, **terms: Any) -> Committed:
        """Add rows. Further keywords are those of `Catalog.transaction`."""
        return self._change(lambda table: table.append(rows, schema_evolution=schema_evolution), **terms)

    def overwrite(
        self,
        rows: DataFrame,
        *,
        replace_where: str | None = None,
        partitions: Literal["all", "dynamic"] = "all",
        schema_evolution: bool = False,
        **terms: Any,
    ) -> Committed:
        """Put rows in the place of all others, of those that meet `replace_where`, or of those in their partitions."""
        return self._change(
            lambda table: table.overwrite(
                rows, replace_where=replace_where, partitions=partitions, schema_evolution=schema_evolution
            ),
            **terms,
        )

    def delete(self, where: str | None = None, **terms: Any) -> Committed:
        """Delete the rows that meet `where`; all of them, if it is not given."""
        return self._change(lambda table: table.delete(where), **terms)

    def update(self, *, set: Mapping[str, Any], where: str | None = None, **terms: Any) -> Committed:  # noqa: A002
        """Set columns of the rows that meet `where`. A text is an expression of SQL, anything else a value."""
        return self._change(lambda table: table.update(set=set, where=where), **terms)

    def merge(self, source: DataFrame, *, on: str, **terms: Any) -> Merge[Committed]:
        """Begin a MERGE; `execute()` commits it. In conditions and values the table is `t`, the source is `s`."""
        return Merge(lambda merge: self._change(lambda table: merge.stage(table), **terms), source, on)

    def optimize(self, *, where: str | None = None, zorder_by: Sequence[str] = (), **terms: Any) -> Committed:
        """Compact small files, of the partitions that `where` names; with `zorder_by`, order their rows."""
        return self._change(lambda table: table.optimize(where=where, zorder_by=zorder_by), **terms)

    def alter(self, change: str, **terms: Any) -> Committed:
        """Run `ALTER TABLE … change`, such as `ADD COLUMNS (note STRING)`."""
        return self._change(lambda table: table.alter(change), **terms)

    def restore(self, *, version: int, **terms: Any) -> Committed:
        """Make the table what it was at an older version, by a new one."""
        return self._change(lambda table: table.restore(version=version), **terms)

    def foreach_batch(self, application: str) -> Callable[[DataFrame, int], None]:
        """For `writeStream.foreachBatch`: appends each batch once, however often the stream repeats it."""

        def write(rows: DataFrame, batch: int) -> None:
            self.append(rows, txn=(application, batch))

        return write

    def _change(self, stage: Callable[[DataTable], object], **terms: Any) -> Committed:
        with DataTransaction(self._store, session=self._session, **terms) as transaction:
            table = transaction.table(self.name)
            stage(table)
        return transaction.committed.get(self.name) or table.unchanged()
