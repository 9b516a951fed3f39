"""Log cleanup on every engine: what expires, and what a checkpoint, a tag or a lease keeps."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from handmade import Log, lead

from mainstem import Catalog
from mainstem.checkpoint import clean_log, keep_up, write_checkpoint
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import replay_plan
from mainstem.deltalog.names import Checkpoint
from mainstem.errors import UsageError
from mainstem.model import AddFile, Metadata, Protocol

NOW = datetime.now(UTC)


@pytest.fixture
def table(catalog: Catalog, tmp_path: Path) -> Log:
    """The table `t`: one version a day, version 9 today; checkpoints of 2, 4 and 8; everything is published."""
    return made(catalog, tmp_path)


def made(catalog: Catalog, tmp_path: Path, **properties: str) -> Log:
    log = Log(tmp_path / "t", **{"delta.logRetentionDuration": "interval 3 days", **properties})
    for version in range(1, 10):
        log.commit(log.add(f"file-{version}"))
    for version in range(10):
        moment = (NOW - timedelta(days=9 - version)).timestamp()
        os.utime(log.root / "_delta_log" / f"{version:020d}.json", (moment, moment))
    catalog.import_table(str(log.root), name="t")
    lead(catalog, "t")
    for version in (2, 4, 8):
        write_checkpoint(catalog.store, "t", version)
    return log


def left(log: Log, ending: str = ".json") -> list[int]:
    names = os.listdir(log.root / "_delta_log")
    return sorted(int(name[:20]) for name in names if name[:20].isdigit() and name[20:] == ending)


def run(catalog: Catalog, statement: str, **values: object) -> None:
    with catalog.store.writing() as queries:
        catalog.engine.execute(queries.connection, statement, values)


def test_what_is_before_the_newest_expired_checkpoint_goes(catalog: Catalog, table: Log) -> None:
    planned = clean_log(catalog.store, "t", now=NOW, dry_run=True)
    assert left(table) == list(range(10))
    # Three days ago at midnight version 5 was the newest, so the log is cut at checkpoint 4.
    assert planned.boundary == 4
    endings = ["0.json", "1.json", "2.checkpoint.parquet", "2.json", "3.json"]
    assert planned.files == tuple(f"{0:019d}{ending}" for ending in endings)
    assert clean_log(catalog.store, "t", now=NOW) == planned
    assert left(table) == [4, 5, 6, 7, 8, 9]
    assert left(table, ".checkpoint.parquet") == [4, 8]
    plan = replay_plan(LogDirectory.open(str(table.root)).list())
    assert (plan.first, plan.last) == (4, 9)
    assert clean_log(catalog.store, "t", now=NOW).files == ()
    assert catalog.table("t").snapshot(version=1).size().files == 1  # the catalog has forgotten nothing


def test_later_more_goes_but_never_the_last_checkpoint(catalog: Catalog, table: Log) -> None:
    assert clean_log(catalog.store, "t", now=NOW + timedelta(days=365)).boundary == 8
    assert left(table) == [8, 9]


def test_nothing_above_what_is_published_counts(catalog: Catalog, table: Log) -> None:
    lead(catalog, "t", published=7)
    assert clean_log(catalog.store, "t", now=NOW + timedelta(days=365)).boundary == 4
    assert left(table) == [4, 5, 6, 7, 8, 9]


def test_a_table_that_keeps_its_log_keeps_it(catalog: Catalog, tmp_path: Path) -> None:
    log = made(catalog, tmp_path, **{"delta.enableExpiredLogCleanup": "false"})
    found = clean_log(catalog.store, "t", now=NOW + timedelta(days=365))
    assert (found.boundary, found.files) == (None, ())
    assert "enableExpiredLogCleanup" in str(found.kept_for)
    assert left(log) == list(range(10))


def test_nothing_goes_before_it_is_old_enough(catalog: Catalog, tmp_path: Path) -> None:
    log = made(catalog, tmp_path, **{"delta.logRetentionDuration": "interval 30 days"})
    assert clean_log(catalog.store, "t", now=NOW).boundary is None
    assert left(log) == list(range(10))


def test_a_retention_that_nobody_can_read_deletes_nothing(catalog: Catalog, tmp_path: Path) -> None:
    log = made(catalog, tmp_path, **{"delta.logRetentionDuration": "for ever"})
    with pytest.raises(UsageError, match="logRetentionDuration"):
        clean_log(catalog.store, "t", now=NOW)
    assert left(log) == list(range(10))


def test_a_tag_keeps_its_version_readable_in_the_log(catalog: Catalog, table: Log) -> None:
    run(catalog, "INSERT INTO dl_tags (name, created_at) VALUES ('eod', :now)", now=NOW)
    statement = "INSERT INTO dl_tag_members (tag, table_id, version) SELECT 'eod', table_id, 3 FROM dl_tables"
    run(catalog, statement)
    found = clean_log(catalog.store, "t", now=NOW)
    assert (found.boundary, found.kept_for) == (2, "a tag or a lease holds version 3")
    assert left(table) == list(range(2, 10))
    run(catalog, "UPDATE dl_tag_members SET version = 1")
    assert clean_log(catalog.store, "t", now=NOW).boundary is None
    run(catalog, "DELETE FROM dl_tag_members")
    assert clean_log(catalog.store, "t", now=NOW).boundary == 4


def test_a_lease_keeps_its_version_until_it_expires(catalog: Catalog, table: Log) -> None:
    statement = (
        "INSERT INTO dl_leases (lease_id, table_id, version, purpose, holder, created_at, expires_at) "
        "SELECT :lease, table_id, 2, 'read', 'test', :now, :expires FROM dl_tables"
    )
    run(catalog, statement, lease=uuid4(), now=NOW, expires=NOW + timedelta(hours=1))
    assert clean_log(catalog.store, "t", now=NOW).boundary == 2
    assert clean_log(catalog.store, "t", now=NOW + timedelta(hours=2)).boundary == 4


def test_a_checkpoint_that_cannot_be_read_is_no_place_to_cut(catalog: Catalog, table: Log) -> None:
    (table.root / "_delta_log" / f"{4:020d}.checkpoint.parquet").write_bytes(b"PAR1 torn")
    assert clean_log(catalog.store, "t", now=NOW).boundary == 2
    assert left(table) == list(range(2, 10))


def test_sidecars_go_with_the_checkpoint_that_named_them(catalog: Catalog, tmp_path: Path) -> None:
    log = made(catalog, tmp_path, **{"delta.checkpointPolicy": "v2"})
    folder = log.root / "_delta_log" / "_sidecars"
    old = (NOW - timedelta(days=9)).timestamp()
    for file in (*folder.iterdir(), folder / "loose.parquet", folder / "fresh.parquet"):
        file.touch()
        if file.name != "fresh.parquet":
            os.utime(file, (old, old))
    scratch = log.root / "_delta_log" / f".mainstem-{uuid4()}"
    scratch.mkdir()
    (scratch / "part-0.parquet").touch()
    os.utime(scratch / "part-0.parquet", (old, old))
    assert len(list(folder.iterdir())) == 5
    found = clean_log(catalog.store, "t", now=NOW)
    assert found.boundary == 4
    named = {name for file in (log.root / "_delta_log").glob("*.checkpoint.*.json") for name in sidecars(file)}
    assert {file.name for file in folder.iterdir()} == {*named, "fresh.parquet"}
    assert len(named) == 2
    assert not scratch.exists()
    assert left(log, ".checkpoint.parquet") == [8]  # the classic twin of the newest
    found_log = LogDirectory.open(str(log.root))
    twin, v2 = sorted(each for each in found_log.list().checkpoints if each.version == 8)
    assert {type(action) for action in read_checkpoint(found_log, twin)} == {AddFile, Metadata, Protocol}
    assert paths(found_log, twin) == paths(found_log, v2)
    (folder / min(named)).unlink()
    # One of the two that are left cannot be read any more: the log is cut nowhere, or at the other one.
    assert clean_log(catalog.store, "t", now=NOW + timedelta(days=365)).boundary in (4, 8)


def paths(log: LogDirectory, checkpoint: Checkpoint) -> set[str]:
    return {action.path for action in read_checkpoint(log, checkpoint) if isinstance(action, AddFile)}


def sidecars(file: Path) -> list[str]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [line["sidecar"]["path"] for line in lines if "sidecar" in line]


def test_a_table_whose_log_leads_is_not_cleaned(catalog: Catalog, tmp_path: Path) -> None:
    log = Log(tmp_path / "other")
    catalog.import_table(str(log.root), name="other")
    with pytest.raises(UsageError, match="not ours to write"):
        clean_log(catalog.store, "other")


def test_after_publishing_the_newest_checkpoint_that_is_due_is_written_and_the_log_cleaned(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = made(catalog, tmp_path, **{"delta.checkpointInterval": "3", "delta.logRetentionDuration": "interval 0 days"})
    assert keep_up(catalog.store, "t", first=7, last=8) is None
    assert left(log, ".checkpoint.parquet") == [2, 4, 8]
    written = keep_up(catalog.store, "t", first=1, last=8)
    assert written is not None
    assert written.version == 6
    assert left(log)[-1] == 9
    assert left(log)[0] >= 4  # version 8 is of yesterday, before its midnight or after it
    assert caplog.records == []


def test_a_checkpoint_that_cannot_be_written_is_told_and_does_no_harm(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = made(catalog, tmp_path, **{"delta.checkpointInterval": "3"})
    (log.root / "_delta_log" / f"{9:020d}.checkpoint.parquet").mkdir()
    assert keep_up(catalog.store, "t", first=9, last=9) is None
    assert "checkpoint.failed" in caplog.text
    assert left(log) == list(range(10))
