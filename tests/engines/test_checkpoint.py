"""Checkpoints from catalog rows, read back by our own reader: every kind, on every engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from handmade import DAY_MS, SCHEMA, Log, full_log, lead
from obstore.store import MemoryStore
from pyspark.sql import SparkSession

from mainstem import Catalog, open_catalog
from mainstem.checkpoint import (
    ALL_FILES,
    NO_FILES,
    Choice,
    State,
    matching,
    open_state,
    write_checkpoint,
    write_state,
)
from mainstem.checkpoint.hint import checksum
from mainstem.checkpoint.plan import Kind
from mainstem.deltalog import parse_commit
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import Location
from mainstem.deltalog.names import CheckpointKind
from mainstem.deltalog.writing import LogWriter
from mainstem.errors import CorruptCatalog, TableNotFound, UnsupportedFeature, UsageError, VersionNotFound
from mainstem.model import Action, AddFile, CommitInfo, DomainMetadata, Metadata, Protocol, RemoveFile, Txn


def imported(catalog: Catalog, log: Log, name: str = "t") -> Log:
    catalog.import_table(str(log.root), name=name)
    lead(catalog, name)
    return log


@pytest.fixture
def table(catalog: Catalog, tmp_path: Path) -> Log:
    """The table `t`, imported; the catalog leads it and every version is published."""
    return imported(catalog, full_log(tmp_path / "t"))


def read(root: Path, version: int) -> list[Action]:
    log = LogDirectory.open(str(root))
    found = log.list().latest_checkpoint(version)
    assert found is not None
    assert found.version == version
    return list(read_checkpoint(log, found))


def normal(actions: list[Action]) -> dict[str, Any]:
    """What a state says, without order, spelling of JSON, and what no checkpoint keeps."""
    files: dict[str, list[Any]] = {"add": [], "remove": [], "txn": [], "domain": [], "protocol": [], "metadata": []}
    for action in actions:
        if isinstance(action, AddFile | RemoveFile):
            plain = {
                name: json.loads(text) if (text := getattr(action, name)) else None
                for name in ("partition_values", "tags", "deletion_vector")
            }
            alike = replace(action, seq=0, data_change=False, extra=None, **dict.fromkeys(plain))
            files["add" if isinstance(action, AddFile) else "remove"].append((action.path, alike, plain))
        elif isinstance(action, Txn):
            files["txn"].append((action.app_id, action.txn_version, action.last_updated))
        elif isinstance(action, DomainMetadata):
            files["domain"].append((action.domain, action.configuration, action.removed))
        elif isinstance(action, Protocol):
            files["protocol"].append(replace(action, seq=0))
        elif isinstance(action, Metadata):
            properties = json.loads(action.table_properties or "{}")
            files["metadata"].append((replace(action, seq=0, table_properties=None, format=None), properties))
    return {kind: sorted(found, key=repr) for kind, found in files.items()}


def replayed(log: Log, version: int) -> list[Action]:
    """The same state straight from the commits, by Delta's own rule: the newest action of a file wins."""
    states: dict[Any, Action] = {}
    for number in range(version + 1):
        name = f"{number:020d}.json"
        data = (log.root / "_delta_log" / name).read_bytes()
        actions = parse_commit(data, file=name, table_root=log.root.as_uri())
        for action in sorted(actions, key=lambda action: isinstance(action, AddFile)):
            if isinstance(action, AddFile | RemoveFile):
                states[action.file_key] = action
            elif isinstance(action, Txn | DomainMetadata):
                states[type(action), action.app_key] = action
            else:
                states[type(action)] = action
    oldest = log.now_ms - 7 * DAY_MS
    return [
        action
        for action in states.values()
        if not isinstance(action, CommitInfo)
        and not (isinstance(action, DomainMetadata) and action.removed)
        and not (isinstance(action, RemoveFile) and (action.deletion_timestamp or 0) <= oldest)
    ]


def hint_of(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "_delta_log" / "_last_checkpoint").read_bytes())
    return found


def state_of(catalog: Catalog, log: Log, version: int | None = None, **given: Any) -> State:
    return open_state(catalog.table("t").snapshot(version=version), now_ms=log.now_ms, **given)


