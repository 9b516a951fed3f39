"""Where a benchmark runs: logs on disk, catalogs on three engines, one Postgres and one Spark session.

Each is made when it is first asked for, used by all scenarios, and gone at the end; what a lab keeps, the next run has.
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
from mainstem.bench.crew import Crew
from mainstem.bench.logwriter import write_log
from mainstem.bench.recipe import Recipe
from mainstem.bench.scale import Scale
from mainstem.catalog import open_catalog
from mainstem.engines.postgres_server import start_postgres_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "bench.t"
# A server for catalogs has more than the launcher's 128 MB; the log of changes is not what is measured here.
_POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "8GB", "max_connections": "300"}
_SPARK = {"spark.driver.memory": "6g", "spark.log.level": "ERROR"}


class Lab:
    """The places of one run, below one folder.

    With `keep`, logs and catalogs of `folder` and of the given Postgres are used again where they are there, and stay.
    What was begun and not finished, or made for another schema of the catalog, is not taken for one of them.
    """

    def __init__(
        self,
        scale: Scale,
        folder: Path,
        *,
        spark: SparkSession | None = None,
        postgres: str | None = None,
        keep: bool = False,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.scale = scale
        self._folder = folder
        self._given_spark, self._given_postgres = spark, postgres
        self._keep = keep
        self.report = report
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
    def crew(self) -> Crew:
        """As many processes that write as the scale has at most."""
        self.report(f"{self.scale.crowd} processes")
        crew = Crew(self.scale.crowd)
        self._undo.callback(crew.dismiss)
        return crew

    @cached_property
    def _durable_postgres(self) -> str:
        """One that waits for the disk at each COMMIT, as a server does that is not thrown away; the given one is."""
        if self._given_postgres is not None:
            return self._given_postgres
        server = start_postgres_server(settings={**_POSTGRES, "fsync": "on"})
        self._undo.callback(server.stop)
        return server.uri()

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
            folder = self._folder / f"log-{_named(recipe)}-{since}"
            if not folder.exists():
                self.report(f"a log of {recipe.actions:,} actions in {recipe.commits:,} commits")
                begun = folder.with_suffix(".begun")
                shutil.rmtree(begun, ignore_errors=True)
                write_log(recipe, begun, since=since).rename(folder)
            self._logs[recipe, since] = folder
            if not self._keep:
                self._undo.callback(shutil.rmtree, folder, ignore_errors=True)
        return self._logs[recipe, since]

    def catalog(self, engine: str, recipe: Recipe, *, location: Path | None = None) -> str:
        """The address of a catalog whose one table, `TABLE`, has the recipe's rows; where its files are matters to few.

        Postgres is let do at once what its autovacuum would do a minute later.
        """
        if (engine, recipe) not in self._catalogs:
            uri = (
                self._reused_catalog(engine, recipe)
                if self._keep
                else self._undo.enter_context(self.new_catalog(engine))
            )
            with open_catalog(uri) as catalog:
                if not catalog.tables():
                    self.report(f"{engine} with {recipe.actions:,} actions in {recipe.commits:,} commits")
                    write_catalog(recipe, catalog.store, name=TABLE, location=str(location or self._folder))
                    if engine == "postgres":
                        self._vacuum(uri)
            self._catalogs[engine, recipe] = uri
        return self._catalogs[engine, recipe]

    def _reused_catalog(self, engine: str, recipe: Recipe) -> str:
        """The address of an earlier run's catalog, or of an empty one. Rows come in one transaction: all or none."""
        uri = self._uri(engine, f"bench_{_named(recipe)}".replace("-", "_"))
        with open_catalog(uri) as catalog:
            catalog.migrate()
        return uri

    def _uri(self, engine: str, name: str, *, durable: bool = False) -> str:
        if engine == "postgres":
            return f"{self._server(durable=durable)}?schema={name}"
        return f"{engine}:///{self._folder / name}.{engine}"

    def _server(self, *, durable: bool) -> str:
        return self._durable_postgres if durable else self._postgres

    def folder(self) -> Path:
        """A new folder, gone at the end."""
        folder = self._folder / f"folder-{uuid4().hex[:12]}"
        folder.mkdir()
        self._undo.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def kept_catalog(self, engine: str, *, durable: bool = False) -> str:
        """The address of an empty catalog that stays until the end; `durable` is a Postgres that waits for the disk."""
        return self._undo.enter_context(self.new_catalog(engine, durable=durable))

    @contextmanager
    def new_catalog(self, engine: str, *, durable: bool = False) -> Iterator[str]:
        """The address of an empty catalog that is gone afterwards."""
        name = f"bench_{uuid4().hex[:12]}"
        uri = self._uri(engine, name, durable=durable)
        with open_catalog(uri) as catalog:
            catalog.migrate()
        try:
            yield uri
        finally:
            if engine == "postgres":
                self._drop(self._server(durable=durable), name)
            for left in self._folder.glob(f"{name}.{engine}*"):
                left.unlink()

    def _vacuum(self, uri: str) -> None:
        with open_catalog(uri) as catalog, catalog.engine.reading() as connection:
            connection.execute("VACUUM ANALYZE")

    def _drop(self, server: str, schema: str) -> None:
        with open_catalog(server) as catalog, catalog.engine.reading() as connection:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')


def _named(recipe: Recipe) -> str:
    return f"{recipe.adds}-{recipe.removes}-{recipe.commits}-{recipe.days}-{recipe.seed}"
