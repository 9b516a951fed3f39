"""`snapshot.files()`: the same rows by SQL on the driver, by spans and by replay in the executors, at every version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from catalogs import change
from chispa import assert_df_equality
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from spark_cases import BARE, ODD_VALUES, add, info, odd_commits, put, value_of, write_log

from mainstem import Catalog, frames, open_catalog, replay
from mainstem.columns import FILE_COLUMNS, SEQ
from mainstem.engines.postgres_server import PostgresServer
from mainstem.errors import UsageError
from mainstem.snapshot import FilesEngine, Snapshot
from mainstem.table import Table

pytestmark = pytest.mark.spark

HOW: tuple[FilesEngine, ...] = ("sql", "spans", "replay")
EVERY_BUCKET = list(range(256))
RANGE = re.compile(r"path_bucket BETWEEN (\d+) AND (\d+)")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a table with every way in which a file comes and goes."""
    return write_log(tmp_path_factory.mktemp("odd"), odd_commits())


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session for plans of many small pieces: without generated code they take a third of the time."""
    small = spark.newSession()
    small.conf.set("spark.sql.shuffle.partitions", "2")
    small.conf.set("spark.sql.codegen.wholeStage", "false")
    small.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return small


@pytest.fixture
def table(catalog: Catalog, catalog_uri: str, log: Path, session: SparkSession) -> Table:
    catalog.import_table(str(log), name="odd.one")
    return open_catalog(catalog_uri, spark=session).table("odd.one")


def together(many: Iterable[DataFrame]) -> DataFrame:
    """Many small frames as one: Spark's price for a job is paid once."""
    return reduce(DataFrame.unionAll, many)


@pytest.mark.parametrize("how", HOW)
def test_files_are_those_of_to_arrow_at_every_version(table: Table, session: SparkSession, how: FilesEngine) -> None:
    snapshots = [table.snapshot(version=version) for version in range(table.version + 1)]
    found = together(shot.files(engine=how).withColumn("at", F.lit(shot.version).cast("bigint")) for shot in snapshots)
    arrows = [shot.to_arrow() for shot in snapshots]
    assert [arrow.num_rows for arrow in arrows] == [0, 320, 316, 316, 316, 336, 336, 292, 273]
    dated = [arrow.append_column("at", pa.array([at] * arrow.num_rows, pa.int64())) for at, arrow in enumerate(arrows)]
    expected = session.createDataFrame(pa.concat_tables(dated))
    assert_df_equality(found.select(*expected.columns), expected, ignore_row_order=True, ignore_nullable=True)


@pytest.mark.parametrize("how", HOW)
def test_the_columns_are_exactly_those_that_are_promised(table: Table, how: FilesEngine) -> None:
    for version in (0, 8):
        fields = table.snapshot(version=version).files(engine=how).schema.fields
        assert [(field.name, field.dataType.simpleString()) for field in fields] == [
            (column.name, column.spark) for column in FILE_COLUMNS
        ]
        assert all(field.nullable for field in fields)


# Which files may match, by the number that their statistics and partitions are made from. An empty text may be NULL.
MAY_MATCH: dict[str, Callable[[int], bool]] = {
    "id BETWEEN 1000 AND 1019": lambda n: n in (100, 101),
    "p IS NULL AND id < 500": lambda n: value_of(n) in (None, "") and n < 50,
    "p IS NULL OR p IN ('it\\'s', 'plain')": lambda n: value_of(n) in (None, "", "it's", "plain"),
    "id = 15 OR name IS NULL": lambda n: n == 1 or n % 3 > 0,
    "name LIKE 'n0010%' AND id > 1005": lambda n: 100 <= n < 110,
    "length(name) = 3": lambda n: True,
    "id > 100000": lambda n: False,
}


def number_of(path: str) -> int:
    return int(path.split("-")[1])