def test_a_classic_checkpoint_of_every_version_is_its_state(catalog: Catalog, table: Log) -> None:
    for version in range(table.version + 1):
        written = write_checkpoint(catalog.store, "t", version)
        assert (written.kind, written.files) == ("classic", (f"{version:020d}.checkpoint.parquet",))
        assert normal(read(table.root, version)) == normal(replayed(table, version))
        assert written.actions == len(replayed(table, version))
        assert written.size_bytes == (table.root / "_delta_log" / written.files[0]).stat().st_size


@pytest.mark.parametrize("top", ["json", "parquet"])
def test_a_v2_checkpoint_has_its_files_in_sidecars(catalog: Catalog, tmp_path: Path, top: Any) -> None:
    log = imported(catalog, full_log(tmp_path / "v2", **{"delta.checkpointPolicy": "v2"}))
    written = write_checkpoint(catalog.store, "t", log.version, top=top)
    assert written.kind == "v2"
    assert [name.split("/")[0] for name in written.files[1:]] == ["_sidecars"]
    listing = LogDirectory.open(str(log.root)).list()
    assert [found.kind for found in listing.checkpoints] == [CheckpointKind.V2]
    assert normal(read(log.root, log.version)) == normal(replayed(log, log.version))
    hint = hint_of(log.root)
    assert (hint["version"], hint["numOfAddFiles"], hint["size"]) == (log.version, 3, written.actions)
    assert hint["v2Checkpoint"]["path"] == written.files[0]
    assert [f"_sidecars/{sidecar['path']}" for sidecar in hint["v2Checkpoint"]["sidecarFiles"]] == list(
        written.files[1:]
    )


def test_a_table_that_asks_for_v2_without_the_feature_gets_a_classic_one(catalog: Catalog, tmp_path: Path) -> None:
    log = imported(catalog, full_log(tmp_path / "x", **{"delta.checkpointPolicy": "v2"}))
    plain = Protocol(1, 1, 2)
    written = write_state(state_of(catalog, log, protocol=plain), writer=LogWriter.open(str(log.root)))
    assert written.kind == "classic"
    assert normal(read(log.root, log.version))["protocol"] == [replace(plain, seq=0)]


def test_many_files_are_read_in_pages_and_each_comes_once(catalog: Catalog, tmp_path: Path) -> None:
    log = Log(tmp_path / "many")
    for version in range(5):
        log.commit(*(log.add(f"{version}-{place}") for place in range(7)))
    log.commit(*(log.remove(f"{version}-{place}") for version in range(5) for place in range(0, 7, 3)))
    imported(catalog, log)
    for page_rows in (1, 3, 4, 20, 21):
        state = replace(state_of(catalog, log), page_rows=page_rows)
        written = write_state(state, writer=LogWriter.open(str(log.root)))
        assert (written.add_files, written.actions) == (20, 37)
        assert normal(read(log.root, log.version)) == normal(replayed(log, log.version))
    groups = pq.ParquetFile(log.root / "_delta_log" / written.files[0]).metadata.num_row_groups
    assert groups == 3  # what is no file, tombstones, files
    state = replace(state_of(catalog, log), page_rows=2)
    written = write_state(state, writer=LogWriter.open(str(log.root)), kind="v2")
    assert len(written.files) == 1 + 5  # 18 pages, four in a sidecar
    assert normal(read(log.root, log.version)) == normal(replayed(log, log.version))


def test_the_hint_says_what_is_there_with_a_checksum_as_delta_has_it(catalog: Catalog, table: Log) -> None:
    written = write_checkpoint(catalog.store, "t", 3)
    hint = hint_of(table.root)
    assert hint.pop("checksum") == checksum(hint)
    assert [field["name"] for field in hint.pop("checkpointSchema")["fields"]] == [
        "txn", "add", "remove", "metaData", "protocol", "domainMetadata",
    ]  # fmt: skip
    assert hint == {"version": 3, "size": written.actions, "sizeInBytes": written.size_bytes, "numOfAddFiles": 3}


