"""Every operation on every kind of table, on one of ours and on a control table by plain Delta, step by step.

After each step both have the same rows, schema, properties, protocol, history and change feed: ours is read through the
catalog, by plain Delta from the published log, and by delta-rs, which can read all of these tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mainstem import Catalog, Table, open_catalog

NO_ICT = {"delta.enableInCommitTimestamps": "false"}
DV = {"delta.enableDeletionVectors": "true"}
MAPPING = {"delta.columnMapping.mode": "name"}
ROW_IDS = {"delta.enableRowTracking": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
ICT = {"delta.enableInCommitTimestamps": "true"}
CHECK = {"delta.constraints.small": "id < 1000", "delta.feature.checkConstraints": "supported"}


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    properties: dict[str, str]
    partitioned: bool = False


# In every run each feature meets every operation, several a table; in the slow run each is by itself, or none is there.
KINDS = {
    "partitioned, constraint, in-commit timestamps, column mapping, row tracking": Kind(
        {**ICT, **CHECK, **MAPPING, **ROW_IDS}, partitioned=True
    ),
    "deletion vectors, change feed": Kind({**NO_ICT, **DV, **FEED}),
}
SLOW = {
    "plain": Kind(NO_ICT),
    "partitioned": Kind(NO_ICT, partitioned=True),
    "deletion vectors": Kind({**NO_ICT, **DV}),
    "column mapping": Kind({**NO_ICT, **MAPPING}),
    "row tracking": Kind({**NO_ICT, **ROW_IDS}),
    "change feed": Kind({**NO_ICT, **FEED}),
    "in-commit timestamps": Kind(ICT),
    "constraint": Kind({**NO_ICT, **CHECK}),
    # Delta overwrites no table that has both once a mapped column was renamed.
    "everything but a change feed": Kind({**ICT, **CHECK, **DV, **MAPPING, **ROW_IDS}, partitioned=True),
    "everything but column mapping": Kind({**ICT, **CHECK, **DV, **ROW_IDS, **FEED}, partitioned=True),
}
SLOW_ENGINES = [pytest.param(name, marks=pytest.mark.slow) for name in ("postgres", "duckdb")]
# Names and moments that differ between any two tables.
OWN = {"delta.rowTracking.materializedRowIdColumnName", "delta.rowTracking.materializedRowCommitVersionColumnName"}


class Pair:
    """The two tables, and what is done to both."""

    def __init__(self, spark: SparkSession, mine: Table, control: str) -> None:
        self.spark = spark
        self.mine = mine
        self.control = control

    def rows(self, *values: str, columns: str = "id, p, v") -> DataFrame:
        return self.spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(values)} AS x({columns})")

    def sql(self, statement: str) -> None:
        """Plain Delta on the control table, which the statement calls {T}."""
        self.spark.sql(statement.replace("{T}", f"delta.`{self.control}`")).collect()

    def write(self, rows: DataFrame, mode: str, **options: str) -> None:
        rows.write.format("delta").mode(mode).options(**options).save(self.control)


Step = Callable[[Pair], None]
STEPS: list[Step] = []


def step(function: Step) -> Step:
    STEPS.append(function)
    return function


@step
def append(pair: Pair) -> None:
    rows = pair.rows("(1L, 'a', 1.5D)", "(2L, 'a', 2.5D)", "(3L, 'b', 3.5D)", "(4L, 'b', NULL)", "(5L, NULL, 5.5D)")
    pair.mine.append(rows)
    pair.write(rows, "append")


@step
def append_with_a_new_column(pair: Pair) -> None:
    rows = pair.rows("(6L, 'a', 6.5D, 'new')", "(7L, 'c', 7.5D, NULL)", columns="id, p, v, note")
    pair.mine.append(rows, schema_evolution=True)
    pair.write(rows, "append", mergeSchema="true")


@step
def update(pair: Pair) -> None:
    pair.mine.update(set={"v": "v * 10", "note": "'updated'"}, where="id IN (2, 6)")
    pair.sql("UPDATE {T} SET v = v * 10, note = 'updated' WHERE id IN (2, 6)")


@step
def delete(pair: Pair) -> None:
    pair.mine.delete("id = 1 OR v IS NULL")
    pair.sql("DELETE FROM {T} WHERE id = 1 OR v IS NULL")


@step
def merge_with_all_clauses(pair: Pair) -> None:
    values = ("(2L, 'a', 22D, 'm')", "(3L, 'b', -1D, 'gone')", "(8L, 'c', 8.5D, 'in')", "(9L, 'd', 9.5D, 'all')")
    source = pair.rows(*values, columns="id, p, v, note")
    (
        pair.mine.merge(source, on="t.id = s.id")
        .when_matched_delete(condition="s.v < 0")
        .when_matched_update(set={"v": "s.v", "note": "s.note"}, condition="s.id = 2")
        .when_matched_update_all()
        .when_not_matched_insert(values={"id": "s.id", "p": "s.p", "v": 0.5}, condition="s.id = 8")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update(set={"note": "'alone'"}, condition="t.id = 7")
        .when_not_matched_by_source_delete(condition="t.id = 6")
        .execute()
    )
    source.createOrReplaceTempView("matrix_source")
    pair.sql(
        "MERGE INTO {T} t USING matrix_source s ON t.id = s.id WHEN MATCHED AND s.v < 0 THEN DELETE "
        "WHEN MATCHED AND s.id = 2 THEN UPDATE SET v = s.v, note = s.note WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED AND s.id = 8 THEN INSERT (id, p, v) VALUES (s.id, s.p, 0.5D) "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN UPDATE SET note = 'alone' "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN DELETE"
    )


@step
def replace_where(pair: Pair) -> None:
    rows = pair.rows("(10L, 'a', 10.5D, NULL)", "(11L, 'a', 11.5D, 'r')", columns="id, p, v, note")
    pair.mine.overwrite(rows, replace_where="p = 'a'")
    pair.write(rows, "overwrite", replaceWhere="p = 'a'")


@step
def overwrite_partitions(pair: Pair) -> None:
    rows = pair.rows("(12L, 'c', 12.5D, 'o')", "(13L, NULL, 13.5D, 'o')", columns="id, p, v, note")
    pair.mine.overwrite(rows, partitions="dynamic")
    pair.write(rows, "overwrite", partitionOverwriteMode="dynamic")


@step
def alter_columns_and_properties(pair: Pair) -> None:
    for change in ("ADD COLUMNS (extra INT COMMENT 'later' AFTER v)", "SET TBLPROPERTIES ('team' = 'it''s ours')"):
        pair.mine.alter(change)
        pair.sql(f"ALTER TABLE {{T}} {change}")


@step
def merge_with_a_new_column(pair: Pair) -> None:
    source = pair.rows("(12L, 'c', 1D, 7)", "(14L, 'a', 14D, 8)", columns="id, p, v, fresh")
    merging = pair.mine.merge(source, on="t.id = s.id AND t.p = 'c'").with_schema_evolution()
    merging.when_matched_update_all().when_not_matched_insert_all().execute()
    source.createOrReplaceTempView("matrix_source")
    pair.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO {T} t USING matrix_source s ON t.id = s.id AND t.p = 'c' "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


@step
def rename_and_drop_columns(pair: Pair) -> None:
    mapped = pair.mine.snapshot().properties.get("delta.columnMapping.mode") == "name"
    for change in ("RENAME COLUMN note TO remark", "DROP COLUMN extra"):
        mine = outcome(partial(pair.mine.alter, change))
        assert mine == outcome(partial(pair.sql, f"ALTER TABLE {{T}} {change}"))
        assert (mine is None) == mapped  # without column mapping Delta refuses both


@step
def optimize(pair: Pair) -> None:
    pair.mine.optimize()
    pair.sql("OPTIMIZE {T}")


@step
def zorder(pair: Pair) -> None:
    pair.mine.optimize(zorder_by=["id"])
    pair.sql("OPTIMIZE {T} ZORDER BY (id)")


@step
def constraint(pair: Pair) -> None:
    pair.mine.alter("ADD CONSTRAINT positive CHECK (id > 0)")
    pair.sql("ALTER TABLE {T} ADD CONSTRAINT positive CHECK (id > 0)")
    rows = pair.rows("(-1L, 'a', 1D)")
    assert outcome(lambda: pair.mine.append(rows)) == outcome(lambda: pair.write(rows, "append")) is not None
    refused = outcome(lambda: pair.mine.alter("ADD CONSTRAINT large CHECK (id > 100)"))
    assert refused == outcome(lambda: pair.sql("ALTER TABLE {T} ADD CONSTRAINT large CHECK (id > 100)")) is not None


@step
def drop_constraint(pair: Pair) -> None:
    pair.mine.alter("DROP CONSTRAINT positive")
    pair.sql("ALTER TABLE {T} DROP CONSTRAINT positive")


@step
def overwrite_all(pair: Pair) -> None:
    rows = pair.rows("(20L, 'z', 20D, 'only')", columns="id, p, v, other")
    pair.mine.overwrite(rows, schema_evolution=True)
    pair.write(rows, "overwrite", overwriteSchema="true")


@step
def restore(pair: Pair) -> None:
    pair.mine.restore(version=2)
    pair.sql("RESTORE TABLE {T} TO VERSION AS OF 2")


@step
def delete_all(pair: Pair) -> None:
    pair.mine.delete()
    pair.sql("DELETE FROM {T}")


def outcome(act: Callable[[], object]) -> str | None:
    """Delta's name of the error that this ends in; None where it ends well."""
    try:
        act()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        return text[text.index("[") + 1 : text.index("]")]
    return None