def test_a_predicate_keeps_the_same_files_whoever_looks(table: Table) -> None:
    snapshot = table.snapshot()
    for how in HOW:
        found = together(
            snapshot.files(where=where, engine=how).select(F.lit(where).alias("asked"), "path", "stats")
            for where in MAY_MATCH
        )
        kept: dict[str, list[int]] = {where: [] for where in MAY_MATCH}
        for row in found.collect():
            kept[row["asked"]].append(number_of(row["path"]))
        for where, may_match in MAY_MATCH.items():
            live = snapshot.to_arrow(columns=["path", "stats"]).to_pylist()
            by_partition = where.startswith("p IS NULL")
            expected = [
                number
                for number, stats in ((number_of(row["path"]), row["stats"]) for row in live)
                if may_match(number) or (stats == BARE and (not by_partition or value_of(number) in (None, "")))
            ]
            assert sorted(kept[where]) == sorted(expected), (how, where)
            assert sorted(expected) == sorted(map(number_of, snapshot.to_arrow(where=where)["path"].to_pylist()))


def quoted(text: str) -> str:
    """A text as Spark's SQL writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.parametrize("how", HOW)
def test_any_partition_value_survives_the_way_through_jdbc(table: Table, how: FilesEngine) -> None:
    """A value is looked for as it is, and never becomes a piece of the statement."""
    snapshot = table.snapshot()
    values = [value for value in ODD_VALUES if value][: 2 if how == "replay" else None]
    found = together(
        snapshot.files(where=f"p = {quoted(value)}", engine=how).select(
            F.lit(value).alias("asked"), F.get_json_object("partition_values", "$.p").alias("got"), "path"
        )
        for value in values
    )
    rows = [(row["asked"], row["got"]) for row in found.collect()]
    live = [row["partition_values"] for row in snapshot.to_arrow(columns=["partition_values"]).to_pylist()]
    assert {asked for asked, _ in rows} == set(values)
    assert all(asked == got for asked, got in rows)
    assert len(rows) == sum(json.loads(text)["p"] in values for text in live)


def is_read_on_the_driver(frame: DataFrame) -> bool:
    return "JDBCRelation" not in plan(frame)


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_auto_reads_on_the_driver_up_to_the_setting_and_in_the_executors_beyond(
    catalog_uri: str, catalog: Catalog, table: Table
) -> None:
    live = table.snapshot().size().files
    for most, on_driver in ((live, True), (live - 1, False), (0, False)):
        with open_catalog(catalog_uri, driver_files=most) as other:
            frame = other.table("odd.one").snapshot().files()
            assert is_read_on_the_driver(frame) is on_driver
            assert frame.count() == live
    assert catalog.settings.driver_files == 1_000_000
    assert is_read_on_the_driver(table.snapshot().files(where="id < 10"))


def test_an_engine_that_does_not_exist_is_refused(table: Table) -> None:
    with pytest.raises(UsageError, match="auto, sql, spans or replay"):
        table.snapshot().files(engine="fast")  # type: ignore[arg-type]


def test_a_frame_stays_at_its_version_while_the_table_goes_on(
    catalog: Catalog, tmp_path: Path, spark: SparkSession
) -> None:
    write_log(tmp_path, odd_commits()[:2])
    catalog.import_table(str(tmp_path), name="moving")
    table = catalog.table("moving")
    before = [table.snapshot().files(engine=how) for how in HOW]
    put(tmp_path, f"{2:020d}.json", [info("WRITE", 2), add(700), *odd_commits()[2][1:]], 2)
    assert table.follow().version == 2
    assert [frame.count() for frame in before] == [320, 320, 320]
    assert [table.snapshot().files(engine=how).count() for how in HOW] == [317, 317, 317]


def lazy_frames(snapshot: Snapshot) -> Iterator[DataFrame]:
    """What Spark reads later: by spans and by replay, of all files, and of none."""
    for where in (None, "p = 'nothing'"):
        yield snapshot.files(where=where, engine="spans")
        yield snapshot.files(where=where, engine="replay")


def test_a_frame_that_is_read_after_its_version_expired_raises(catalog: Catalog, table: Table) -> None:
    """Whatever its slices would have found: the statement that reads the rows asks whether they are all there."""
    gone, kept = list(lazy_frames(table.snapshot(version=5))), together(lazy_frames(table.snapshot(version=6)))
    if catalog.engine.capabilities.many_processes:
        with pytest.raises(UsageError, match="holds version 5"):
            table.expire(before_version=6)
    change(catalog, "UPDATE dl_leases SET expires_at = created_at")
    assert table.expire(before_version=6).rows > 0
    for frame in gone:
        with pytest.raises(Exception, match=r"Mainstem: version 5 of table .* was expired or replaced"):
            frame.collect()
    assert kept.count() == 336 * 2


def test_a_frame_that_is_read_after_its_version_was_replaced_raises(
    catalog: Catalog, tmp_path: Path, session: SparkSession
) -> None:
    write_log(tmp_path, odd_commits()[:2])
    catalog.import_table(str(tmp_path), name="moving")
    snapshot = catalog.table("moving").snapshot()
    before = [snapshot.files(engine="spans"), snapshot.files(engine="replay")]
    put(tmp_path, f"{1:020d}.json", [info("WRITE", 1), add(700)], 1)
    catalog.import_table(str(tmp_path), name="moving", force=True)
    for frame in before:
        with pytest.raises(Exception, match=r"Mainstem: version 1 of table .* was expired or replaced"):
            frame.collect()


def oldest_first() -> Sequence[Column]:
    return F.asc("version"), F.desc("is_add"), F.desc("seq")


def removes_win() -> Sequence[Column]:
    return F.desc("version"), F.asc("is_add"), F.desc("seq")


def test_a_replay_with_any_other_rule_is_found_out(tmp_path: Path, log: Path, session: SparkSession) -> None:
    """One that forgets the deletion vector, lets the first action win, or a remove of the same version."""
    with open_catalog(f"sqlite:///{tmp_path}/lake.db", spark=session) as catalog:
        catalog.migrate()
        catalog.import_table(str(log), name="odd.one")
        snapshot = catalog.table("odd.one").snapshot(version=6)
        asked = (session, catalog.engine, snapshot.table_id, snapshot.version)
        columns = (*frames.ACTION_COLUMNS, FILE_COLUMNS[0])
        actions = replay.actions(frames.adds(*asked, columns=columns), frames.removes(*asked, columns=columns))
        rows = frames.adds(*asked, columns=(*FILE_COLUMNS, SEQ))

        def files(**rule: Any) -> list[tuple[str, str, int]]:
            found = replay.files_at(replay.live_places(actions, **rule), rows)
            return sorted((row.path, row.dv_id or "", row.version) for row in found.collect())

        right = sorted((row["path"], row["dv_id"] or "", row["version"]) for row in snapshot.to_arrow().to_pylist())
        assert files() == right
        assert files(file="path") != right
        assert files(ranking=oldest_first) != right
        assert files(ranking=removes_win) != right


# What Spark and the databases are asked to do.


def below(text: str, operator: str) -> list[str]:
    """The lines of a plan under each operator of that name."""
    lines, found = text.splitlines(), []
    for start, line in enumerate(lines):
        depth = len(line) - len(line.lstrip(" :+-*("))
        if re.match(rf"[ :+\-*(0-9)]*{operator} ", line):
            inside = []
            for following in lines[start + 1 :]:
                # The text of a query goes over several lines, which begin at the margin.
                tree = re.match(r"[ :]*[:+]- ", following)
                if tree and tree.end() <= depth:
                    break
                inside.append(following)
            found.append("\n".join(inside))
    return found


def test_replay_ranks_narrow_rows_where_they_are_read_and_joins_the_wide_ones_late(table: Table) -> None:
    text = plan(table.snapshot(version=5).files(engine="replay"))
    ranked = below(text, "Window")
    assert len(ranked) == 2
    for inside in ranked:
        assert inside.count("Scan JDBCRelation") == 2
        assert "FROM dl_remove_files" in inside
        assert "Exchange" not in inside
        assert not re.search(r"\b(stats|path|partition_values|tags)\b", inside)
    wide = [line for line in text.split("Scan JDBCRelation")[1:] if "stats" in line]
    assert len(wide) == 1
    assert "Sort [place" not in text


def relations(frame: DataFrame) -> list[str]:
    """The queries that a frame's tasks send, without the slice that each adds."""
    found = re.findall(r"Scan JDBCRelation\(\((.*?)\) AS rows_of_query\)", plan(frame), flags=re.DOTALL)
    return [" ".join(query.split()) for query in found]