def test_the_hint_never_goes_back(catalog: Catalog, table: Log) -> None:
    write_checkpoint(catalog.store, "t", 4)
    newest = hint_of(table.root)
    write_checkpoint(catalog.store, "t", 2)
    assert hint_of(table.root) == newest
    hint = table.root / "_delta_log" / "_last_checkpoint"
    for useless in (b'{"version":1000000000000000000}', b'{"version":"9"}', b"[]", b"{", b'{"version":5}'):
        hint.write_bytes(useless)
        write_checkpoint(catalog.store, "t", 2)
        assert hint_of(table.root)["version"] == 2


def test_a_checksum_that_hadoop_left_beside_an_older_file_goes_with_it(catalog: Catalog, table: Log) -> None:
    log = table.root / "_delta_log"
    stale = [log / f".{3:020d}.checkpoint.parquet.crc", log / "._last_checkpoint.crc"]
    for file in stale:
        file.write_bytes(b"crc")
    write_checkpoint(catalog.store, "t", 3)
    assert not any(file.exists() for file in stale)


def test_a_version_that_is_not_published_gets_no_checkpoint(catalog: Catalog, table: Log) -> None:
    lead(catalog, "t", published=3)
    before = sorted(os.listdir(table.root / "_delta_log"))
    for version in (4, 99, -1):
        with pytest.raises(UsageError, match="is not published") as caught:
            write_checkpoint(catalog.store, "t", version)
        assert "up to 3" in str(caught.value)
    with pytest.raises(TableNotFound):
        write_checkpoint(catalog.store, "other", 1)
    assert sorted(os.listdir(table.root / "_delta_log")) == before
    write_checkpoint(catalog.store, "t", 3)


def test_a_table_whose_log_leads_is_not_written(catalog: Catalog, tmp_path: Path) -> None:
    log = full_log(tmp_path / "t")
    catalog.import_table(str(log.root), name="t")
    with pytest.raises(UsageError, match="not ours to write"):
        write_checkpoint(catalog.store, "t", 1)
    assert not (log.root / "_delta_log" / "_last_checkpoint").exists()


def test_an_expired_version_gets_no_checkpoint(catalog: Catalog, table: Log) -> None:
    with catalog.store.writing() as queries:
        catalog.engine.execute(queries.connection, "UPDATE dl_table_heads SET min_readable_version = 2", {})
    with pytest.raises(VersionNotFound):
        write_checkpoint(catalog.store, "t", 1)


def test_versions_that_a_dropped_feature_protects_get_no_checkpoint(catalog: Catalog, tmp_path: Path) -> None:
    log = Log(tmp_path / "t", **{"delta.requireCheckpointProtectionBeforeVersion": "2"})
    log.commit(log.add("a"))
    log.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["checkpointProtection"]}})
    imported(catalog, log)
    with pytest.raises(UsageError, match="lets nobody make a checkpoint of a version before 2"):
        write_checkpoint(catalog.store, "t", 1)
    write_checkpoint(catalog.store, "t", 2)


def test_a_table_that_we_cannot_write_gets_no_checkpoint(catalog: Catalog, tmp_path: Path) -> None:
    log = Log(tmp_path / "t")
    log.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["notYetInvented"]}})
    imported(catalog, log)
    with pytest.raises(UnsupportedFeature, match="notYetInvented"):
        write_checkpoint(catalog.store, "t", 1)


def test_metadata_with_odd_values_becomes_what_delta_reads_or_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    log = Log(tmp_path / "t")
    odd = {"id": "x", "schemaString": json.dumps(SCHEMA), "configuration": {"a": 1, "b": "\ud83d\ude00"}}
    log.commit({"metaData": odd})
    log.commit({"metaData": {**odd, "configuration": {"delta.x": "\ud83d"}}})
    imported(catalog, log)
    write_checkpoint(catalog.store, "t", 1)
    [(metadata, properties)] = normal(read(log.root, 1))["metadata"]
    assert properties == {"a": "1", "b": "\U0001f600"}
    assert metadata.partition_columns == "[]"
    with pytest.raises(CorruptCatalog, match="fits no checkpoint"):
        write_checkpoint(catalog.store, "t", 2)


def test_transactions_and_tombstones_age_by_the_properties_of_the_table(catalog: Catalog, tmp_path: Path) -> None:
    properties = {
        "delta.setTransactionRetentionDuration": "interval 1 days",
        "delta.deletedFileRetentionDuration": "interval 18 hours",
    }
    log = imported(catalog, full_log(tmp_path / "t", **properties))
    write_checkpoint(catalog.store, "t", log.version)
    found = normal(read(log.root, log.version))
    assert found["txn"] == []
    assert [path for path, _, _ in found["remove"]] == ["e"]
    assert len(found["add"]) == 3