@pytest.fixture(scope="module", params=["sqlite", *SLOW_ENGINES])
def lake(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[Catalog]:
    """A catalog: in every run on SQLite, in the slow run on the others, too."""
    folder, schema = tmp_path_factory.mktemp("matrix"), f"matrix_{uuid4().hex[:12]}"
    server = request.getfixturevalue("postgres_uri") if request.param == "postgres" else None
    uri = f"{request.param}:///{folder}/lake.db" if server is None else f"{server}?schema={schema}"
    with open_catalog(uri, spark=spark) as opened:
        opened.migrate()
        yield opened
    if server is not None:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=name) for name, kind in KINDS.items()]
    + [pytest.param(kind, id=name, marks=pytest.mark.slow) for name, kind in SLOW.items()],
)
def test_after_every_operation_a_table_equals_one_of_plain_delta(
    kind: Kind, lake: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    name = f"matrix.t{len(lake.tables())}"
    columns, partitions = "id BIGINT, p STRING, v DOUBLE", ["p"] if kind.partitioned else []
    mine = lake.create_table(
        name, location=str(tmp_path / "mine"), schema=columns, partition_by=partitions, properties=kind.properties
    )
    control = str(tmp_path / "control")
    given = ", ".join(f"'{key}' = '{value}'" for key, value in kind.properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{control}` ({columns}) USING delta "
        f"{'PARTITIONED BY (p)' if kind.partitioned else ''} TBLPROPERTIES ({given})"
    )
    pair = Pair(spark, mine, control)
    before = 0
    for each in STEPS:
        each(pair)
        compare(pair, kind, each.__name__, before)
        before = mine.version


def compare(pair: Pair, kind: Kind, step_name: str, before: int) -> None:
    spark, mine = pair.spark, pair.mine
    published, control = Log(Path(mine.location)), Log(Path(pair.control))
    assert published.version == control.version == mine.version, step_name
    assert published.state == control.state, step_name
    frames = {
        "catalog": mine.read(),
        "published": spark.read.format("delta").load(mine.location),
        "control": spark.read.format("delta").load(pair.control),
    }
    schemas = {source: frame.schema.json() for source, frame in frames.items()}
    assert len(set(schemas.values())) == 1, f"{step_name}: {schemas}"
    if ROW_IDS.items() <= kind.properties.items():
        frames = {
            source: frame.select("*", "_metadata.row_commit_version", "_metadata.row_id")
            for source, frame in frames.items()
        }
    if FEED.items() <= kind.properties.items() and mine.version > before:
        feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", before + 1)
        frames["changes"] = mine.changes(from_version=before + 1).drop("_commit_timestamp")
        frames["control's changes"] = feed.load(pair.control).drop("_commit_timestamp")
    found = contents(frames)
    assert found["catalog"] == found["published"] == found["control"], step_name
    assert found["changes"] == found["control's changes"], step_name
    assert deltars(mine.location) == deltars(pair.control), step_name


def contents(frames: dict[str, DataFrame]) -> dict[str, Counter[str]]:
    """The rows of all frames, by one job of Spark's."""
    texts = [
        frame.select(
            F.lit(source).alias("source"), F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row")
        )
        for source, frame in frames.items()
    ]
    union = texts[0]
    for each in texts[1:]:
        union = union.unionAll(each)
    found: dict[str, Counter[str]] = {source: Counter() for source in ("changes", "control's changes", *frames)}
    for source, row in union.collect():
        found[source][row] += 1
    return found


def deltars(location: str) -> Counter[str]:
    """The rows as delta-rs reads them."""
    rows = QueryBuilder().register("t", DeltaTable(location)).execute("SELECT * FROM t").read_all()
    return Counter(repr(row) for row in pa.table(rows).to_pylist())


class Log:
    """What a `_delta_log` says, read as JSON: no reader of ours has a part in it."""

    def __init__(self, root: Path) -> None:
        self.history: list[tuple[Any, ...]] = []
        self.metadata: dict[str, Any] = {}
        self.protocol: dict[str, Any] = {}
        files = sorted((root / "_delta_log").glob("*.json"))
        self.version = len(files) - 1
        for file in files:
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            kinds = Counter(key for action in actions for key in action)
            for action in actions:
                self.metadata = action.get("metaData", self.metadata)
                self.protocol = action.get("protocol", self.protocol)
            info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
            if info["operation"] == "RESTORE":
                del kinds["protocol"]  # Delta writes it again though it is the same; we leave it as it is
            self.history.append((info["operation"], sorted(kinds.items())))

    @property
    def state(self) -> tuple[Any, ...]:
        kept = {key: value for key, value in self.metadata["configuration"].items() if key not in OWN}
        features = {key: sorted(value) if isinstance(value, list) else value for key, value in self.protocol.items()}
        return self.metadata["partitionColumns"], kept, features, self.history
