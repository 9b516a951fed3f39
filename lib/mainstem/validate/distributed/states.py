"""Whole states of the table: checkpoints as Spark reads them, and Delta's own reconstruction of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from mainstem import frames
from mainstem.columns import Column
from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.checkpoints import checkpoint_sidecars, top_actions
from mainstem.deltalog.files import LOG, SIDECARS
from mainstem.deltalog.history import replay_plan
from mainstem.deltalog.names import Checkpoint, commit_name
from mainstem.errors import MainstemError
from mainstem.jvm import delta_state
from mainstem.model import Action
from mainstem.session import is_spark_error
from mainstem.validate.commits import (
    checkpoint_describes,
    checkpoint_differs,
    checkpoint_has_more,
    checkpoint_lacks,
)
from mainstem.validate.described import described_differences, of_actions, of_snapshot
from mainstem.validate.distributed.tasks import DIFFERENT, AddKeys, CompareFiles
from mainstem.validate.distributed.told import told
from mainstem.validate.livefields import FIELDS, NUMBERS, TEXTS
from mainstem.validate.report import Finding
from mainstem.validate.subject import Subject
from mainstem.validate.typed import typed_columns

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_KEYS = {
    "size_bytes": "size",
    "modification_time": "modificationTime",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
}
_FILE_KEY = Column("file_key", "binary", "binary")
_COLUMNS = (
    Column("path", "string", "string"), Column("dv_id", "string", "string"),
    *(Column(name, "bigint", "int64") for name in NUMBERS), *(Column(name, "string", "string") for name in TEXTS),
    _FILE_KEY,
)  # fmt: skip
_OTHERS = ("protocol", "metaData", "txn", "domainMetadata")
_BY = ("path", "dv_id", "column")
_WORDS = 300


def checkpoints_equal(subject: Subject) -> Iterator[Finding]:
    """Every checkpoint of the log can be read, has the live files of its version as they were, describes the table."""
    for checkpoint in subject.checkpoints():
        name, version = checkpoint.files[0].name, checkpoint.version
        try:
            files, others = _read(subject, checkpoint)
        except MainstemError as error:
            yield Finding("checkpoint_unreadable", "error", error.message, version=version, path=name)
            continue
        except Exception as error:
            if not is_spark_error(error):
                raise
            yield Finding("checkpoint_unreadable", "error", f"{name}: {_words(error)}", version=version, path=name)
            continue

        def finding(row: Any, name: str = name, version: int = version) -> Iterator[Finding]:
            if row["side"] == "catalog":
                yield checkpoint_lacks(name, version, row["path"])
            elif row["side"] == "log":
                yield checkpoint_has_more(name, version, row["path"])
            else:
                yield checkpoint_differs(name, version, row["path"], row["column"], row["catalog"], row["log"])

        yield from told(subject, _unequal(subject, files, version), "checkpoint_differs", finding, by=_BY)
        yield from checkpoint_describes(subject, name, version, others)


def _read(subject: Subject, checkpoint: Checkpoint) -> tuple[DataFrame, list[Action]]:
    spark, root = subject.spark, f"{subject.place.hadoop_path}/{LOG}"
    names = [file.name for file in checkpoint.files]
    others = list(top_actions(subject.log, checkpoint)) if names[0].endswith(".json") else []
    sidecars = [f"{root}/{SIDECARS}/{name}" for name in checkpoint_sidecars(subject.log, checkpoint)]
    parts: list[DataFrame] = []
    if not others:
        # Each by itself: a part has no column of what stands in others, and together they would have the first's.
        parts = [spark.read.parquet(f"{root}/{name}") for name in names]
        others = _other_actions(subject, parts, checkpoint.version)
    if sidecars:
        parts.append(spark.read.parquet(*sidecars))
    # Here, and not where it is used: whether there is a table in it is what makes a checkpoint readable.
    if of_actions(others) is None:
        raise MainstemError(f"{names[0]}: it has no metadata or no protocol.")
    adds = [_adds(part) for part in parts if "add" in part.columns]
    return reduce(lambda left, right: left.unionByName(right), adds), others


def _other_actions(subject: Subject, parts: Sequence[DataFrame], version: int) -> list[Action]:
    """All that is not a file: a few rows, read by our own parser from the JSON that Spark makes of them."""
    from pyspark.sql import functions as F  # noqa: N812

    def of(part: DataFrame, there: Sequence[str]) -> DataFrame:
        rows = part.select(*there).where(F.expr(" OR ".join(f"{name} IS NOT NULL" for name in there)))
        return rows.select(F.to_json(F.struct(*there)).alias("line"))

    known = [(part, [name for name in _OTHERS if name in part.columns]) for part in parts]
    found = [of(part, there) for part, there in known if there]
    lines = [row["line"] for row in subject.collect(frames.union(found))] if found else []
    return _parsed(lines, version, subject)


def _parsed(lines: Sequence[str], version: int, subject: Subject) -> list[Action]:
    """Lines of a state as actions; one by one, because a state may repeat what a commit may not."""
    name, root = commit_name(version), subject.place.uri
    return [action for line in lines for action in parse_commit(line.encode(), file=name, table_root=root)]


def _adds(frame: DataFrame, prefix: str = "add.") -> DataFrame:
    """The live files of a state, by what can be compared. A field that it does not have is null."""
    from pyspark.sql import functions as F  # noqa: N812

    if prefix:
        frame = frame.where("add IS NOT NULL")
        known = frame.select("add.*").schema
    else:
        known = frame.schema

    def said(key: str) -> Expression:
        return F.col(f"{prefix}{key}") if key in known.names else F.lit(None)

    dv_id = F.lit(None).cast("string")
    if "deletionVector" in known.names:
        vector = said("deletionVector")
        offset = F.when(vector["offset"].isNotNull(), F.concat(F.lit("@"), vector["offset"].cast("string")))
        dv_id = F.concat(vector["storageType"], vector["pathOrInlineDv"], F.coalesce(offset, F.lit("")))
    return frame.select(
        said("path").alias("path"), dv_id.alias("dv_id"),
        *(said(key).cast("bigint").alias(name) for name, key in _KEYS.items()),
        _as_json(known, "partitionValues", said).alias("partition_values"),
        # Statistics may stand there as columns alone; then they are what the text would say.
        F.coalesce(said("stats").cast("string"), _as_json(known, "stats_parsed", said)).alias("stats"),
        _as_json(known, "deletionVector", said).alias("deletion_vector"),
    )  # fmt: skip


def _as_json(known: StructType, key: str, said: Callable[[str], Expression]) -> Expression:
    """An object or a map of a state as the JSON that a commit would have; null where the state does not have it."""
    from pyspark.sql import functions as F  # noqa: N812

    if key not in known.names or known[key].dataType.typeName() not in ("struct", "map"):
        return F.lit(None).cast("string")
    return F.to_json(said(key), {"timeZone": "UTC"})


def _unequal(subject: Subject, theirs: DataFrame, version: int) -> DataFrame:
    """What a state and the catalog at that version do not say alike: a row for each file, and each column of a file."""
    from pyspark.sql import functions as F  # noqa: N812

    schema = ", ".join(f"{column.name} {column.spark}" for column in _COLUMNS)
    keyed = theirs.mapInArrow(AddKeys(subject.place.uri), schema)
    ours = frames.spans(subject.spark, subject.store.engine, subject.table_id, version, columns=_COLUMNS)

    def side(frame: DataFrame, name: str) -> DataFrame:
        renamed = {column.name: f"{name}_{column.name}" for column in _COLUMNS if column is not _FILE_KEY}
        return frame.withColumnsRenamed(renamed).withColumn(name, F.lit(True))

    joined = side(ours, "ours").join(side(keyed, "theirs"), "file_key", "full_outer").drop("file_key")
    # Most texts are spelled alike: only the other ones are worth a look by Python.
    same = reduce(and_, (F.col(f"ours_{name}").eqNullSafe(F.col(f"theirs_{name}")) for name in FIELDS))
    there = F.col("ours").isNotNull() & F.col("theirs").isNotNull()
    return joined.where(~(there & same)).mapInArrow(CompareFiles(typed_columns(subject.at(version))), DIFFERENT)


def snapshots_equal_delta(subject: Subject) -> Iterator[Finding]:
    """The table is what Delta's own engine makes of the log: at the head, at the first version, and between them."""
    for version in _sampled(subject):
        try:
            yield from _as_delta(subject, version)
        except Exception as error:
            if not is_spark_error(error):
                raise
            yield Finding("snapshots_equal_delta", "error", f"Delta cannot read it: {_words(error)}", version=version)