@pytest.mark.parametrize(
    ("choice", "paths"),
    [
        (ALL_FILES, ["a", "b%20c/part", "f"]),
        (NO_FILES, []),
        (Choice("path = :wanted OR size_bytes > :size", {"wanted": "a", "size": 1005}), ["a", "b%20c/part"]),
    ],
)
def test_a_state_goes_into_any_log_with_some_of_its_files(
    catalog: Catalog, table: Log, tmp_path: Path, choice: Choice, paths: list[str]
) -> None:
    target = tmp_path / "mount"
    target.mkdir()
    before = sorted(os.listdir(table.root / "_delta_log"))
    state = state_of(catalog, table, choice=choice, tombstones="none", protocol=Protocol(1, 1, 2))
    written = write_state(state, writer=LogWriter.open(str(target)))
    found = normal(read(target, table.version))
    assert [path for path, _, _ in found["add"]] == paths
    assert found["remove"] == []
    assert found["protocol"] == [Protocol(0, 1, 2)]
    whole = normal(replayed(table, table.version))
    assert (found["txn"], found["domain"], found["metadata"]) == (whole["txn"], whole["domain"], whole["metadata"])
    assert hint_of(target)["numOfAddFiles"] == written.add_files == len(paths)
    assert sorted(os.listdir(table.root / "_delta_log")) == before


@pytest.mark.parametrize("kind", ["classic", "v2"])
def test_a_state_goes_into_an_object_store(catalog: Catalog, table: Log, kind: Kind) -> None:
    location = Location(table.root.as_uri(), MemoryStore(), None)
    written = write_state(state_of(catalog, table), writer=LogWriter(location), kind=kind)
    log = LogDirectory(location)
    assert {file.name for file in log.files()} == {*written.files, "_last_checkpoint"}
    [found] = log.list().checkpoints
    assert normal(list(read_checkpoint(log, found))) == normal(replayed(table, table.version))
    assert log.last_checkpoint_hint(log.list()) == table.version


def test_a_predicate_chooses_the_files_that_may_match(catalog: Catalog, table: Log, tmp_path: Path) -> None:
    snapshot = catalog.table("t").snapshot()
    where = "day = '2026-01-01' AND id > 5"
    state = open_state(snapshot, now_ms=table.now_ms, choice=matching(where, snapshot))
    write_state(state, writer=LogWriter.open(str(table.root)))
    expected = sorted(snapshot.to_arrow(where=where).column("path").to_pylist())
    assert expected == ["a", "f"]
    assert [path for path, _, _ in normal(read(table.root, table.version))["add"]] == expected


def test_statistics_are_left_out_where_the_table_says_so(catalog: Catalog, tmp_path: Path) -> None:
    log = imported(catalog, full_log(tmp_path / "t", **{"delta.checkpoint.writeStatsAsJson": "false"}))
    written = write_checkpoint(catalog.store, "t", log.version)
    schema = pq.ParquetFile(log.root / "_delta_log" / written.files[0]).schema_arrow
    assert "stats" not in [field.name for field in schema.field("add").type]


def typed_fields(log: Log, name: str) -> list[str]:
    schema = pq.ParquetFile(log.root / "_delta_log" / name).schema_arrow
    return [field.name for field in schema.field("add").type if field.name.endswith("_parsed")]


STRUCTS = {"delta.checkpoint.writeStatsAsStruct": "true"}


def test_statistics_and_partition_values_get_their_types_where_the_table_says_so(
    catalog: Catalog, tmp_path: Path
) -> None:
    log = imported(catalog, full_log(tmp_path / "t", **STRUCTS))
    written = write_checkpoint(catalog.store, "t", log.version)
    assert typed_fields(log, written.files[0]) == ["partitionValues_parsed", "stats_parsed"]
    assert normal(read(log.root, log.version)) == normal(replayed(log, log.version))
    rows = pq.read_table(log.root / "_delta_log" / written.files[0]).column("add").to_pylist()
    [found] = [row for row in rows if row is not None and row["path"] == "f"]
    assert found["partitionValues_parsed"] == {"day": date(2026, 1, 1), "who": "é='\""}
    assert found["stats_parsed"]["maxValues"] == {"id": 9007199254740993}


