"""Every log of the corpus: its commits come back field for field, its checkpoints read, its bad files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commit_lines import commits_of, exact, expected_lines, lines_of
from corpus import ABSENT, CorpusTable, corpus_params

from mainstem.deltalog import parse_commit, serialize_commit
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import replay_plan
from mainstem.errors import CorruptLog
from mainstem.model import AddFile, CommitInfo, DomainMetadata, Metadata, Protocol, RemoveFile, Txn

TRINO = "trino/databricks73"
# Every line of their commits ends in a stray `x`.
STRAY_X = {
    f"{TRINO}/{name}"
    for name in (
        "person",
        "person_test_pruning",
        "person_without_checkpoints",
        "person_without_last_checkpoint",
        "person_without_old_jsons",
        "pruning/invalid_log",
    )
}
GOLDEN = "kernel-rs-golden"
NO_PROTOCOL = f"{GOLDEN}/deltalog-state-reconstruction-from-checkpoint-missing-protocol/delta"
GAP = f"{GOLDEN}/versions-not-contiguous/delta"
EMPTY = "trino/statistics/extended_stats_with_data_size"

TYPES = {
    "add": AddFile,
    "remove": RemoveFile,
    "metaData": Metadata,
    "protocol": Protocol,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
}


def test_the_comparison_itself_sees_order_duplicates_and_spelling() -> None:
    assert exact(b'{"a":1,"a":1.0}') == exact(b'{ "a": 1, "a": 1.0 }')
    for other in (b'{"a":1.0,"a":1}', b'{"a":1}', b'{"a":1,"a":1.00}', b'{"a":1,"a":"1.0"}', b'{"a":1,"a":null}'):
        assert exact(b'{"a":1,"a":1.0}') != exact(other)
    assert exact(b"{}") != exact(b"[]")


@pytest.mark.parametrize("table", corpus_params(without={*STRAY_X, EMPTY}))
def test_every_commit_comes_back_action_for_action_and_field_for_field(table: CorpusTable) -> None:
    compared = 0
    for file in commits_of(table):
        actions = parse_commit(file.read_bytes(), file=file.name, table_root=table.root.as_uri())
        assert lines_of(serialize_commit(actions)) == expected_lines(file.read_bytes()), file.name
        compared += 1
    assert compared == table.commits


@pytest.mark.parametrize("table", corpus_params(without={*STRAY_X, EMPTY}))
def test_every_serialized_commit_is_read_as_the_same_actions(table: CorpusTable) -> None:
    for file in commits_of(table):
        actions = parse_commit(file.read_bytes(), file=file.name, table_root=table.root.as_uri())
        written = serialize_commit(actions)
        assert parse_commit(written, file=file.name, table_root=table.root.as_uri()) == actions
        assert serialize_commit(actions) == written


@pytest.mark.parametrize("table", corpus_params(without={EMPTY}))
def test_the_listing_has_the_versions_and_checkpoints_of_the_manifest(table: CorpusTable) -> None:
    listing = LogDirectory.open(str(table.root)).list()
    assert len(listing.commits) == table.commits
    if listing.commits:
        assert (listing.commits[0].version, listing.commits[-1].version) == (table.first_version, table.last_version)
    assert bool(listing.checkpoints) == bool(table.checkpoints)


@pytest.mark.parametrize("table", corpus_params(without={NO_PROTOCOL, EMPTY}))
def test_every_checkpoint_reads_with_as_many_actions_as_it_has_rows(table: CorpusTable) -> None:
    log = LogDirectory.open(str(table.root))
    for checkpoint in log.list().checkpoints:
        actions = list(read_checkpoint(log, checkpoint))
        for action in actions:
            assert not isinstance(action, CommitInfo)
        if "sidecars" in table.features:
            continue  # its rows are spread over files; the commits of the next test are the judge
        for name, type_ in TYPES.items():
            rows = sum(count_rows(table.root / "_delta_log" / file.name, name) for file in checkpoint.files)
            assert sum(type(action) is type_ for action in actions) == rows, (checkpoint.files[0].name, name)


def count_rows(file: Path, column: str) -> int:
    parquet = pq.ParquetFile(file)
    if column not in parquet.schema_arrow.names:
        return 0
    values = parquet.read(columns=[column]).column(column)
    return len(values) - values.null_count


@pytest.mark.parametrize("table", corpus_params(without={*STRAY_X, NO_PROTOCOL, GAP, EMPTY}))
def test_a_checkpoint_has_the_live_files_that_its_commits_leave(table: CorpusTable) -> None:
    log = LogDirectory.open(str(table.root))
    listing = log.list()
    if not listing.commits or listing.commits[0].version != 0 or replay_plan(listing).checkpoint is not None:
        return  # what came before was cleaned up: there is nothing to compare a checkpoint with
    live: dict[bytes, AddFile] = {}
    for commit in listing.commits:
        actions = parse_commit(log.read(commit.version), file=commit.file.name, table_root=log.root)
        for action in sorted(actions, key=lambda action: isinstance(action, AddFile)):
            if isinstance(action, RemoveFile):
                live.pop(action.file_key, None)
            elif isinstance(action, AddFile):
                live[action.file_key] = action
        for checkpoint in (found for found in listing.checkpoints if found.version == commit.version):
            adds = {
                action.file_key: action for action in read_checkpoint(log, checkpoint) if isinstance(action, AddFile)
            }
            assert {key: facts(add) for key, add in adds.items()} == {key: facts(add) for key, add in live.items()}
            for key, add in adds.items():
                assert add.stats is None or meaning(add.stats) == meaning(live[key].stats), checkpoint.files[0].name


def facts(add: AddFile) -> tuple[Any, ...]:
    values = json.loads(add.partition_values)
    return add.path, add.dv_id, add.size_bytes, values, add.modification_time, add.base_row_id


def meaning(stats: str | None) -> Any:
    return json.loads(stats or "null")


@pytest.mark.parametrize("table", corpus_params(without={GAP, EMPTY}))
def test_every_log_can_be_planned_to_its_last_version(table: CorpusTable) -> None:
    listing = LogDirectory.open(str(table.root)).list()
    plan = replay_plan(listing)
    assert plan.last == max(
        [commit.version for commit in listing.commits] + [found.version for found in listing.checkpoints]
    )
    assert [commit.version for commit in plan.commits] == list(
        range(plan.first if plan.checkpoint is None else plan.first + 1, plan.last + 1)
    )


def table_named(name: str) -> CorpusTable:
    [found] = [parameter.values[0] for parameter in corpus_params() if parameter.id in (name, "absent")]
    if found is None:
        pytest.skip(ABSENT)
    assert isinstance(found, CorpusTable)
    return found


@pytest.mark.parametrize("name", sorted(STRAY_X))
def test_a_stray_letter_after_a_line_is_refused_with_file_and_line(name: str) -> None:
    table = table_named(name)
    for file in commits_of(table):
        with pytest.raises(CorruptLog, match=f"{file.name}, line 1: there is something after the object") as caught:
            parse_commit(file.read_bytes(), file=file.name, table_root=table.root.as_uri())
        assert (caught.value.details["file"], caught.value.details["line"]) == (file.name, 1)


def test_a_checkpoint_without_a_protocol_is_refused() -> None:
    log = LogDirectory.open(str(table_named(NO_PROTOCOL).root))
    [checkpoint] = log.list().checkpoints
    with pytest.raises(CorruptLog, match="has no protocol action"):
        list(read_checkpoint(log, checkpoint))


def test_a_log_with_a_gap_is_refused_and_the_missing_version_named() -> None:
    listing = LogDirectory.open(str(table_named(GAP).root)).list()
    with pytest.raises(CorruptLog, match="version 1 is missing"):
        replay_plan(listing)


def test_a_log_without_commits_is_refused() -> None:
    log = LogDirectory.open(str(table_named(EMPTY).root))
    with pytest.raises(CorruptLog, match="no commit and no complete checkpoint"):
        log.list()
