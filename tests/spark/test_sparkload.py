"""An import by Spark's executors: the driver's rows one by one, the driver's errors, and nothing left behind."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from pyspark.sql import SparkSession
from spark_cases import METADATA, PROTOCOL, START, Action, add, domain, odd_commits, put, remove, txn, write_log
from table_rows import COLUMNS, all_rows

from mainstem import Catalog, MainstemError, importer, open_catalog
from mainstem.bench import logwriter
from mainstem.bench.recipe import Recipe
from mainstem.deltalog.history import ReplayPlan
from mainstem.deltalog.names import Checkpoint, CheckpointKind, Commit, LogFile, commit_name
from mainstem.errors import CorruptLog, UnsupportedFeature
from mainstem.logtask import shares
from mainstem.sparkload import SparkLoad

pytestmark = pytest.mark.spark

CHECKPOINT = "checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"


@pytest.fixture
def by_spark(catalog_uri: str, catalog: Catalog) -> Iterator[Catalog]:
    """The same catalog, opened so that the executors read every log."""
    with open_catalog(catalog_uri, import_bytes=0) as opened:
        yield opened


def load(catalog: Catalog, log: Path, name: str, spark: SparkSession | None = None) -> importer.Imported:
    return importer.import_table(catalog.store, str(log), name=name, spark=spark)


def rows(catalog: Catalog, imported: importer.Imported) -> dict[str, list[tuple[Any, ...]]]:
    return all_rows(catalog, imported.table_id)


def left(catalog: Catalog) -> set[str]:
    """What there is beside empty `dl_*` tables: rows, and staging tables."""
    with catalog.engine.reading() as connection:
        counts = {
            table: catalog.engine.execute(connection, f"SELECT count(*) FROM {table}", {}).fetchone()[0]
            for table in COLUMNS
        }
        return {table for table, count in counts.items() if count} | catalog.engine.staging_tables(connection)


# Logs that are fine.


def starting_late(root: Path) -> Path:
    """A log whose beginning was cleaned up: a checkpoint with everything that a state holds, then commits."""
    state: list[Action] = [
        {"checkpointMetadata": {"version": 4}},
        {"protocol": PROTOCOL},
        {"metaData": METADATA},
        txn("stream-1", 2),
        txn("stream-2", 7),
        domain("delta.rowTracking", '{"rowIdHighWaterMark":3799}'),
        *(remove(number) for number in range(40, 50)),
        *(add(number, dv=number % 2 or None) for number in range(40)),
    ]
    put(root, f"{4:020d}.{CHECKPOINT}", state, 4)
    put(root, f"{4:020d}.json", odd_commits()[4], 4)
    return write_log(root, odd_commits()[5:], first=5)


def starting_with_a_checkpoint_alone(root: Path) -> Path:
    starting_late(root)
    (root / "_delta_log" / f"{4:020d}.json").unlink()
    return root


def with_times_of_its_own(root: Path) -> Path:
    """In-commit timestamps from version 3 on, some of which do not grow."""
    commits = odd_commits()
    properties = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "3"}
    commits[3].append({"metaData": {**METADATA, "configuration": properties}})
    commits[8][-1]["metaData"]["configuration"] = properties
    for version in range(3, 9):
        commits[version][0]["commitInfo"]["inCommitTimestamp"] = START + 5000 - version
    return write_log(root, commits)


def with_a_classic_checkpoint(root: Path) -> Path:
    """Sixty commits with the checkpoint that Delta would have left at version 60."""
    return logwriter.write_log(Recipe(adds=300, removes=100, commits=64), root)


def cleaned_up(root: Path) -> Path:
    for version in range(60):
        (with_a_classic_checkpoint(root) if version == 0 else root).joinpath(
            "_delta_log", commit_name(version)
        ).unlink()
    return root


FINE: tuple[Callable[[Path], Path], ...] = (
    lambda root: write_log(root, odd_commits()),
    starting_late,
    starting_with_a_checkpoint_alone,
    with_times_of_its_own,
    with_a_classic_checkpoint,
    cleaned_up,
)


def test_the_executors_write_the_drivers_rows(
    catalog: Catalog, by_spark: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    seen: dict[str, int] = {}
    for number, make in enumerate(FINE):
        log = make(tmp_path / str(number))
        ours, theirs = load(catalog, log, f"driver.{number}"), load(by_spark, log, f"spark.{number}", spark)
        expected = rows(catalog, ours)
        assert rows(catalog, theirs) == expected
        assert (theirs.first_version, theirs.version, theirs.actions, theirs.files) == (
            ours.first_version,
            ours.version,
            ours.actions,
            ours.files,
        )
        for table, found in expected.items():
            seen[table] = seen.get(table, 0) + len(found)
        assert not {name for name in left(catalog) if name.startswith("stg_")}
    assert all(seen.values()), f"nothing was compared in {[table for table, count in seen.items() if not count]}"


def test_a_log_is_read_by_the_executors_only_beyond_the_setting(
    catalog_uri: str, catalog: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path / "log", odd_commits()[:3])
    size = sum(file.stat().st_size for file in (log / "_delta_log").iterdir())
    staged: list[int] = []
    stage = SparkLoad.stage
    monkeypatch.setattr(SparkLoad, "stage", lambda self: (staged.append(size), stage(self)))
    for most, expected in ((size, []), (size - 1, [size])):
        with open_catalog(catalog_uri, import_bytes=most) as opened:
            load(opened, log, f"t.{most}", spark)
        assert staged == expected


# Logs that are refused.


def broken(line: str, *, version: int, at: int = 1) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        write_log(root, odd_commits())
        file = root / "_delta_log" / commit_name(version)
        lines = file.read_text(encoding="utf-8").splitlines()
        lines.insert(at, line)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return root

    return make


def of_tomorrow(root: Path) -> Path:
    """Two faults: what the driver finds first, the executors find first too."""
    broken("{", version=7)(root)
    protocol = {**PROTOCOL, "readerFeatures": [*PROTOCOL["readerFeatures"], "timeTravelForward"]}
    put(root, commit_name(5), [*odd_commits()[5], {"protocol": protocol}], 5)
    return root


def without_metadata(root: Path) -> Path:
    commits = odd_commits()
    commits[0].pop()
    commits[8].pop()
    return write_log(root, commits)


def with_a_checkpoint_that_says_otherwise(root: Path) -> Path:
    write_log(root, odd_commits()[:3])
    live = [add(number) for number in (*(n for n in range(320) if n % 5), *range(320, 379), 999)]
    state = [{"protocol": PROTOCOL}, {"metaData": METADATA}, *live]
    put(root, f"{2:020d}.{CHECKPOINT}", state, 2)
    return root


def with_a_commit_that_went_away(root: Path) -> Path:
    write_log(root, [*odd_commits()[:3], *odd_commits()[4:]])
    (root / "_delta_log" / commit_name(3)).unlink()
    return root


REFUSED: tuple[tuple[Callable[[Path], Path], type[MainstemError], dict[str, Any]], ...] = (
    (broken('{"add":', version=5, at=3), CorruptLog, {"file": commit_name(5), "line": 4}),
    (broken('{"add":{"path":"%2e%2e/x"}}', version=2), CorruptLog, {"file": commit_name(2), "line": 2}),
    (broken('{"txn":{"appId":"a","version":9223372036854775808}}', version=7), CorruptLog, {"line": 2}),
    (of_tomorrow, UnsupportedFeature, {"features": ["timeTravelForward"]}),
    (without_metadata, CorruptLog, {}),
    (with_a_checkpoint_that_says_otherwise, CorruptLog, {"version": 2, "file": f"{2:020d}.{CHECKPOINT}"}),
    (with_a_commit_that_went_away, CorruptLog, {}),
)


def test_a_refused_log_is_refused_in_the_drivers_words_and_leaves_nothing(
    catalog: Catalog, by_spark: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    for number, (make, kind, details) in enumerate(REFUSED):
        log = make(tmp_path / str(number))
        with pytest.raises(kind) as ours:
            load(catalog, log, "refused")
        with pytest.raises(kind) as theirs:
            load(by_spark, log, "refused", spark)
        assert type(theirs.value) is kind
        assert theirs.value.as_dict() == ours.value.as_dict()
        assert details.items() <= theirs.value.details.items()
        assert left(catalog) == set()


def test_a_refused_log_leaves_the_table_that_force_would_have_replaced(
    catalog: Catalog, by_spark: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    before = rows(catalog, done := load(catalog, write_log(tmp_path / "fine", odd_commits()), "t"))
    with pytest.raises(CorruptLog):
        importer.import_table(
            by_spark.store, str(broken("{", version=5)(tmp_path / "not")), name="t", force=True, spark=spark
        )
    assert rows(catalog, done) == before
    again = importer.import_table(
        by_spark.store, str(starting_late(tmp_path / "late")), name="t", force=True, spark=spark
    )
    assert again.table_id == done.table_id
    assert len(rows(catalog, again)["dl_table_versions"]) == 5
    assert not {name for name in left(catalog) if name.startswith("stg_")}


# Tasks and drivers that die.


class Twice(SparkLoad):
    """Every task runs to its end, its answer is lost, and it runs again."""

    def _run(self) -> list[Any]:
        SparkLoad._run(self)
        return SparkLoad._run(self)


def test_tasks_that_run_twice_do_no_harm(
    catalog: Catalog, by_spark: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path / "log", odd_commits())
    state = [{"protocol": PROTOCOL}, {"metaData": METADATA}, *(add(number) for number in range(320))]
    put(log, f"{1:020d}.{CHECKPOINT}", state, 1)
    expected = rows(catalog, load(catalog, log, "driver"))
    monkeypatch.setattr(importer, "SparkLoad", Twice)
    assert rows(catalog, load(by_spark, log, "spark", spark)) == expected


class Dies(SparkLoad):
    """The driver ends after the executors have worked: nobody publishes, nobody cleans up."""

    began = 0

    def stage(self) -> None:
        self._token = f"stg_{self.began}_{uuid4().hex[:8]}"
        SparkLoad.stage(self)

    def write(self, *given: Any) -> None:
        raise KeyboardInterrupt

    def drop(self) -> None:
        pass


def test_what_a_crash_leaves_is_swept_by_a_later_import(
    catalog: Catalog, by_spark: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path / "log", odd_commits())
    long_ago, just_now = 1_700_000_000, int(time.time())
    for began in (just_now, long_ago):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Dies, "began", began)
            patched.setattr(importer, "SparkLoad", Dies)
            load(by_spark, log, "crashed", spark)
    abandoned = left(catalog)
    assert {name.split("_")[1] for name in abandoned} == {str(long_ago), str(just_now)}
    imported = load(by_spark, log, "fine", spark)
    # Whoever began it just now may still be working on it.
    kept = {name for name in left(catalog) if name.startswith("stg_")}
    assert kept == {name for name in abandoned if name.startswith(f"stg_{just_now}_")}
    assert rows(catalog, imported) == rows(catalog, load(catalog, log, "driver"))


# How the work is cut.


def commits(sizes: Sequence[int], *, first: int = 0) -> tuple[Commit, ...]:
    return tuple(Commit(version, LogFile(commit_name(version), size, 7)) for version, size in enumerate(sizes, first))


def test_a_log_is_cut_into_runs_of_about_the_same_cost() -> None:
    plan = ReplayPlan(0, 999, None, None, commits([1000] * 500 + [50_000_000] + [1000] * 499))
    found = shares(plan, None, most=8)
    runs = [[version for version, *_ in orjson.loads(share.commits)] for share in found]
    assert list(chain(*runs)) == list(range(1000))
    assert [share.first for share in found] == [run[0] for run in runs]
    assert len(found) <= 8
    assert max(map(len, runs)) <= 501  # the large commit ends its run


def test_a_share_carries_all_that_a_task_needs_to_know() -> None:
    checkpoint = Checkpoint(4, CheckpointKind.CLASSIC, 1, (LogFile("c", 1, 1),))
    plan = ReplayPlan(4, 6, checkpoint, None, commits([10, 20], first=5))
    found = shares(plan, Checkpoint(6, CheckpointKind.CLASSIC, 1, (LogFile("d", 1, 1),)), most=1)
    assert [(share.first, share.kind) for share in found] == [(4, "start"), (5, "commits"), (6, "check")]
    assert json.loads(found[1].commits) == [[5, commit_name(5), 10, 7], [6, commit_name(6), 20, 7]]
    assert shares(ReplayPlan(4, 4, checkpoint, None, ()), None, most=8) == [found[0]]