def odd_partition(catalog: Catalog, tmp_path: Path) -> Log:
    """A table with a partition value that is not of its column's type."""
    log = Log(tmp_path / "t", **STRUCTS)
    log.commit(log.add("a", day="some day"))
    return imported(catalog, log)


def test_a_partition_value_that_is_not_of_its_type_is_left_to_its_text(catalog: Catalog, tmp_path: Path) -> None:
    log = odd_partition(catalog, tmp_path)
    written = write_checkpoint(catalog.store, "t", log.version)
    assert typed_fields(log, written.files[0]) == []
    assert normal(read(log.root, log.version)) == normal(replayed(log, log.version))


@pytest.mark.parametrize(
    ("codec", "compression"), [("zstd", "ZSTD"), ("GZIP", "GZIP"), ("lzo", "SNAPPY"), ("", "SNAPPY")]
)
def test_files_are_compressed_as_the_table_says(catalog: Catalog, tmp_path: Path, codec: str, compression: str) -> None:
    log = imported(catalog, full_log(tmp_path / "t", **{"delta.parquet.compression.codec": codec}))
    written = write_checkpoint(catalog.store, "t", log.version)
    footer = pq.ParquetFile(log.root / "_delta_log" / written.files[0]).metadata
    assert footer.row_group(0).column(0).compression == compression


def test_partition_values_that_are_no_texts_become_what_delta_reads(catalog: Catalog, tmp_path: Path) -> None:
    log = Log(tmp_path / "t")
    log.commit(log.add("a", partitionValues={"day": 12345678901234567890123, "who": True}))
    imported(catalog, log)
    write_checkpoint(catalog.store, "t", 1)
    [(_, _, texts)] = normal(read(log.root, 1))["add"]
    assert texts["partition_values"] == {"day": "12345678901234567890123", "who": "true"}


def test_rows_that_fit_no_checkpoint_are_refused_and_nothing_is_written(catalog: Catalog, table: Log) -> None:
    before = sorted(os.listdir(table.root / "_delta_log"))
    for text in ('{"day":"\\ud800"}', "[]", "{"):
        with catalog.store.writing() as queries:
            statement = "UPDATE dl_add_files SET partition_values = :text"
            catalog.engine.execute(queries.connection, statement, {"text": text})
        with pytest.raises(CorruptCatalog):
            write_checkpoint(catalog.store, "t", table.version)
    assert sorted(os.listdir(table.root / "_delta_log")) == before


