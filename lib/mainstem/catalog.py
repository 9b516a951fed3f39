"""The facade: `open_catalog`, `Catalog`. It delegates and decides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mainstem import deltacheck, importer, migrations, session
from mainstem.authority import Leader
from mainstem.committing import Committed
from mainstem.creation import first_actions
from mainstem.driverload import Progress
from mainstem.engines import Engine, open_engine
from mainstem.errors import UsageError
from mainstem.follower import FollowedOne, follow_all
from mainstem.operations import DataTransaction, Reader, create, make_views
from mainstem.rebuild import RebuiltLog, rebuild_log
from mainstem.reconcile import Reconciled, reconcile
from mainstem.retry import run_again
from mainstem.settings import Settings, load_settings
from mainstem.store import Store
from mainstem.table import Table, TableInfo
from mainstem.tablestate import new_table
from mainstem.tags import Tag, delete_tag, find_tag, list_tags, set_tag
from mainstem.uri import CatalogUri, parse_uri
from mainstem.validate import require_agreement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


def open_catalog(uri: str | None = None, *, spark: SparkSession | None = None, **flags: Any) -> Catalog:
    """The catalog at `uri`, or where the settings say it is. Nothing is connected until it is used.

    `spark` may be left out for all that needs no DataFrame. Further keywords are settings, such as `pool_size=8`.
    """
    given: Mapping[str, Any] = {**flags, **({"catalog": uri} if uri is not None else {})}
    settings = load_settings(flags=given, spark_conf=session.conf_lookup(spark))
    if not settings.catalog:
        raise UsageError(
            "no catalog was named.",
            hint="Give its URI, set MAINSTEM_CATALOG, or write it into conf/mainstem.ini; for example sqlite:///lake.db",
        )
    return Catalog(parse_uri(settings.catalog), settings=settings, spark=spark)


class Catalog:
    """A set of Delta tables whose logs live in one database. Safe to share between threads."""

    def __init__(self, uri: CatalogUri, *, settings: Settings, spark: SparkSession | None = None) -> None:
        self.uri = uri
        self.settings = settings
        self.engine: Engine = open_engine(uri, settings)
        self._spark = spark
        self._reader = Reader()

    def __repr__(self) -> str:
        return f"Catalog({str(self.uri)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections and take mounts down. The catalog may be used again."""
        self._reader.close()
        self.engine.close()

    @property
    def spark(self) -> SparkSession:
        """The session that this catalog was opened with, or the one that runs in this process."""
        if self._spark is None:
            from pyspark.sql import SparkSession

            active = SparkSession.getActiveSession()
            if active is None:
                raise UsageError("this needs a Spark session.", hint="Give one: open_catalog(uri, spark=spark).")
            self._spark = active
        return self._spark

    def migrate(
        self,
        *,
        to: int | None = None,
        allow_data_loss: bool = False,
        report: Callable[[str], None] = lambda line: None,
    ) -> migrations.Migrated:
        """Create or upgrade the schema; with `to`, go to that migration, also down. See `migrations.migrate`."""
        return migrations.migrate(self.engine, to=to, allow_data_loss=allow_data_loss, report=report)

    @cached_property
    def store(self) -> Store:
        """The catalog's rows, once its schema has been seen to be ours."""
        migrations.require_current(self.engine)
        return Store(self.engine, session=lambda: self._spark)

    def tables(self) -> list[TableInfo]:
        """Every table of the catalog, by name."""
        return [TableInfo.of(row) for row in self.store.rows("tables_all")]

    def table(self, name: str | None = None) -> Table:
        """A table by its name, by a `deltasql://` URI that ends in one, or the one that the catalog's own URI names."""
        if name is None:
            name = self.uri.table
        elif name.startswith("deltasql://"):
            name = self._table_of(name)
        if not name:
            raise UsageError("no table was named.", hint="Give its name: catalog.table('sales.orders').")
        return Table(self.store, name, session=lambda: self.spark, reader=self._reader)

    def _table_of(self, text: str) -> str | None:
        uri = parse_uri(text)
        if not uri.same_catalog(self.uri):
            raise UsageError(
                f"{uri} is in another catalog than this one.", hint=f"Open it by open_catalog({str(uri)!r})."
            )
        return uri.table

    def import_table(
        self,
        location: str,
        *,
        name: str,
        force: bool = False,
        up_to_version: int | None = None,
        dry_run: bool = False,
        progress: Progress = lambda done, total: None,
    ) -> importer.Imported:
        """Bring an existing Delta table in, with its whole readable history; the log goes on leading.

        All of it or nothing. With a Spark session, the result is compared with Delta's own before it is committed.
        """
        check = deltacheck.compare(self._spark) if self._spark is not None else importer.no_check
        return importer.import_table(
            self.store, location, name=name, force=force, up_to_version=up_to_version, dry_run=dry_run,
            progress=progress, check=check, spark=self._spark,
        )  # fmt: skip

    def rebuild_log(self, name: str, *, to: str | None = None) -> RebuiltLog:
        """Write a table's `_delta_log` anew from the catalog, where it is gone or into an empty folder, and verify it.

        See `mainstem.rebuild.rebuild_log`. With a Spark session, it is compared with Delta's own reading of it, too.
        """
        check = deltacheck.compare(self._spark) if self._spark is not None else importer.no_check
        return rebuild_log(self.store, name, to=to, check=check)

    def rebuild_table(self, location: str, *, name: str, authority: Leader = "log") -> importer.Imported:
        """Bring a table back whose catalog is gone, from its `_delta_log`, and verify that both say the same.

        What was not published is gone, and so are tags. With `authority="catalog"` the catalog leads it again.
        """
        imported = self.import_table(location, name=name)
        require_agreement(self.store, name)
        if authority == "catalog":
            self.table(name).cutover()
        return imported

    def follow(self, *, progress: Progress = lambda done, total: None) -> list[FollowedOne]:
        """Bring in what the log of every table has beyond its head, and say what came of each."""
        return follow_all(self.store, progress=progress)

    def publish(self, *, progress: Progress = lambda done, total: None) -> list[Reconciled]:
        """Publish what waits in every table, and say what came of each; see `mainstem.reconcile.reconcile`."""
        return reconcile(self.store, progress=progress)

    def transaction(
        self,
        *,
        committer: str | None = None,
        info: Mapping[str, Any] | None = None,
        txn: tuple[str, int] | None = None,
        txn_id: str | None = None,
    ) -> DataTransaction:
        """Changes of any number of tables that happen together or not at all; see `Transaction`.

        `info` goes into the commitInfo of each version. `txn` names an application and its number, `txn_id` a token:
        repeated with the same one, the transaction happens once. A token is known as long as its versions are, until
        `expire` forgets them; an application's newest number always.
        """
        return DataTransaction(
            self.store, session=lambda: self.spark, committer=committer, info=info, txn=txn, txn_id=txn_id
        )

    def views(self, *, prefix: str = "", tables: Sequence[str] | None = None) -> dict[str, str]:
        """Temporary views of all tables, or of those named, for users of SQL: the name of each view by its table's.

        `sales.orders` becomes `<prefix>sales_orders`. All show one moment, that of this call, until it is called again;
        they are there while the catalog is open.
        """
        infos = {info.name: info for info in self.tables()}
        named = [self.table(name) for name in (infos if tables is None else tables)]
        return make_views({table.name: partial(table.read_as, infos[table.name]) for table in named}, prefix=prefix)

    def run(self, change: Callable[[DataTransaction], T], *, retries: int = 5, **terms: Any) -> T:
        """Call `change(tx)` in a transaction; after a conflict or a deadlock again, in another one on the new head.

        What it returns is returned. Further keywords are those of `transaction`.
        """
        return run_again(lambda: self.transaction(**terms), change, retries=retries)

    def create_table(
        self,
        name: str,
        *,
        location: str,
        schema: Any,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        cluster_by: Sequence[str] = (),
        committer: str | None = None,
    ) -> Table:
        """A new, empty Delta table that the catalog leads. `location` is a folder or URI without a log.

        `schema` is a StructType, DDL text (which needs Spark), or Delta's JSON. With a Spark session Delta's own engine
        creates it, and DDL may say all that Delta knows: generated, default and identity columns, comments.
        """
        with self.transaction(committer=committer) as transaction:
            state = new_table(self.store, name, location)
            if self._spark is not None and not (isinstance(schema, str) and schema.lstrip().startswith("{")):
                create(
                    transaction, state, schema=schema, partition_by=partition_by, properties=properties or {},
                    cluster_by=cluster_by,
                )  # fmt: skip
            else:
                objects = first_actions(
                    _schema_json(schema), partition_by=partition_by, properties=properties or {},
                    now_ms=int(time.time() * 1000),
                )  # fmt: skip
                transaction.create(state).stage(
                    objects, operation="CREATE TABLE", operation_params={"partitionBy": list(partition_by)}
                )
        return self.table(name)

    def tag(self, name: str, *, tables: Sequence[str] | None = None, remark: str | None = None) -> Tag:
        """Name the head of every table, or of these, at one moment. A tag never moves, and holds its versions."""
        return set_tag(self.store, name, tables=tables, remark=remark)

    def tags(self) -> list[Tag]:
        """Every tag, the newest first."""
        return list_tags(self.store)

    def untag(self, name: str) -> Tag:
        """Take a tag away: what only it held may expire from now on."""
        return delete_tag(self.store, name)

    def read_as_of(self, tag: str, tables: Sequence[str]) -> dict[str, DataFrame]:
        """The rows of several tables as they were together when a tag was set, by table."""
        return {name: self.table(name).read(tag=tag) for name in tables}

    def promote(
        self, tag: str, *, tables: Sequence[str] | None = None, committer: str | None = None
    ) -> dict[str, Committed]:
        """Make the tag's tables, or these, what they were when it was set: all of them in one transaction."""
        versions = find_tag(self.store, tag).versions
        with self.transaction(committer=committer, info={"tag": tag}) as transaction:
            for name in versions if tables is None else tables:
                if name not in versions:
                    raise UsageError(f"the tag {tag!r} names no version of {name}.", hint="Nothing was written.")
                transaction.table(name).restore(version=versions[name])
        return transaction.committed


def _schema_json(schema: Any) -> str:
    if isinstance(schema, str):
        if not schema.lstrip().startswith("{"):
            raise UsageError(
                "a schema as DDL text needs a Spark session.",
                hint="Open the catalog with one, open_catalog(uri, spark=spark), or give Delta's JSON.",
            )
        return schema
    text: str = schema.json()
    return text
