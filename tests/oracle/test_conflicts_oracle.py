"""The conflict matrix, answered by Delta Spark: same verdict, same name, and after a rebase the same numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conflict_cases import LEVELS, ROOT, Case, Json, actions, info
from conflict_matrix import CASES, FILE_CASES, case
from delta_loser import DeltaLoser
from pyspark.sql import SparkSession

from mainstem.conflicts import find_conflicts
from mainstem.deltalog import serialize_commit
from mainstem.model import Action, CommitInfo, Metadata, Protocol
from mainstem.rebase import high_water_mark, rebase, with_commit_info

pytestmark = pytest.mark.spark

# Delta finds out by its check of the protocol itself, before it speaks of conflicts.
SAID_OTHERWISE = {"DeltaUnsupportedTableFeatureException": "ProtocolChangedException"}


@pytest.fixture(scope="module")
def loser(spark: SparkSession) -> DeltaLoser:
    return DeltaLoser(spark)


@pytest.mark.parametrize("scenario", CASES, ids=str)
def test_delta_gives_the_same_verdict(scenario: Case, loser: DeltaLoser, tmp_path: Path) -> None:
    # The other rules do not look at the level; one answer is enough there, and takes a quarter of a second.
    for level in LEVELS if scenario in FILE_CASES else LEVELS[1:]:
        theirs = loser.verdict(tmp_path / level, scenario, level)
        current = scenario.proposed(level)
        found = find_conflicts(current, scenario.won(level), table_root=ROOT)
        if isinstance(theirs, str):
            assert found, theirs
            assert f"{found[0].rule}Exception" == SAID_OTHERWISE.get(theirs, theirs)
        else:
            assert found == []
            told = theirs[0]["commitInfo"]
            assert (told["isolationLevel"], told["isBlindAppend"]) == (current.isolation.value, current.blind_append)
            assert numbers(ours(scenario, level, theirs), scenario, level) == numbers(theirs, scenario, level)


def test_a_predicate_reads_the_files_that_the_cases_say(loser: DeltaLoser, tmp_path: Path) -> None:
    reading = {found.where: found.files for found in FILE_CASES if found.where}
    found = loser.files_read(tmp_path, case("append after append"), reading)
    assert found == {where: set(files) for where, files in reading.items()}


def ours(scenario: Case, level: str, theirs: list[Json]) -> list[Json]:
    """What we would have written instead of Delta, at the same moment."""
    state, winners = actions(scenario.lines(level)), scenario.won(level)
    own = actions([info(scenario.operation), *scenario.own_at(level)])
    history: list[Action] = [*state, *(action for winner in winners for action in winner.actions)]
    before = last(history, Metadata)
    version = len(winners) + 1
    moved = rebase(
        own,
        winners=winners,
        read_version=0,
        new_version=version,
        protocol=last([*history, *own], Protocol),
        metadata=last([*history, *own], Metadata),
        metadata_read=last(state, Metadata),
        high_water_mark=high_water_mark(state),
        table_root=ROOT,
    )
    written = with_commit_info(
        moved,
        fields={},
        now_ms=theirs[0]["commitInfo"]["timestamp"],
        previous_ms=last(history, CommitInfo).in_commit_timestamp,
        version=version,
        metadata_before=before,
        metadata=last([before, *moved], Metadata),
    )
    return [json.loads(line) for line in serialize_commit(written).splitlines()]


def numbers(lines: list[Json], scenario: Case, level: str) -> dict[str, Any]:
    """All of a commit that depends on its version and on the winners."""
    [said] = [line["commitInfo"] for line in lines if "commitInfo" in line]
    rows = {
        (kind, body["path"]): (body.get("baseRowId"), body.get("defaultRowCommitVersion"))
        for line in lines
        for kind, body in line.items()
        if kind in ("add", "remove")
    }
    # Delta repeats a high water mark that has not moved; here a table keeps it as it was.
    marks = [
        high_water_mark(found) for found in (actions(scenario.lines(level)), *(w.actions for w in scenario.won(level)))
    ]
    mark = [*(found for found in (*marks, high_water_mark(actions(lines))) if found is not None), None][-2:][0]
    table = [line["metaData"] for line in lines if "metaData" in line]
    return {
        "rows": rows,
        "mark": mark,
        "timestamp": said.get("inCommitTimestamp"),
        "tags": said.get("tags"),
        "properties": [body["configuration"] for body in table],
        "schema": [json.loads(body["schemaString"]) for body in table],
    }


def last(found: Any, kind: Any) -> Any:
    return [action for action in found if isinstance(action, kind)][-1]
