"""Many writers at once: every commit that was acknowledged is there once, in the catalog and in the log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from crew import Crew
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tables import create
from work import append, append_to_both

from mainstem import Catalog, Table, open_catalog
from mainstem.recorded import recorded

WRITERS = 8
BOTH = ("sales.orders", "sales.items")


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    crew = Crew(WRITERS)
    yield crew
    crew.dismiss()


@pytest.fixture(params=["as many as fit", pytest.param("all", marks=pytest.mark.slow)])
def commits(request: pytest.FixtureRequest, catalog: Catalog) -> int:
    """How many commits each process makes: a hundred, but where one process writes at a time that takes minutes."""
    return 100 if request.param == "all" or catalog.engine.capabilities.many_processes else 10


def expected(commits: int) -> set[str]:
    return {f"w{worker}n{number}" for worker in range(WRITERS) for number in range(commits)}


def delta_spark_files(spark: SparkSession, location: Path) -> list[str]:
    return spark.read.format("delta").load(str(location)).inputFiles()


def check(catalog: Catalog, table: Table, location: Path, spark: SparkSession, commits: int) -> None:
    """The table has exactly the expected files, one a version, for us, for Delta Spark and for delta-rs."""
    head = WRITERS * commits
    table.publish()
    info = table.info()
    assert (info.version, info.published_version) == (head, head)
    with catalog.store.reading() as queries:
        versions = recorded(queries, info.table_id, first=0, last=head)
        unfinished = queries.connection.execute(
            f"SELECT count(*) FROM dl_mirror_status WHERE table_id = '{info.table_id}' AND status <> 'COMPLETE'"
        ).fetchone()
    assert [each.version for each in versions] == list(range(head + 1))
    assert len({each.txn_id for each in versions}) == head + 1
    log = location / "_delta_log"
    assert sorted(log.glob("*.json")) == [log / f"{each.version:020d}.json" for each in versions]
    for each in versions:
        assert (log / f"{each.version:020d}.json").read_bytes() == each.commit_file(table=table.name)
    assert tuple(unfinished) == (0,)
    theirs = DeltaTable(location)
    assert theirs.version() == head
    for found in (theirs.file_uris(), delta_spark_files(spark, location)):
        assert len(found) == head
        assert {Path(unquote(path)).stem for path in found} == expected(commits)


def test_eight_processes_append_to_one_table_and_every_commit_is_there_once(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, crew: Crew, spark: SparkSession, commits: int
) -> None:
    table = create(catalog, tmp_path)
    catalog.close()
    done = [each for answer in crew.do(append, catalog_uri, table.name, commits) for each in answer]
    assert sorted(each.version for each in done) == list(range(1, WRITERS * commits + 1))
    assert len({each.txn_id for each in done}) == len(done)
    assert not any(each.repeated for each in done)
    check(catalog, table, tmp_path / table.name, spark, commits)


def test_eight_processes_append_to_two_tables_at_once_and_nobody_sees_one_without_the_other(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, crew: Crew, spark: SparkSession, commits: int
) -> None:
    tables = [create(catalog, tmp_path, name=name) for name in BOTH]
    catalog.close()
    with Reader(catalog_uri) as reader:
        done = [each for answer in crew.do(append_to_both, catalog_uri, BOTH, commits) for each in answer]
    assert reader.seen[-1] <= WRITERS * commits
    assert reader.seen == sorted(reader.seen)
    assert len(set(reader.seen)) > 2, "the reader has seen the tables only before and after"
    pairs = [tuple(each[name].version for name in BOTH) for each in done]
    assert sorted(pairs) == [(version, version) for version in range(1, WRITERS * commits + 1)]
    groups = [{each[name].group_id for name in BOTH} for each in done]
    assert all(len(group) == 1 and None not in group for group in groups)
    for table in tables:
        check(catalog, table, tmp_path / table.name, spark, commits)


class Reader:
    """Looks at two tables in one statement, again and again while the block runs: heads and groups must be equal."""

    _SQL = """
        SELECT a.current_version, b.current_version,
               (SELECT max(version) FROM dl_table_versions WHERE table_id = a.table_id),
               (SELECT max(version) FROM dl_table_versions WHERE table_id = b.table_id),
               (SELECT group_id FROM dl_table_versions WHERE table_id = a.table_id AND version = a.current_version),
               (SELECT group_id FROM dl_table_versions WHERE table_id = b.table_id AND version = b.current_version)
        FROM dl_table_heads AS a JOIN dl_tables AS t ON t.table_id = a.table_id AND t.name = 'sales.orders'
        CROSS JOIN dl_table_heads AS b JOIN dl_tables AS u ON u.table_id = b.table_id AND u.name = 'sales.items'
    """

    def __init__(self, uri: str) -> None:
        self.seen: list[int] = []
        self._uri = uri
        self._halves: list[Any] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        assert self._halves == []

    def _look(self) -> None:
        with open_catalog(self._uri, busy_timeout=300) as catalog:
            while not self._over.is_set():
                with catalog.engine.reading() as connection:
                    [row] = connection.execute(self._SQL).fetchall()
                *versions, group, other = row
                if len(set(versions)) > 1 or (versions[0] > 0 and group != other):
                    self._halves.append(tuple(row))
                if self.seen[-1:] != versions[:1]:
                    self.seen.append(versions[0])
