"""Logs that the corpus lacks: what happens to one file in odd orders, and how its path is spelled.

All of it is one log, a file or two for each story: Delta and Spark are asked once a version and not once a story.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from catalogs import ask, replayed
from delta_oracle import DeltaSpark
from logs import Log, add, info, metadata, protocol, remove, stats, vector
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  as every user of Spark calls it
from states import File, FileId, State, files_of, of_snapshot

from mainstem import Catalog, frames, open_catalog, replay
from mainstem.columns import FILE_COLUMN_NAMES, FILE_COLUMNS, SEQ
from mainstem.columns import Column as FileColumn
from mainstem.snapshot import Snapshot

pytestmark = pytest.mark.spark

INLINE = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
          "sizeInBytes": 40, "cardinality": 6}  # fmt: skip


def one(name: str) -> dict[str, Any]:
    return {"deletionVector": vector(name)}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    root = tmp_path_factory.mktemp("synthetic") / "a table"
    whole, bare = root.as_uri().replace("file://", "file:"), str(root)
    log = Log.begin(
        root,
        add("again", stats=stats(1)), add("again-twice", stats=stats(1)),
        add("dv"), add("dv-late"), add("dv-stale", **one("one")), add("dv-inline"), add("dv-back", **one("one")),
        add("dv-offset", **one("one")),
        add("same-version", stats=stats(1)), add("same-version-other-order", stats=stats(1)),
        add("restored", stats=stats(1)), add("gone"), add("gone-twice"),
        add("relative/x"), add(f"{whole}/absolute/x"), add(f"{whole}/absolute/y"), add(f"{whole}/absolute/z"),
        add("blank%20here"), add("escape%3ahere"), add("letter%41"), add("é"), add("dot/here"), add("slash/here"),
        add("up/here"),
        remove("never-there"),
        needs=protocol("deletionVectors"),
    )  # fmt: skip
    log.commit(
        # A live file is added again with other statistics, and nobody removes it.
        add("again", stats=stats(2)),
        # The usual order of a new deletion vector, and the other one.
        remove("dv"), add("dv", **one("one")),
        add("dv-late", **one("one")), remove("dv-late"),
        remove("dv-stale", **one("one")), add("dv-stale", **one("two")),
        remove("dv-inline"), add("dv-inline", deletionVector=INLINE),
        remove("dv-back", **one("one")), add("dv-back"),
        # The same vector's file, at another offset: another vector.
        remove("dv-offset", **one("one")), add("dv-offset", deletionVector=vector("one", offset=2)),
        # One file, removed and added by one version.
        remove("same-version"), add("same-version", stats=stats(2)),
        add("same-version-other-order", stats=stats(2)), remove("same-version-other-order"),
        add("in-and-out"), remove("in-and-out"), remove("out-and-in"), add("out-and-in"),
        add("added-twice", stats=stats(1)), add("added-twice", stats=stats(2)),
        remove("restored"), remove("gone"), remove("gone-twice"),
    )  # fmt: skip
    log.commit(
        add("again", stats=stats(3)), add("again-twice", stats=stats(2)), add("again-twice", stats=stats(3)),
        # A stale remove: it names a deletion vector that the file no longer has.
        remove("dv-stale", **one("one")), remove("dv"),
        remove("dv-inline"), remove("dv-offset", **one("one")),
        # What was removed comes back as it was, as RESTORE does it.
        add("restored", stats=stats(1), dataChange=True), remove("gone-twice"),
    )  # fmt: skip
    log.commit(
        # The same files, spelled in another way than by their adds: some are the same to Delta, some are not.
        remove(f"{whole}/relative/x"), remove(f"{bare}/absolute/x".replace(" ", "%20")),
        remove(f"{whole}/absolute/y".replace("file:", "file://", 1)), remove("absolute/z"),
        remove("blank%20here"), remove("escape%3Ahere"), remove("letterA"), remove("%C3%A9"),
        remove("./dot/here"), remove("slash//here"), remove("down/../up/here"),
    )  # fmt: skip
    log.commit(
        remove("again"), add("dv-late", stats=stats(9)), remove("dv-inline", deletionVector=INLINE),
        remove("dv-back"), add("dv-back", **one("one")), add("gone"), metadata(configuration={"k": "v"}),
    )  # fmt: skip
    return log


@pytest.fixture(scope="module")
def expected(log: Log, delta: DeltaSpark) -> Mapping[int, State]:
    """Delta's own word on every version."""
    found = delta.states(log.location, range(log.next_version()))
    return {version: replace(state, files=spelled(state.files)) for version, state in found.items()}


@pytest.fixture
def connected(catalog: Catalog, spark: SparkSession) -> Catalog:
    return open_catalog(catalog.settings.catalog, spark=spark)


def spelling(path: str) -> str:
    """An absolute path in one spelling: Delta's state gives a scheme to one that has none, we give it verbatim."""
    return re.sub("^(?:file:)?/+", "file:/", path)


def spelled(files: Mapping[FileId, File]) -> dict[FileId, File]:
    return {(spelling(path), dv): file for (path, dv), file in files.items()}


def by_spark(snapshot: Snapshot, engine: Any) -> dict[FileId, File]:
    return spelled(files_of(row.asDict() for row in snapshot.files(engine=engine).collect()))


def active_files(catalog: Catalog) -> dict[FileId, File]:
    """The view that answers for the head."""
    rows = ask(catalog, f"SELECT {', '.join(FILE_COLUMN_NAMES)} FROM vw_active_files")
    return spelled(files_of(dict(zip(FILE_COLUMN_NAMES, row, strict=True)) for row in rows))