@pytest.mark.parametrize("how", ["spans", "replay"])
def test_every_query_over_jdbc_is_bounded_by_table_and_version(table: Table, how: FilesEngine) -> None:
    snapshot = table.snapshot(version=5)
    queries = relations(snapshot.files(engine=how))
    assert len(queries) == {"spans": 1, "replay": 5}[how]
    for query in queries:
        assert f"WHERE table_id = '{snapshot.table_id}' AND version <= 5" in query
        assert ", path_bucket FROM dl_" in query


def test_slices_cover_every_bucket_once_and_follow_the_setting(
    catalog_uri: str, table: Table, spark: SparkSession
) -> None:
    with open_catalog(catalog_uri, jdbc_slices=5) as other:
        frame = other.table("odd.one").snapshot().files(engine="spans")
        assert frame.selectExpr("spark_partition_id() AS part").distinct().count() == 5
        assert frame.count() == 273


@pytest.fixture
def logged(postgres_server: PostgresServer, log: Path, spark: SparkSession) -> Iterator[Table]:
    """The table in a Postgres whose log shows every statement."""
    schema = f"test_{uuid4().hex[:12]}"
    with open_catalog(f"{postgres_server.uri()}?schema={schema}") as catalog:
        catalog.migrate()
        catalog.import_table(str(log), name="odd.one")
        yield catalog.table("odd.one")
    with psycopg.connect(postgres_server.uri(), autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')


def statements(server: PostgresServer, since: int, table_id: str) -> list[str]:
    """What the server says that it was asked for about the table, over JDBC, each statement on one line."""
    lines = re.split(r"\n(?=\d{4}-\d\d-\d\d )", server.log_text()[since:])
    asked = [" ".join(line.split()) for line in lines]
    return [line for line in asked if "rows_of_query" in line and table_id in line and "execute fetch" not in line]


@pytest.mark.parametrize("how", ["spans", "replay"])
def test_the_servers_own_log_shows_the_bounds_in_every_slice(
    postgres_server: PostgresServer, logged: Table, how: FilesEngine
) -> None:
    snapshot = logged.snapshot(version=6)
    since = len(postgres_server.log_text())
    frame = snapshot.files(where="p = '\\' OR 1=1 --' OR id < 100", engine=how)
    assert frame.count() == 54
    asked = statements(postgres_server, since, snapshot.table_id)
    for statement in asked:
        assert f"table_id = '{snapshot.table_id}'" in statement
        assert "version <= 6" in statement
        assert "OR 1=1" not in statement
    # Spark asks once for the columns of each query; everything else is a slice.
    slices = [statement for statement in asked if "WHERE 1=0" not in statement]
    by_query: dict[str, list[int]] = {}
    for statement in slices:
        [(low, high)] = RANGE.findall(statement)
        query = re.sub(r".* FROM \((.*)\) AS rows_of_query.*", r"\1", statement)
        by_query.setdefault(query, []).extend(range(int(low), int(high) + 1))
    assert all(sorted(buckets) == EVERY_BUCKET for buckets in by_query.values())
    assert len(by_query) == {"spans": 1, "replay": 3}[how]
    assert len(slices) == 2 * len(by_query)
