"""Commits against the log: digests of all versions first, then only those that differ, action by action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from mainstem import frames
from mainstem.columns import Column
from mainstem.deltalog.names import commit_name
from mainstem.rows import ADDS, REMOVES, Shape
from mainstem.validate.commits import other_bytes
from mainstem.validate.distributed.digests import compared, published, shared
from mainstem.validate.distributed.recordedrows import as_json
from mainstem.validate.distributed.tasks import (
    HASHES,
    KEYED,
    LAID,
    HashRecorded,
    LayRecorded,
    ReadActions,
    WrongKeys,
)
from mainstem.validate.distributed.told import MOST, told
from mainstem.validate.laid import differs, only
from mainstem.validate.report import Finding
from mainstem.validate.subject import Subject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYED = (
    Column("version", "bigint", "int64"), Column("seq", "bigint", "int64"), Column("path", "string", "string"),
    Column("dv_id", "string", "string"), Column("path_bucket", "int", "int32"), Column("file_key", "binary", "binary"),
)  # fmt: skip
_MOST_OPENED = 10_000
_BY = ("version", "name", "about", "number")


@dataclass(frozen=True)
class Suspect:
    """A version whose digests, hashes or keys are not what they should be."""

    version: int
    recorded_sha256: str | None
    log_sha256: str | None


def commits_equal(subject: Subject) -> Iterator[Finding]:
    """Every commit has the bytes that were ratified: in the catalog's rows, and in the log."""
    from pyspark.sql import functions as F  # noqa: N812

    digests = subject.evidence("commits", lambda: compared(subject))
    rewritten = _rewritten(subject, digests)
    same = (
        F.col("log_error").isNull()
        & F.col("log_sha256").eqNullSafe(F.col("content_sha256"))
        & (F.col("log_actions") == F.col("catalog_actions"))
        & (F.coalesce("log_digest", F.lit("")) == F.coalesce("catalog_digest", F.lit("")))
    )
    unequal = digests.where(F.col("log_sha256").isNotNull() & ~F.coalesce(same, F.lit(False)))
    suspects = {
        row["version"]: Suspect(row["version"], row["content_sha256"], row["log_sha256"])
        for row in subject.collect(unequal.orderBy("version").limit(_MOST_OPENED + 1))
    }
    wrong = {*rewritten, *_wrong_keys(subject)} - suspects.keys()
    known = digests.where(F.col("version").isin(sorted(wrong))) if wrong else digests.limit(0)
    for row in subject.collect(known):
        suspects[row["version"]] = Suspect(row["version"], row["content_sha256"], row["log_sha256"])
    if len(suspects) > _MOST_OPENED:
        yield Finding(
            "differs", "error", f"more than {_MOST_OPENED} versions differ; the first of them are looked into"
        )
    opened = sorted(suspects)[:_MOST_OPENED]
    told_of: set[int | None] = set()
    if opened:
        for finding in _opened(subject, opened):
            told_of.add(finding.version)
            yield finding
    for version in opened:
        if version not in told_of:
            yield from _bytes_of(suspects[version], rewritten=version in rewritten)


def _bytes_of(suspect: Suspect, *, rewritten: bool) -> Iterator[Finding]:
    if suspect.log_sha256 is not None and suspect.log_sha256 != suspect.recorded_sha256:
        yield other_bytes("log", suspect.version, suspect.recorded_sha256, suspect.log_sha256)
    elif rewritten:
        yield other_bytes("catalog", suspect.version, suspect.recorded_sha256, suspect.log_sha256)


def _rewritten(subject: Subject, digests: DataFrame) -> set[int]:
    """Versions that were committed here, and whose rows are no longer written as what was ratified."""
    from pyspark.sql import functions as F  # noqa: N812

    if not any(row["txn_id"] is not None for row in subject.versions):
        return set()
    ratified = digests.where("ratified").select("version", "content_sha256")
    rows = as_json(subject).join(ratified.select("version"), "version", "left_semi")
    ordered = rows.repartition("version").sortWithinPartitions("version", "seq")
    hashes = ordered.mapInArrow(HashRecorded(), HASHES)
    wrong = ratified.join(hashes, "version", "left").where(~F.col("sha256").eqNullSafe(F.col("content_sha256")))
    return {row["version"] for row in subject.collect(wrong.select("version").orderBy("version").limit(_MOST_OPENED))}


