"""Delta Spark and delta-rs open a log that has nothing but our checkpoint and the commit of its version."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _pytest.mark import ParameterSet
from corpus import ABSENT, CorpusTable, corpus_tables
from delta_oracle import DeltaSpark
from deltalake import DeltaTable
from handmade import DAY_MS, full_log, lead
from pyspark.sql import SparkSession
from states import State, delta_spelling, of_snapshot
from test_corpus import DELTA_REFUSES, DELTARS_REFUSES, REFUSED

from mainstem import Catalog, open_catalog
from mainstem.checkpoint import WrittenCheckpoint, open_state, write_checkpoint, write_state
from mainstem.checkpoint.plan import Kind, TopFormat
from mainstem.deltalog.writing import LogWriter

# One of every kind of state: deletion vectors of each sort, column mapping by name and id, row tracking, domains and
# clustering, applications, v2 checkpoints, absolute paths, odd partition values, variant, in-commit timestamps.
ALWAYS = {
    "dat/iceberg_compat_v1/delta",
    "delta-kernel/kernel-pagination-v2-checkpoint-json",
    "delta-rs/cdc_ict_table",
    "delta-rs/delta-0.8.0-null-partition",
    "delta-rs/table-with-domain-metadata",
    "delta-spark/partitioned-table-with-dv-large",
    "delta-spark/variant-stats-state-reconstruction",
    "kernel-rs/app-txn-checkpoint",
    "kernel-rs/partition_cm/id",
    "kernel-rs-golden/canonicalized-paths-special-b/delta",
    "kernel-rs-golden/dv-with-columnmapping/delta",
    "kernel-rs-zst/cdf-table-with-dv",
    "trino/deltalake/clone_merge/clone_merge_deletion_vector_cloned",
}
# Tables that have no schema, which delta-rs demands, or whose values it does not parse; see test_corpus.
NOT_FOR_DELTARS = set(DELTARS_REFUSES)


def cases() -> list[ParameterSet]:
    if not corpus_tables():
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=ABSENT))]
    return [
        pytest.param(table, id=table.name, marks=() if table.name in ALWAYS else pytest.mark.slow)
        for table in corpus_tables()
        if table.name not in REFUSED and table.name not in DELTA_REFUSES
    ]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """One catalog for all of these tests: what a checkpoint says does not depend on the engine."""
    with open_catalog(f"sqlite:///{tmp_path_factory.mktemp('catalog')}/lake.db") as opened:
        opened.migrate()
        yield opened


def keep_only(root: Path, written: WrittenCheckpoint) -> None:
    """Take everything out of a log but a checkpoint and the commit of its version."""
    log = root / "_delta_log"
    wanted = {*written.files, "_last_checkpoint", f"{written.version:020d}.json"}
    for file in [path for path in log.rglob("*") if path.is_file()]:
        if str(file.relative_to(log)) not in wanted:
            file.unlink()
    commit = log / f"{written.version:020d}.json"
    if not commit.exists():  # cleaned up before the table came to us; Delta wants one beside a checkpoint
        commit.write_text('{"commitInfo":{"operation":"TEST"}}\n')


def require_equal(ours: State, theirs: State) -> None:
    """All that Delta says, every text as it is; but statistics by what they mean, where the table wants no text."""
    assert theirs.metadata == ours.metadata
    assert theirs.protocol == ours.protocol
    assert theirs.domains == ours.domains
    assert theirs.transactions == ours.transactions
    spelled = {(delta_spelling(path), dv): file for (path, dv), file in ours.files.items()}
    if has_no_text(ours):
        typed = ours.metadata["configuration"].get("delta.checkpoint.writeStatsAsStruct") != "false"
        assert {known: meaning(file.stats) for known, file in theirs.files.items()} == {
            known: meaning(file.stats) if typed else None for known, file in spelled.items()
        }
        spelled = {known: replace(file, stats=theirs.files[known].stats) for known, file in spelled.items()}
    assert theirs.files == spelled


def has_no_text(state: State) -> bool:
    """Whether the table wants no statistics as text in its checkpoints."""
    return bool(state.metadata["configuration"].get("delta.checkpoint.writeStatsAsJson") == "false")


def meaning(stats: str | None) -> Any:
    """Statistics without what says nothing: a null, an empty object."""

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: found for key, item in value.items() if (found := told(item)) not in (None, {})}
        return value

    return None if stats is None else told(json.loads(stats))


def require_equal_in_deltars(root: Path, ours: State) -> None:
    theirs = DeltaTable(str(root))
    files = {row["path"]: row for row in pa.table(theirs.get_add_actions()).to_pylist()}
    assert sorted(files) == sorted(path for path, _ in ours.files)
    for (path, _), file in ours.files.items():
        row = files[path]
        assert (row["size_bytes"], row["modification_time"]) == (file.size, file.modification_time)
        if not (row["num_records"] is None and has_no_text(ours)):  # of typed ones delta-rs does not always show it
            assert row["num_records"] == (file.meaning_of_stats or {}).get("numRecords")
    metadata = theirs.metadata()
    assert (metadata.id, metadata.partition_columns, metadata.configuration) == (
        ours.metadata["id"],
        ours.metadata["partitionColumns"],
        ours.metadata["configuration"],
    )
    assert json.loads(theirs.schema().to_json()) == json.loads(ours.metadata["schemaString"])
    assert sorted(theirs.protocol().writer_features or ()) == (ours.protocol["writerFeatures"] or [])
    assert all(theirs.transaction_version(app) == number for app, number in ours.transactions.items())


@pytest.mark.spark
@pytest.mark.parametrize("table", cases())
def test_a_table_of_the_corpus_is_the_same_from_our_checkpoint_alone(
    table: CorpusTable, catalog: Catalog, delta: DeltaSpark, tmp_path: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(table.root, root, ignore=shutil.ignore_patterns(".*.crc"))
    catalog.import_table(str(root), name=table.name)
    snapshot = catalog.table(table.name).snapshot()
    ours = of_snapshot(snapshot)
    tops: tuple[TopFormat, ...] = ("json",)
    if "v2Checkpoint" in (ours.protocol["readerFeatures"] or ()):
        tops = ("json", "parquet")
    for top in tops:
        state = open_state(snapshot, now_ms=int(time.time() * 1000))
        keep_only(root, write_state(state, writer=LogWriter.open(str(root)), top=top))
        require_equal(ours, delta.state(str(root), snapshot.version))
        if table.name not in NOT_FOR_DELTARS:
            require_equal_in_deltars(root, ours)


KINDS: list[tuple[Kind, TopFormat, str]] = [
    ("classic", "json", "driver"),
    ("classic", "json", "spark"),
    ("v2", "json", "driver"),
    ("v2", "parquet", "driver"),
    ("v2", "parquet", "spark"),
]


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "top", "by"), KINDS)
def test_every_kind_of_checkpoint_is_the_state_of_its_commits_with_its_tombstones(
    kind: Kind, top: TopFormat, by: str, delta: DeltaSpark, spark: SparkSession, tmp_path: Path, monkeypatch: Any
) -> None:
    if by == "spark":
        monkeypatch.setenv("MAINSTEM_CHECKPOINT_FILES", "2")
        monkeypatch.setenv("MAINSTEM_JDBC_SLICES", "3")
    log = full_log(tmp_path / "a table é +")
    with open_catalog(f"sqlite:///{tmp_path}/lake.db") as catalog:
        catalog.migrate()
        catalog.import_table(str(log.root), name="t")
        snapshot = catalog.table("t").snapshot()
        commits = delta.state(str(log.root), log.version)
        assert len(commits.tombstones) == 4
        state = open_state(snapshot, now_ms=log.now_ms)
        written = write_state(state, writer=LogWriter.open(str(log.root)), kind=kind, top=top, spark=spark)
        assert written.kind == ("multi-part" if (kind, by) == ("classic", "spark") else kind)
    keep_only(log.root, written)
    found = delta.state(str(log.root), log.version)
    assert found == commits
    require_equal(of_snapshot(snapshot), found)
    require_equal_in_deltars(log.root, of_snapshot(snapshot))


@pytest.mark.spark
def test_leftovers_of_a_killed_writer_are_no_files_of_a_log(
    catalog: Catalog, delta: DeltaSpark, tmp_path: Path
) -> None:
    log = full_log(tmp_path / "t")
    catalog.import_table(str(log.root), name="leftovers")
    lead(catalog, "leftovers")
    write_checkpoint(catalog.store, "leftovers", 3)
    expected = delta.state(str(log.root), log.version)
    folder = log.root / "_delta_log" / ".mainstem-00000000-0000-4000-8000-000000000000"
    (folder / "_temporary").mkdir(parents=True)
    for name in (
        f"{6:020d}.json#1",
        f"{4:020d}.checkpoint.parquet#1",
        "_last_checkpoint#2",
        f"{folder.name}/part-0.parquet",
    ):
        (log.root / "_delta_log" / name).write_bytes(b"half a")
    assert delta.version(str(log.root)) == log.version
    assert delta.state(str(log.root), log.version) == expected
    assert DeltaTable(str(log.root)).version() == log.version
    assert len(pa.table(DeltaTable(str(log.root)).get_add_actions())) == len(expected.files)


@pytest.mark.spark
def test_data_and_vacuum_are_the_same_from_our_checkpoint_alone(
    catalog: Catalog, delta: DeltaSpark, spark: SparkSession, tmp_path: Path
) -> None:
    spark = spark.newSession()
    for key in ("sql.sources.parallelPartitionDiscovery.parallelism", "databricks.delta.snapshotPartitions"):
        spark.conf.set(f"spark.{key}", "1")  # VACUUM would list a handful of files in 10,000 tasks
    root = tmp_path / "data"
    place = f"delta.`{root}`"
    properties = (
        "'delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true'"
    )
    spark.sql(
        f"CREATE TABLE {place} (id BIGINT, day DATE, name STRING) USING delta PARTITIONED BY (day) "
        f"TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO {place} SELECT id, date'2026-01-01' + CAST(id % 3 AS INT), concat('n', id) FROM range(30)")
    spark.sql(f"ALTER TABLE {place} RENAME COLUMN name TO who")
    spark.sql(f"DELETE FROM {place} WHERE id = 7")  # a deletion vector
    spark.sql(f"DELETE FROM {place} WHERE day = '2026-01-01'")  # a file that is gone
    (root / "orphan.parquet").write_bytes(b"left by a failed write")
    long_ago = time.time() - 30 * DAY_MS / 1000
    for file in root.rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            os.utime(file, (long_ago, long_ago))

    def seen() -> tuple[set[str], list[Any]]:
        dry = {row[0].rsplit("/", 1)[-1] for row in spark.sql(f"VACUUM {place} DRY RUN").collect()}
        columns = "id", "day", "who", "_metadata.row_id", "_metadata.row_commit_version"
        return dry, sorted(map(tuple, spark.read.format("delta").load(str(root)).select(*columns).collect()))

    expected, before = seen(), delta.state(str(root), 4)
    assert expected[0] == {"orphan.parquet"}
    assert len(before.tombstones) == 3
    catalog.import_table(str(root), name="data")
    lead(catalog, "data")
    keep_only(root, write_checkpoint(catalog.store, "data", 4))
    assert delta.state(str(root), 4) == before
    assert seen() == expected
    spark.sql(f"INSERT INTO {place} VALUES (100, date'2026-02-02', 'later')")  # and Delta goes on from there
    newer = {
        row["id"]: row["row_id"]
        for row in spark.read.format("delta").load(str(root)).select("id", "_metadata.row_id").collect()
    }
    assert newer[100] >= 30


ALL_TYPES = {
    "b": "TINYINT", "h": "SMALLINT", "i": "INT", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE", "m": "DECIMAL(20,3)",
    "s": "STRING", "y": "DATE", "t": "TIMESTAMP", "n": "TIMESTAMP_NTZ", "o": "BOOLEAN", "x": "BINARY",
    "deep": "STRUCT<a: INT, list: ARRAY<INT>, more: STRUCT<z: STRING>>",
}  # fmt: skip
ROWS = [
    """1Y, 2S, 3, 4L, 0.1F, 1.5D, 12345678901234567.891BD, 'é', DATE'2026-01-31',
       TIMESTAMP'1969-12-31 23:59:59.999999Z', TIMESTAMP_NTZ'2026-01-01 00:00:00.123456', TRUE, X'00',
       NAMED_STRUCT('a', 1, 'list', ARRAY(1), 'more', NAMED_STRUCT('z', 'q'))""",
    """-128Y, -32768S, -2147483648, -9223372036854775808L, CAST('NaN' AS FLOAT), CAST('-Infinity' AS DOUBLE), -0.001BD,
       '', DATE'0001-01-01', TIMESTAMP'9999-12-31 00:00:00Z', TIMESTAMP_NTZ'1500-06-01 00:00:00', FALSE, NULL,
       NAMED_STRUCT('a', NULL, 'list', NULL, 'more', NULL)""",
    ", ".join(["NULL"] * len(ALL_TYPES)),
]


def typed_columns(root: Path, files: Sequence[str]) -> dict[str, Any]:
    """`stats_parsed` and `partitionValues_parsed` of each live file, as a checkpoint has them."""
    found = {}
    for name in files:
        table = pq.read_table(root / "_delta_log" / name, columns=["add"], coerce_int96_timestamp_unit="us")
        for row in table.column("add").to_pylist():
            if row is not None:
                found[row["path"]] = (row["stats_parsed"], row["partitionValues_parsed"])
    return found


def spelled_out(columns: dict[str, Any]) -> str:
    """Comparable: NaN equals itself, and a moment is the same whether its Parquet type names UTC or implies it."""

    def spell(value: Any) -> str:
        return repr(value.replace(tzinfo=None) if isinstance(value, datetime) else value)

    return json.dumps(columns, default=spell, sort_keys=True)


@pytest.mark.spark
def test_typed_statistics_and_partition_values_are_those_of_delta(
    delta: DeltaSpark, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "typed"
    columns = ", ".join(f"{name} {kind}" for name, kind in ALL_TYPES.items())
    spark.sql(
        f"CREATE TABLE delta.`{root}` ({columns}, pi INT, ps STRING, pd DATE, pm DECIMAL(5,2)) USING delta "
        "PARTITIONED BY (pi, ps, pd, pm) TBLPROPERTIES ('delta.checkpoint.writeStatsAsStruct'='true')"
    )
    partitions = ["1, 'a b', DATE'2026-01-01', 1.50BD", "NULL, NULL, NULL, NULL", "-7, 'é', NULL, 0.01BD"]
    values = ", ".join(f"({row}, {partition})" for row, partition in zip(ROWS, partitions, strict=True))
    spark.sql(f"INSERT INTO delta.`{root}` VALUES {values}")
    delta.checkpoint(str(root))
    expected = typed_columns(root, [f"{1:020d}.checkpoint.parquet"])
    assert len(expected) == 3
    for by, kind in (("driver", "classic"), ("spark", "multi-part")):
        monkeypatch.setenv("MAINSTEM_CHECKPOINT_FILES", "0" if by == "spark" else "100")
        monkeypatch.setenv("MAINSTEM_JDBC_SLICES", "2")
        with open_catalog(f"sqlite:///{tmp_path}/{by}.db") as catalog:
            catalog.migrate()
            catalog.import_table(str(root), name="typed")
            lead(catalog, "typed")
            written = write_checkpoint(catalog.store, "typed", 1, spark=spark)
        assert written.kind == kind
        assert spelled_out(typed_columns(root, written.files)) == spelled_out(expected)
