"""One table inside of a transaction, changed by Delta's own engine on a private mount."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import orjson

from mainstem.checkpoint import ALL_FILES, NO_FILES, Choice, matching
from mainstem.conflicts import Reads, columns_of, read_predicate, said_blind_append
from mainstem.conflicts.features import with_writer_features
from mainstem.conflicts.values import json_object
from mainstem.deltalog.protocol import FENCE, refuse_unreadable, refuse_unwritable, writer_features
from mainstem.errors import UsageError
from mainstem.identity import canonical_path
from mainstem.model import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile, Txn
from mainstem.mount import Mount, Purpose, mount_state
from mainstem.operations.alterations import leaves_rows_unseen
from mainstem.operations.collected import literals_of
from mainstem.operations.merging import Merge
from mainstem.operations.sqltexts import assignments, literal, quoted
from mainstem.proposal import NO_VERSION, Commit
from mainstem.pruning import TableColumns, may_match, parse
from mainstem.pruning.evaluate import HIVE_NULL
from mainstem.restoring import restored_actions
from mainstem.session import in_utc
from mainstem.snapshot import Snapshot, open_snapshot
from mainstem.transaction import StagedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mainstem.operations.changes import DataTransaction

Operate = Callable[["SparkSession", Mount], None]
ReadsOf = Callable[[Sequence[Action]], Reads]
_MOST_PARTITIONS = 200
_WRITTEN_AS_NULL = (literal(""), literal(HIVE_NULL))


class DataTable(StagedTable):
    """A table as this transaction sees and changes it. Later operations see earlier ones; nobody else does.

    Every operation is Delta's own, on a mount that holds only the files which it can touch.
    """

    _transaction: DataTransaction

    def __init__(self, transaction: DataTransaction, state: Any) -> None:
        super().__init__(transaction, state)
        self._mount: Mount | None = None
        self._mounted = 0  # how many staged commits the mount has
        self._lent: list[Mount] = []

    # Reading

    def read(self, *, where: str | None = None) -> DataFrame:
        """The table's rows with what is staged so far; with `where`, those that meet it."""
        if self.state.protocol is not None:
            refuse_unreadable(self.state.protocol, table=self.name, undone="Nothing was read.")
        mount = self.lent(self._choice(where))
        frame = self.spark.read.format("delta").load(mount.uri)
        return frame if where is None else frame.where(where)

    def read_added(self) -> DataFrame:
        """The rows in files that this transaction adds, as they are after all that is staged."""
        mount = self._mount_of(NO_FILES, "read")
        self._lent.append(mount)
        return self.spark.read.format("delta").load(mount.uri)

    def added(self) -> list[AddFile]:
        """The files that this transaction adds and does not take away again.

        A file of the table that comes back with another deletion vector has lost rows, and is none of them.
        """
        live: dict[bytes, AddFile] = {}
        known: set[str] = set()
        for commit in self.commits:
            added = {action.file_key: action for action in commit.actions if isinstance(action, AddFile)}
            for action in commit.actions:
                if isinstance(action, RemoveFile) and live.pop(action.file_key, None) is None:
                    known.add(canonical_path(action.path, self.state.root))
            live |= added
        return [add for add in live.values() if canonical_path(add.path, self.state.root) not in known]

    def columns(self) -> TableColumns:
        """Its columns as the statistics of its files know them, with what is staged so far."""
        metadata = self.current_metadata
        if metadata is None:
            return TableColumns((), frozenset(), mapped=False)
        return columns_of(metadata)

    # Writing

    def append(self, rows: DataFrame, *, schema_evolution: bool = False) -> Self:
        """Add rows. With `schema_evolution`, columns that the table lacks are added to it."""

        def operate(spark: SparkSession, mount: Mount) -> None:
            mount.show_to(rows.sparkSession)
            _writing(rows, "append", mergeSchema=schema_evolution).save(mount.uri)

        return self.run(NO_FILES, blind_or_whole, operate)

    def overwrite(
        self,
        rows: DataFrame,
        *,
        replace_where: str | None = None,
        partitions: Literal["all", "dynamic"] = "all",
        schema_evolution: bool = False,
    ) -> Self:
        """Put rows in the place of all others, of those that meet `replace_where`, or of those in their partitions."""
        if replace_where is not None and partitions == "dynamic":
            raise UsageError("replace_where and dynamic partitions exclude each other.", hint="Give one of them.")
        options: dict[str, Any] = {"overwriteSchema": schema_evolution and replace_where is None}
        where = replace_where
        if replace_where is not None:
            options["replaceWhere"] = replace_where
        elif partitions == "dynamic":
            options["partitionOverwriteMode"] = "dynamic"
            where = self._partitions_of(rows)

        def operate(spark: SparkSession, mount: Mount) -> None:
            mount.show_to(rows.sparkSession)
            _writing(rows, "overwrite", **options).save(mount.uri)

        by = rows.sparkSession  # which reads the predicate
        if partitions == "dynamic" and where is not None:
            self._operate(self._choice(where, by=by), operate)
            if self._added_within(where, by=by):
                self.take_new(self.read_by(where, by=by))
                return self
            # The rows were others when they were written than when their partitions were asked for.
            self._let_go()
            where = None
        return self.run(self._choice(where, by=by), self.read_by(where, by=by), operate)

    def delete(self, where: str | None = None) -> Self:
        """Delete the rows that meet `where`; all of them, if it is not given."""
        tail = "" if where is None else f" WHERE {where}"
        return self._statement(lambda mount: f"DELETE FROM {mount.sql_name}{tail}", where)

    def update(self, *, set: Mapping[str, Any], where: str | None = None) -> Self:  # noqa: A002  as SQL calls it
        """Set columns of the rows that meet `where`. A text is an expression of SQL, anything else a value."""
        tail = "" if where is None else f" WHERE {where}"
        return self._statement(lambda mount: f"UPDATE {mount.sql_name} SET {assignments(set)}{tail}", where)

    def merge(self, source: DataFrame, *, on: str) -> Merge[DataTable]:
        """Begin a MERGE of `source` into the table. In conditions and values the table is `t`, the source is `s`."""
        return Merge(lambda merge: merge.stage(self), source, on)

    def optimize(self, *, where: str | None = None, zorder_by: Sequence[str] = ()) -> Self:
        """Compact small files, of the partitions that `where` names; with `zorder_by`, order their rows."""
        tail = "" if where is None else f" WHERE {where}"
        order = f" ZORDER BY ({', '.join(map(quoted, zorder_by))})" if zorder_by else ""

        def operate(spark: SparkSession, mount: Mount) -> None:
            spark.sql(f"OPTIMIZE {mount.sql_name}{tail}{order}").collect()

        return self.run(self._choice(where), self._removed, operate)

    def alter(self, change: str) -> Self:
        """Run `ALTER TABLE … change`, such as `ADD COLUMNS (note STRING)` or `SET TBLPROPERTIES ('a' = 'b')`."""

        def operate(spark: SparkSession, mount: Mount) -> None:
            spark.sql(f"ALTER TABLE {mount.sql_name} {change}").collect()

        return self.run(NO_FILES if leaves_rows_unseen(change) else ALL_FILES, _whole, operate)

    def restore(self, *, version: int) -> Self:
        """Make the table what it was at an older version, by a new one. Raises if a data file of it is gone."""
        then, now = self.snapshot_at(version), self.snapshot_at(self.state.read_version)
        if self.commits:
            raise UsageError(f"{self.name} was changed before in this transaction.", hint="Restore it first.")
        self._transaction.hold(self.state, version=version)  # files that are about to come back
        actions = restored_actions(then, now, location=self.state.location)
        self.propose(
            actions,
            operation="RESTORE",
            operation_params={"version": str(version), "timestamp": None},
            reads=Reads(whole_table=True),
        )
        return self

    # How

    @property
    def spark(self) -> SparkSession:
        """The session that does the work."""
        return self._transaction.session()

    def snapshot_at(self, version: int, *, by: SparkSession | None = None) -> Snapshot:
        """The table at a version, without what is staged; `by` is the session that asks, if not the transaction's."""
        session = self._transaction.session if by is None else lambda: by
        return open_snapshot(self._transaction.store, self.name, self.state.table_id, session=session, version=version)

    def run(self, choice: Choice, reads: ReadsOf, operate: Operate) -> Self:
        """Let Delta do something on a mount that has these files, and stage what it commits there."""
        self._operate(choice, operate)
        self.take_new(reads)
        return self

    def _operate(self, choice: Choice, operate: Operate) -> None:
        if self.state.protocol is not None:
            refuse_unwritable(self.state.protocol, table=self.name)
        operate(self.spark, self.mounted(choice))

    def _new(self) -> Iterator[Sequence[Action]]:
        """The commits on the table's mount that were not taken yet."""
        assert self._mount is not None
        before = self.state.read_version + len(self.commits)
        for _, actions in self._mount.staged(table_root=self.state.root, since=before):
            yield actions

    def take_new(self, reads: ReadsOf) -> None:
        """Stage what Delta has committed on the table's mount and was not taken yet."""
        for actions in list(self._new()):
            self.take(actions, reads(actions))
        self._mounted = len(self.commits)

    def take(self, actions: Sequence[Action], reads: Reads) -> None:
        """Stage a commit that Delta has made on a mount."""
        taken = self._transaction.with_application(self._fenced(actions), first=not self.commits)
        apps = frozenset(action.app_id for action in taken if isinstance(action, Txn))  # the transaction's own, too
        known = Reads(reads.whole_table, reads.paths, reads.predicates, apps | reads.app_ids)
        info = {key: value for key, value in self._transaction.info.items() if key != "engineInfo"}
        self.commits.append(Commit(tuple(taken), info, known))

    def _fenced(self, actions: Sequence[Action]) -> Sequence[Action]:
        """Actions of the mount, where no fence is, for the table, where it stays."""
        if self.state.protocol is None or FENCE not in writer_features(self.state.protocol):
            return actions
        return [with_writer_features(each, [FENCE]) if isinstance(each, Protocol) else each for each in actions]

    def _statement(self, text: Callable[[Mount], str], where: str | None) -> Self:
        def operate(spark: SparkSession, mount: Mount) -> None:
            spark.sql(text(mount)).collect()

        return self.run(self._choice(where), self.read_by(where), operate)

    def _choice(self, where: str | None, *, by: SparkSession | None = None) -> Choice:
        if where is None or self.state.read_version == NO_VERSION or self.redefined:
            return ALL_FILES
        return matching(where, self.snapshot_at(self.state.read_version, by=by))

    @property
    def redefined(self) -> bool:
        """Whether its columns may be others by now than in the catalog: then statistics there say nothing of them."""
        return any(isinstance(action, Metadata) for commit in self.commits for action in commit.actions)

    def read_by(self, where: str | None, *, by: SparkSession | None = None) -> ReadsOf:
        """What an operation has read that looks at rows which meet `where` alone, in the session `by`."""
        metadata = self.current_metadata
        if where is None or metadata is None:
            return _whole
        predicate = read_predicate(
            where, metadata, in_utc=in_utc(self._transaction.session if by is None else lambda: by)
        )
        return lambda actions: Reads(predicates=(predicate,))

    def _removed(self, actions: Sequence[Action]) -> Reads:
        root = self.state.root
        gone = (canonical_path(action.path, root) for action in actions if isinstance(action, RemoveFile))
        return Reads(paths=frozenset(gone))

    def _partitions_of(self, rows: DataFrame) -> str | None:
        """The partitions that rows lie in, as a predicate; None if they are too many to name or not known yet."""
        columns = orjson.loads((self.current_metadata and self.current_metadata.partition_columns) or "[]")
        if not columns or not {name.lower() for name in columns} <= {name.lower() for name in rows.columns}:
            return None  # a column that the rows lack is one that Delta computes
        found = literals_of(rows.select(*map(quoted, columns)).distinct().limit(_MOST_PARTITIONS + 1))
        if len(found) > _MOST_PARTITIONS or any(None in row for row in found):
            return None
        # What Delta writes as NULL goes into the partition of NULL, and takes its place.
        named = [[literal(None) if text in _WRITTEN_AS_NULL else text for text in row] for row in found]
        each = [zip(map(quoted, columns), row, strict=True) for row in named]
        return " OR ".join(f"({' AND '.join(f'{name} <=> {text}' for name, text in one)})" for one in each) or "FALSE"

    def _added_within(self, where: str, *, by: SparkSession) -> bool:
        """Whether every file that Delta has just added lies in the partitions that `where` names."""
        assert self.current_metadata is not None
        condition = parse(where, columns_of(self.current_metadata), in_utc=in_utc(lambda: by))
        return all(
            may_match(condition, json_object(action.partition_values), None)
            for actions in self._new()
            for action in actions
            if isinstance(action, AddFile)
        )

    def mounted(self, choice: Choice) -> Mount:
        """A mount that has at least these files and everything that is staged."""
        self._transaction.hold(self.state)
        mount = self._mount
        if (
            mount is not None
            and self._mounted == len(self.commits)
            and (mount.choice in (ALL_FILES, choice) or choice == NO_FILES)
        ):
            return mount
        self._let_go()
        self._mount = self._mount_of(choice, "write")
        self._mounted = len(self.commits)
        return self._mount

    def lent(self, choice: Choice) -> Mount:
        """The same for a DataFrame, which may be read at any moment until the transaction ends: so long it stays."""
        mount = self.mounted(choice)
        if not self._is_lent(mount):
            self._lent.append(mount)
        return mount

    def _is_lent(self, mount: Mount) -> bool:
        return any(known is mount for known in self._lent)

    def _let_go(self) -> None:
        """Work on another mount from now on."""
        if self._mount is not None and not self._is_lent(self._mount):
            self._mount.close()
        self._mount = None

    def _mount_of(self, choice: Choice, purpose: Purpose) -> Mount:
        first = self.state.read_version + 1
        staged = [
            (first + place, _with_info(commit.actions, self._transaction.provisional_ms(first + place)))
            for place, commit in enumerate(self.commits)
        ]
        return mount_state(
            self.snapshot_at(self.state.read_version),
            location=self.state.location,
            choice=choice,
            spark=self.spark,
            purpose=purpose,
            staged=staged,
        )

    def show_to(self, spark: SparkSession) -> None:
        """Let another session find the mount, if there is one."""
        if self._mount is not None:
            self._mount.show_to(spark)

    def close(self) -> None:
        """Take the mounts down."""
        self._let_go()
        for mount in self._lent:
            mount.close()
        self._lent = []


def _with_info(actions: Sequence[Action], moment_ms: int) -> Sequence[Action]:
    """Actions with a commitInfo, which Delta wants for the time of a version."""
    if any(isinstance(action, CommitInfo) for action in actions):
        return actions
    body = orjson.dumps({"timestamp": moment_ms, "inCommitTimestamp": moment_ms, "operation": "STAGED"}).decode()
    return [CommitInfo(0, body), *actions]


def _writing(rows: DataFrame, mode: str, **options: Any) -> Any:
    writer = rows.write.format("delta").mode(mode)
    for key, value in options.items():
        if value is not False:
            writer = writer.option(key, str(value).lower() if isinstance(value, bool) else value)
    return writer


def _whole(actions: Sequence[Action]) -> Reads:
    return Reads(whole_table=True)


def blind_or_whole(actions: Sequence[Action]) -> Reads:
    """Delta says whether an append has read nothing of the table."""
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    return Reads() if said_blind_append(info) else Reads(whole_table=True)
