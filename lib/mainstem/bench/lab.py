"""Where a benchmark runs: logs on disk, catalogs on three engines, one Postgres and one Spark session.

Each is made when it is first asked for, used by all scenarios, and gone at the end.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from mainstem import session
from mainstem.bench import machine
from mainstem.bench.catalogwriter import write_catalog
from mainstem.bench.logwriter import write_log
from mainstem.bench.recipe import Recipe
from mainstem.bench.scale import Scale
from mainstem.catalog import open_catalog
from mainstem.engines.postgres_server import start_postgres_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "bench.t"
# A server for catalogs has more than the launcher's 128 MB; the log of changes is not what is measured here.
_POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
_SPARK = {"spark.driver.memory": "6g", "spark.log.level": "ERROR"}


class Lab:
    """The places of one run, below one folder."""

    def __init__(
        self,
        scale: Scale,
        folder: Path,
        *,
        spark: SparkSession | None = None,
        postgres: str | None = None,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.scale = scale
        self._folder = folder
        self._given_spark, self._given_postgres = spark, postgres
        self._report = report
        self._undo = ExitStack()
        self._logs: dict[tuple[Recipe, int], Path] = {}
        self._catalogs: dict[tuple[str, Recipe], str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    @cached_property
    def spark(self) -> SparkSession:
        """A session with 6 GB of driver memory and Mainstem's own defaults; the given one, if there is one."""
        if self._given_spark is not None:
            return self._given_spark
        spark = session.build_session("mainstem bench", **_SPARK)
        self._undo.callback(spark.stop)
        return spark

    @cached_property
    def _postgres(self) -> str:
        if self._given_postgres is not None:
            return self._given_postgres
        server = start_postgres_server(settings=_POSTGRES)
        self._undo.callback(server.stop)
        return server.uri()

    def facts(self) -> dict[str, str]:
        """Where this run was measured, and with what. Starts nothing that no scenario has used."""
        postgres = None
        if "_postgres" in self.__dict__:
            with open_catalog(self._postgres) as catalog, catalog.engine.reading() as connection:
                postgres = str(connection.execute("SHOW server_version").fetchone()[0])
        return machine.facts(self.__dict__.get("spark"), postgres)

    def log(self, recipe: Recipe, *, since: int = 0) -> Path:
        """The folder of a table with the recipe's log; with `since`, without the commits before."""
        if (recipe, since) not in self._logs:
            self._report(f"a log of {recipe.actions:,} actions in {recipe.commits:,} commits")
            folder = self._folder / f"table-{len(self._logs)}"
            self._logs[recipe, since] = write_log(recipe, folder, since=since)
            self._undo.callback(shutil.rmtree, folder, ignore_errors=True)
        return self._logs[recipe, since]

    def catalog(self, engine: str, recipe: Recipe, *, location: Path | None = None) -> str:
        """The address of a catalog whose one table, `TABLE`, has the recipe's rows; where its files are matters to few.

        Postgres is let do at once what its autovacuum would do a minute later.
        """
        if (engine, recipe) not in self._catalogs:
            self._report(f"{engine} with {recipe.actions:,} actions in {recipe.commits:,} commits")
            uri = self._undo.enter_context(self.new_catalog(engine))
            with open_catalog(uri) as catalog:
                write_catalog(recipe, catalog.store, name=TABLE, location=str(location or self._folder))
            if engine == "postgres":
                self._vacuum(uri)
            self._catalogs[engine, recipe] = uri
        return self._catalogs[engine, recipe]

    @contextmanager
    def new_catalog(self, engine: str) -> Iterator[str]:
        """The address of an empty catalog that is gone afterwards."""
        name = f"bench_{uuid4().hex[:12]}"
        file = self._folder / f"{name}.{engine}"
        uri = f"{self._postgres}?schema={name}" if engine == "postgres" else f"{engine}:///{file}"
        with open_catalog(uri) as catalog:
            catalog.migrate()
        try:
            yield uri
        finally:
            if engine == "postgres":
                self._drop(name)
            for left in self._folder.glob(f"{file.name}*"):
                left.unlink()

    def _vacuum(self, uri: str) -> None:
        with open_catalog(uri) as catalog, catalog.engine.reading() as connection:
            connection.execute("VACUUM ANALYZE")

    def _drop(self, schema: str) -> None:
        with open_catalog(self._postgres) as catalog, catalog.engine.reading() as connection:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