def test_a_checkpoint_that_lacks_a_file_is_never_seen(
    catalog: Catalog, table: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(os.listdir(table.root / "_delta_log"))
    monkeypatch.setattr(State, "file_count", lambda state: 4)
    for kind in ("classic", "v2"):
        with pytest.raises(CorruptCatalog, match="would have 3 files, but the version has 4"):
            write_state(state_of(catalog, table), writer=LogWriter.open(str(table.root)), kind=kind)  # type: ignore[arg-type]
    assert sorted(os.listdir(table.root / "_delta_log")) == before


_KILLED = """
import os, signal, sys
from mainstem import open_catalog
from mainstem.checkpoint import open_state, write_state
from mainstem.deltalog.writing import LogWriter

class Mortal(LogWriter):
    left = int(sys.argv[3])
    def die(self):
        Mortal.left -= 1
        if Mortal.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def upload(self, name, source):
        self.die()
        super().upload(name, source)
    def replace(self, name, data):
        self.die()
        super().replace(name, data)

with open_catalog(sys.argv[1]) as catalog:
    snapshot = catalog.table("t").snapshot()
    state = open_state(snapshot, now_ms=int(sys.argv[5]))
    write_state(state, writer=Mortal.open(sys.argv[2]), kind=sys.argv[4])
"""


@pytest.mark.parametrize(("kind", "steps"), [("classic", 2), ("v2", 3)])
def test_killed_at_any_step_it_leaves_a_log_as_readable_as_before(tmp_path: Path, kind: str, steps: int) -> None:
    catalog_uri = f"sqlite:///{tmp_path}/lake.db"  # which engine the rows come from makes no difference to a kill
    with open_catalog(catalog_uri) as catalog:
        catalog.migrate()
        table = imported(catalog, full_log(tmp_path / "t"))
        write_checkpoint(catalog.store, "t", 2)
    before = hint_of(table.root)
    for step in range(steps):
        command = [sys.executable, "-c", _KILLED, catalog_uri, str(table.root), str(step), kind, str(table.now_ms)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        log = LogDirectory.open(str(table.root))
        assert hint_of(table.root) == before
        assert log.last_checkpoint_hint(log.list()) == 2
        for checkpoint in log.list().checkpoints:
            state = normal(list(read_checkpoint(log, checkpoint)))
            assert state["add"] == normal(replayed(table, checkpoint.version))["add"]
    command[5] = str(steps)
    subprocess.run(command, check=True)
    assert hint_of(table.root)["version"] == table.version
    assert normal(read(table.root, table.version)) == normal(replayed(table, table.version))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["classic", "v2"])
def test_spark_writes_a_large_state_in_parallel(
    catalog_uri: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setenv("MAINSTEM_CHECKPOINT_FILES", "5")
    monkeypatch.setenv("MAINSTEM_JDBC_SLICES", "3")
    log = full_log(tmp_path / "a table é %20")
    with open_catalog(catalog_uri) as catalog:
        catalog.migrate()
        imported(catalog, log)
        state = state_of(catalog, log)
        written = write_state(state, writer=LogWriter.open(str(log.root)), kind=kind, spark=spark)
        count = 3
        assert written.kind == ("multi-part" if kind == "classic" else "v2")
        if kind == "classic":
            assert written.files == tuple(
                f"{log.version:020d}.checkpoint.{part:010d}.{count:010d}.parquet" for part in (1, 2, 3)
            )
            assert hint_of(log.root)["parts"] == count
        assert normal(read(log.root, log.version)) == normal(replayed(log, log.version))
        assert (written.add_files, written.actions) == (3, hint_of(log.root)["size"])
        names = [str(path.relative_to(log.root)) for path in (log.root / "_delta_log").rglob("*") if path.is_file()]
        commits = {f"_delta_log/{version:020d}.json" for version in range(log.version + 1)}
        assert set(names) - commits == {f"_delta_log/{name}" for name in (*written.files, "_last_checkpoint")}
        assert not list((log.root / "_delta_log").glob(".*"))
        assert spark.conf.get("spark.databricks.delta.formatCheck.enabled", None) is None


@pytest.mark.spark
def test_spark_leaves_a_partition_value_that_is_not_of_its_type_to_its_text_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSTEM_CHECKPOINT_FILES", "0")
    monkeypatch.setenv("MAINSTEM_JDBC_SLICES", "1")
    with open_catalog(f"sqlite:///{tmp_path}/lake.db") as catalog:
        catalog.migrate()
        log = odd_partition(catalog, tmp_path)
        written = write_checkpoint(catalog.store, "t", log.version, spark=spark)
    assert typed_fields(log, written.files[0]) == []
    assert normal(read(log.root, log.version)) == normal(replayed(log, log.version))


@pytest.mark.spark
def test_a_choice_that_turns_out_large_goes_to_spark(
    catalog_uri: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSTEM_CHECKPOINT_FILES", "1")
    monkeypatch.setenv("MAINSTEM_JDBC_SLICES", "2")
    log = full_log(tmp_path / "t")
    with open_catalog(catalog_uri) as catalog:
        catalog.migrate()
        imported(catalog, log)
        snapshot = catalog.table("t").snapshot()
        for where, kind, paths in (
            ("id > 5", "multi-part", ["a", "b%20c/part", "f"]),
            ("day IS NULL", "classic", ["b%20c/part"]),
        ):
            state = open_state(snapshot, now_ms=log.now_ms, choice=matching(where, snapshot), tombstones="none")
            target = tmp_path / kind
            target.mkdir()
            written = write_state(state, writer=LogWriter.open(str(target)), spark=spark)
            assert written.kind == kind
            assert [path for path, _, _ in normal(read(target, log.version))["add"]] == paths
