"""The facade: `open_catalog`, `Catalog`. It delegates and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mainstem import migrations, session
from mainstem.engines import Engine, open_engine
from mainstem.errors import UsageError
from mainstem.settings import Settings, load_settings
from mainstem.store import Store, as_utc
from mainstem.uri import CatalogUri, parse_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

    def __repr__(self) -> str:
        return f"Catalog({str(self.uri)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections. The catalog may be used again."""
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
        return Store(self.engine)

    def tables(self) -> list[TableInfo]:
        """Every table of the catalog, by name."""
        return [
            TableInfo(
                name=row["name"],
                table_id=row["table_id"],
                location=row["location"],
                authority=row["authority"],
                created_at=as_utc(row["created_at"]),
                version=row["current_version"],
                published_version=row["published_version"],
                min_readable_version=row["min_readable_version"],
            )
            for row in self.store.rows("tables_all")
        ]