def _wrong_keys(subject: Subject) -> set[int]:
    """Versions with files whose key or bucket is not that of their path: replay and slices would miss them."""

    def of(shape: Shape) -> DataFrame:
        rows = frames.actions(
            subject.spark, subject.store.engine, subject.table_id, shape.table, _KEYED, first=subject.floor,
            last=subject.head,
        )  # fmt: skip
        return rows.mapInArrow(WrongKeys(subject.place.uri), KEYED)

    wrong = of(ADDS).unionByName(of(REMOVES)).select("version").distinct()
    return {row["version"] for row in subject.collect(wrong.orderBy("version").limit(_MOST_OPENED))}


def ranges(versions: Iterable[int]) -> list[tuple[int, int]]:
    """Versions in order as runs without a gap."""

    def put(found: list[tuple[int, int]], version: int) -> list[tuple[int, int]]:
        if found and found[-1][1] == version - 1:
            return [*found[:-1], (found[-1][0], version)]
        return [*found, (version, version)]

    start: list[tuple[int, int]] = []
    return reduce(put, sorted(versions), start)


def _opened(subject: Subject, versions: Sequence[int]) -> Iterator[Finding]:
    """The two sides of these versions, joined: what one alone has, and where both differ."""
    from pyspark.sql import functions as F  # noqa: N812

    wanted = set(versions)
    commits = [commit for commit in published(subject) if commit.version in wanted]
    logged = shared(subject, commits).mapInArrow(ReadActions(subject.place.uri), LAID).persist()
    broken = subject.collect(
        logged.where("error IS NOT NULL").select("version", "error").orderBy("version").limit(MOST)
    )
    for row in broken:
        yield Finding(
            "unreadable_commit", "error", row["error"], version=row["version"], path=commit_name(row["version"])
        )
    readable = sorted({commit.version for commit in commits} - {row["version"] for row in broken})
    if not readable:
        return
    recorded = as_json(subject, ranges=ranges(readable)).mapInArrow(LayRecorded(), LAID)
    in_both = F.col("version").isin(readable)
    ours, theirs = _numbered(recorded.where(in_both), "ours"), _numbered(logged.where(in_both), "theirs")
    joined = ours.join(theirs, list(_BY), "full_outer")
    missing = F.col("ours").isNull() | F.col("theirs").isNull()
    unequal = F.filter(
        F.map_entries(
            F.map_zip_with("ours", "theirs", lambda _, left, right: F.struct(left.alias("left"), right.alias("right")))
        ),
        lambda entry: ~entry["value"]["left"].eqNullSafe(entry["value"]["right"]),
    )
    found = joined.withColumn("columns", F.when(~missing, unequal)).where(missing | (F.size("columns") > 0))
    yield from told(subject, found, "differs", _finding, by=_BY)
    logged.unpersist()


def _numbered(actions: DataFrame, side: str) -> DataFrame:
    """Each action with the how manieth it is of those about the same."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    same = Window.partitionBy("version", "name", "about").orderBy("seq")
    return actions.select(
        "version", "name", "about", F.row_number().over(same).alias("number"), F.col("fields").alias(side)
    )


def _finding(row: Any) -> Iterator[Finding]:
    if row["theirs"] is None:
        yield only("missing_in_log", row["version"], row["name"], row["about"])
    elif row["ours"] is None:
        yield only("missing_in_catalog", row["version"], row["name"], row["about"])
    else:
        for entry in sorted(row["columns"], key=lambda entry: str(entry["key"])):
            left, right = entry["value"]["left"], entry["value"]["right"]
            yield differs(row["version"], row["name"], row["about"], entry["key"], left, right)
