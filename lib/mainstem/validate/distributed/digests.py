"""Digests: a count and an order-free hash of every version's actions, in the catalog and in the log.

The log's lines are read by Spark's own reader of JSON, not by the parser that once filled the catalog: a mistake of
that parser shows here. Two spellings of one value have one digest; whether the bytes are right, their sha256 says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mainstem import frames
from mainstem.deltalog.layout import COLUMNS
from mainstem.deltalog.names import Commit
from mainstem.validate.distributed.recordedrows import DV_ID, ROWS, as_entries, versions_of
from mainstem.validate.distributed.tasks import LINES, ReadLines
from mainstem.validate.subject import Subject

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_SHARES_PER_CORE = 4
# To open a small file takes as long as to read so many bytes of a large one.
_OPENING = 10_000
_MAP = "map<string,string>"
_LINE = ", ".join([*(f"{name} {_MAP}" for name in COLUMNS), "commitInfo string", "bad string"])
_VECTOR = "storageType string, pathOrInlineDv string, offset string"
_LOW = 2**32


def compared(subject: Subject) -> DataFrame:
    """Every version that was committed, with its digests: `catalog_` and `log_actions`, `_digest`, and the hashes.

    What the log has of it is null where its file is not there, or does not have to be yet.
    """
    from pyspark.sql import functions as F  # noqa: N812

    versions = versions_of(subject).where(F.col("kind") == "commit").drop("kind", "commit_info")
    ours = _digested(as_entries(subject), "catalog")
    theirs = log_digests(subject, published(subject))
    found = versions.join(ours, "version", "left").join(theirs, "version", "left")
    return found.select(
        "version", (F.col("txn_id").isNotNull()).alias("ratified"), "content_sha256", "log_sha256",
        F.coalesce("catalog_actions", F.lit(0)).alias("catalog_actions"), "catalog_digest",
        F.when(F.col("log_sha256").isNotNull(), F.coalesce("log_actions", F.lit(0))).alias("log_actions"),
        "log_digest", "log_error",
    )  # fmt: skip


def published(subject: Subject) -> list[Commit]:
    """The commits that the log has of versions that the catalog can answer, as far as they are published."""
    known = {row["version"] for row in subject.versions if row["kind"] == "commit"}
    last = min(subject.head, subject.published)
    return [commit for commit in subject.listing.commits if commit.version <= last and commit.version in known]


def shared(subject: Subject, commits: Sequence[Commit]) -> DataFrame:
    """The versions of commits as a frame whose partitions are about the same work."""
    share = max(1, sum(map(_cost, commits)) // (frames.parallelism(subject.spark) * _SHARES_PER_CORE))
    rows, held = [], 0
    for commit in commits:
        rows.append((held // share, commit.version))
        held += _cost(commit)
    frame = subject.spark.createDataFrame(rows, "share bigint, version bigint")
    count = rows[-1][0] + 1 if rows else 1
    return frame.repartitionByRange(count, "share").select("version")


def _cost(commit: Commit) -> int:
    return commit.file.size_bytes + _OPENING


def log_digests(subject: Subject, commits: Sequence[Commit]) -> DataFrame:
    """The digest of every one of these commits, from its lines, with the sha256 of its bytes."""
    from pyspark.sql import functions as F  # noqa: N812

    lines = shared(subject, commits).mapInArrow(ReadLines(subject.place.uri), LINES)
    line = F.col("line").cast("string")
    read = lines.withColumn("read", F.from_json(line, _LINE, {"columnNameOfCorruptRecord": "bad"}))
    body = F.coalesce(*(F.col(f"read.{name}") for name in COLUMNS))
    other = F.get(F.map_entries(F.from_json(line, _MAP)), F.lit(0))
    known = [F.col(f"read.{name}").isNotNull() for name in (*COLUMNS, "commitInfo")]
    entries = (
        F.when(body.isNotNull(), F.concat(F.map_entries(body), *_derived(body)))
        .when(F.col("read.commitInfo").isNotNull(), F.array(_pair("body", F.col("read.commitInfo"))))
        .when(other.isNotNull(), F.array(_pair("body", other["value"])))
        # A line that is no JSON equals nothing that the catalog has: the version will be opened.
        .otherwise(F.array(_pair("unreadable", line)))
    )
    name = _first_of(
        [*zip((*COLUMNS, "commitInfo"), known, strict=True)], F.coalesce(other["key"], F.lit("unreadable"))
    )
    found = read.select(
        "version", "sha256", "error", F.when(F.col("line").isNotNull(), name).alias("name"), entries.alias("entries")
    )
    return _digested(found, "log", F.max("sha256").alias("log_sha256"), F.max("error").alias("log_error"))


def _first_of(known: Iterable[tuple[str, Expression]], otherwise: Expression) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    (first, present), *rest = known
    found = F.when(present, F.lit(first))
    for name, each in rest:
        found = found.when(each, F.lit(name))
    return found.otherwise(otherwise)


def _derived(body: Expression) -> Sequence[Expression]:
    """What our columns derive from an action: the id of its deletion vector, and how many rows its statistics say."""
    from pyspark.sql import functions as F  # noqa: N812

    vector = F.from_json(body["deletionVector"], _VECTOR)
    offset = F.when(vector["offset"].isNotNull(), F.concat(F.lit("@"), vector["offset"])).otherwise(F.lit(""))
    dv_id = F.concat(vector["storageType"], vector["pathOrInlineDv"], offset)
    rows = F.get_json_object(body["stats"], "$.numRecords")
    rows = F.when(F.col("read.add").isNotNull() & rows.rlike("^[0-9]{1,18}$"), rows)
    return F.array(_pair(DV_ID, dv_id)), F.array(_pair(ROWS, rows))


def _pair(key: str, value: Expression) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(F.lit(key).alias("key"), value.alias("value"))


def _digested(actions: DataFrame, side: str, *others: Expression) -> DataFrame:
    """(version, name, entries) by version: how many, and the sum of their hashes, by halves as 64 bits overflow."""
    from pyspark.sql import functions as F  # noqa: N812

    filled = F.array_sort(F.filter("entries", lambda entry: entry["value"].isNotNull()))
    hashed = actions.withColumn("hash", F.when(F.col("name").isNotNull(), F.xxhash64("name", filled)))
    low, high = F.sum(F.col("hash").bitwiseAND(F.lit(_LOW - 1))), F.sum(F.shiftright("hash", 32))
    digest = F.concat_ws(":", low.cast("string"), high.cast("string"))
    return hashed.groupBy("version").agg(
        F.count("hash").alias(f"{side}_actions"), digest.alias(f"{side}_digest"), *others
    )