def _sampled(subject: Subject) -> list[int]:
    """Versions that both the catalog and the log can answer: the last, the first and the middle; none if none can."""
    try:
        plan = replay_plan(subject.listing)
    except MainstemError:
        return []  # a log with a gap is no table to Delta; that it has one is told by another check
    known = {row["version"] for row in subject.versions}
    first, last = max(subject.floor, plan.first), min(subject.head, subject.published, plan.last)
    wanted = range(first, last + 1) if subject.every_version else {first, (first + last) // 2, last}
    return sorted(version for version in wanted if first <= version <= last and version in known)


def _as_delta(subject: Subject, version: int) -> Iterator[Finding]:
    snapshot = subject.at(version)
    size = snapshot.size().files
    uri = subject.place.hadoop_path
    state = delta_state(subject.spark, uri, version, files=size)
    if state is None:
        yield from _as_input_files(subject, uri, version, size)
        return
    try:
        theirs = of_actions(_parsed(state.lines, version, subject))
        assert theirs is not None, "Delta reads no table that has no metadata"
        for column, left, right in described_differences(of_snapshot(snapshot), theirs):
            yield _differs(version, None, column, left, right)
        unequal = _unequal(subject, _adds(state.files, ""), version)
        yield from told(subject, unequal, "snapshots_equal_delta", lambda row: _of_delta(row, version), by=_BY)
    finally:
        state.release()


def _of_delta(row: Any, version: int) -> Iterator[Finding]:
    if row["side"] is None:
        yield _differs(version, row["path"], row["column"], row["catalog"], row["log"])
        return
    who = "Delta" if row["side"] == "log" else "the catalog"
    yield Finding(
        "snapshots_equal_delta", "error", f"it is live to {who} alone", version=version, path=row["path"],
        catalog=row["side"] == "catalog", log=row["side"] == "log",
    )  # fmt: skip


def _differs(version: int, path: str | None, column: str, ours: Any, theirs: Any) -> Finding:
    return Finding(
        "snapshots_equal_delta", "error", f"Delta has another {column}", version=version, path=path, column=column,
        catalog=ours, log=theirs,
    )  # fmt: skip


def _as_input_files(subject: Subject, uri: str, version: int, size: int) -> Iterator[Finding]:
    """Over Connect Delta tells no more than how many files it would read, and collects them: where that fits."""
    if size > subject.store.engine.settings.driver_files:
        return
    frame = subject.spark.read.format("delta").option("versionAsOf", version).load(uri)
    count = len(frame.inputFiles())
    if count != size:
        yield Finding(
            "snapshots_equal_delta", "error", f"Delta has {count} live files, the catalog {size}", version=version,
            catalog=size, log=count,
        )  # fmt: skip


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:_WORDS]