def test_spans_views_replay_and_delta_agree_at_every_version(
    connected: Catalog, log: Log, expected: Mapping[int, State]
) -> None:
    connected.import_table(log.location, name="t")  # which compares the head with Delta's, too
    for version, theirs in expected.items():
        snapshot = connected.table("t").snapshot(version=version)
        ours = of_snapshot(snapshot)
        assert spelled(ours.files) == theirs.files, version
        assert (ours.metadata, ours.protocol) == (theirs.metadata, theirs.protocol), version
        assert spelled(files_of(replayed(connected, "t", version).values())) == theirs.files, version
        assert by_spark(snapshot, "spans") == theirs.files, version
        assert by_spark(snapshot, "replay") == theirs.files, version


def test_the_view_answers_for_every_head_and_following_gives_the_same(
    catalog: Catalog, log: Log, expected: Mapping[int, State]
) -> None:
    for version, theirs in expected.items():
        catalog.import_table(log.location, name="t", force=True, up_to_version=version)
        assert active_files(catalog) == theirs.files, version
    catalog.import_table(log.location, name="t", force=True, up_to_version=0)
    catalog.table("t").follow()
    assert active_files(catalog) == expected[max(expected)].files
    for version, theirs in expected.items():
        assert spelled(of_snapshot(catalog.table("t").snapshot(version=version)).files) == theirs.files, version


Ranking = Callable[[], Sequence[SparkColumn]]
PATH = FileColumn("path", "string", "string")


def first_add_wins() -> Sequence[SparkColumn]:
    return F.desc("is_add"), F.asc("version"), F.asc("seq")


def oldest_first() -> Sequence[SparkColumn]:
    return F.asc("version"), F.asc("seq")


def adds_beat_removes() -> Sequence[SparkColumn]:
    return F.desc("version"), F.desc("is_add"), F.desc("seq")


def order_in_a_version_is_forgotten() -> Sequence[SparkColumn]:
    return F.desc("version"), F.asc("seq")


@pytest.mark.parametrize("catalog_uri", ["sqlite"], indirect=True)
def test_a_replay_that_forgets_something_is_found_out(
    connected: Catalog, log: Log, expected: Mapping[int, State], spark: SparkSession
) -> None:
    connected.import_table(log.location, name="t")
    snapshot = connected.table("t").snapshot()

    def mutant(version: int, *, file: str = "file_key", ranking: Ranking = replay.newest_first) -> Any:
        place = {"spark": spark, "engine": connected.engine, "table_id": snapshot.table_id, "version": version}
        columns = (*frames.ACTION_COLUMNS, PATH)
        actions = replay.actions(frames.adds(**place, columns=columns), frames.removes(**place, columns=columns))
        live = replay.live_places(actions, file=file, ranking=ranking)
        rows = replay.files_at(live, frames.adds(**place, columns=(*FILE_COLUMNS, SEQ))).collect()
        return sorted((spelling(row.path), row.dv_id or "", row.stats or "") for row in rows)

    def right(version: int) -> Any:
        return sorted((path, dv or "", file.stats or "") for (path, dv), file in expected[version].files.items())

    assert [mutant(version) for version in (1, 2)] == [right(version) for version in (1, 2)]
    assert mutant(1, file="path") != right(1), "the deletion vector is a part of a file's name"
    assert mutant(2, file="path") != right(2)
    assert mutant(2, ranking=first_add_wins) != right(2)
    assert mutant(1, ranking=oldest_first) != right(1)
    assert mutant(1, ranking=adds_beat_removes) != right(1)
    assert mutant(1, ranking=order_in_a_version_is_forgotten) != right(1)


def timed_log(root: Path, times: Sequence[tuple[int, int | None]], enabled_from: int | None) -> Log:
    """A log whose files are of these times, and whose commits say these of themselves."""
    log, base = Log(root), 1_700_000_000_000
    for version, (file, own) in enumerate(times):
        said = {} if own is None else {"inCommitTimestamp": base + own}
        actions: list[Any] = [add(f"f{version}")]
        if version == 0:
            actions += [protocol(writer=("inCommitTimestamp",)), metadata()]
        if version == enabled_from:
            properties = {"delta.enableInCommitTimestamps": "true"}
            if version:
                properties["delta.inCommitTimestampEnablementVersion"] = str(version)
                properties["delta.inCommitTimestampEnablementTimestamp"] = str(base + (own or 0))
            actions = [action for action in actions if "metaData" not in action] + [metadata(configuration=properties)]
        log.commit(info(**said), *actions, at_ms=base + file)
    return log


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Mapping[str, dict[int, int]]:
    """Logs by their location, each with the times that Delta shows for its versions."""
    logs = [
        timed_log(tmp_path_factory.mktemp("times") / "files", [(1000, None), (900, None), (900, None)], None),
        timed_log(tmp_path_factory.mktemp("times") / "commits", [(9000, 1), (8000, 1000), (100, 2000)], 0),
        timed_log(tmp_path_factory.mktemp("times") / "both", [(9, None), (9, None), (90_000, 3000), (1, 4000)], 2),
    ]
    found: dict[str, dict[int, int]] = {}
    for log in logs:
        history = spark.sql(f"DESCRIBE HISTORY delta.`{log.location}`").selectExpr("version", "unix_millis(timestamp)")
        found[log.location] = {row[0]: row[1] for row in history.collect()}
    return found


def test_times_are_those_of_deltas_history(catalog: Catalog, histories: Mapping[str, dict[int, int]]) -> None:
    for location, theirs in histories.items():
        catalog.import_table(location, name=location)
        history = catalog.table(location).history()
        assert {entry.version: round(entry.committed_at.timestamp() * 1000) for entry in history} == theirs
