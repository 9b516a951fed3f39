"""The data beside the log: a listing by many, joined with what the catalog has, and statistics looked at by many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mainstem import frames
from mainstem.columns import FILE_COLUMNS, Column
from mainstem.datafiles import list_top
from mainstem.rows import ADDS, CDC, REMOVES
from mainstem.validate.data import file_found, file_missing, orphans, orphans_before
from mainstem.validate.distributed.tasks import (
    FOUND,
    LISTED,
    NAMED,
    PLACED,
    VECTORS,
    CheckStatistics,
    ListFolders,
    NamedFiles,
    PlaceFiles,
    VectorFiles,
)
from mainstem.validate.distributed.told import told
from mainstem.validate.report import Finding
from mainstem.validate.subject import Subject
from mainstem.validate.typed import typed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMED = (
    Column("version", "bigint", "int64"), Column("path", "string", "string"),
    Column("deletion_vector", "string", "string"), Column("path_bucket", "int", "int32"),
)  # fmt: skip
_FOLDERS_PER_TASK = 16
# A path that is not how its file is called: it is absolute, has an escape, or a segment that says nothing.
_SPELLED = r"^[A-Za-z][A-Za-z0-9+.-]*:/|%|(^|/)\.{0,2}(/|$)"


def data_files_present(subject: Subject) -> Iterator[Finding]:
    """Every live file is in the table's folder with the recorded size, and so is its deletion vector.

    Files elsewhere are not looked for.
    """
    from pyspark.sql import functions as F  # noqa: N812

    files = subject.evidence("files", lambda: _found(subject))
    odd = files.where(
        ~F.col("elsewhere") & (F.col("listed_bytes").isNull() | (F.col("listed_bytes") != F.col("size_bytes")))
    )
    yield from told(
        subject, odd, "data_file_missing",
        lambda row: file_found(row["version"], row["path"], row["size_bytes"], row["listed_bytes"]),
        by=("version", "path"),
    )  # fmt: skip
    vectors = _live(subject, "version", "path", "deletion_vector").where("deletion_vector IS NOT NULL")
    wanted = vectors.mapInArrow(VectorFiles(subject.place.uri), VECTORS)
    gone = wanted.join(_listing(subject), F.col("file") == F.col("on_disk"), "left_anti")
    yield from told(
        subject, gone, "data_file_missing",
        lambda row: iter([file_missing(row["version"], row["file"], "deletion_vector")]), by=("version", "file"),
    )  # fmt: skip


def _live(subject: Subject, *names: str) -> DataFrame:
    columns = [column for column in FILE_COLUMNS if column.name in names]
    return frames.spans(
        subject.spark, subject.store.engine, subject.table_id, subject.snapshot.version, columns=columns
    )


def _found(subject: Subject) -> DataFrame:
    """The live files with the size of the file of that name, null where there is none."""
    from pyspark.sql import functions as F  # noqa: N812

    live = _live(subject, "version", "path", "size_bytes", "num_records")
    placed = live.select("version", "path", "size_bytes", "num_records").mapInArrow(
        PlaceFiles(subject.place.uri), PLACED
    )
    listed = _listing(subject).select("on_disk", F.col("size_bytes").alias("listed_bytes"))
    joined = placed.join(listed, "on_disk", "left").withColumn(
        "listed_bytes", F.coalesce("linked_bytes", "listed_bytes")
    )
    return joined.withColumn("elsewhere", F.col("on_disk").isNull()).drop("on_disk", "linked_bytes")


def _listing(subject: Subject) -> DataFrame:
    return subject.evidence("listing", lambda: _listed(subject))


def _listed(subject: Subject) -> DataFrame:
    """Every file in the table's folder: the folder itself by the driver, what is below it by the executors."""

    files, folders = list_top(subject.place)
    here = subject.spark.createDataFrame([tuple(file) for file in files], LISTED)
    named = subject.spark.createDataFrame([(folder,) for folder in sorted(folders)], "folder string")
    tasks = max(1, min(len(folders) // _FOLDERS_PER_TASK, 16 * frames.parallelism(subject.spark)))
    below = named.repartition(tasks).mapInArrow(ListFolders(subject.place.uri), LISTED)
    return here.unionByName(below).withColumnRenamed("path", "on_disk")


def orphans_counted(subject: Subject) -> Iterator[Finding]:
    """How many files no version names that the catalog knows. Young ones do not count: somebody may commit them yet."""
    from pyspark.sql import functions as F  # noqa: N812

    spark, engine = subject.spark, subject.store.engine
    named = [
        frames.actions(spark, engine, subject.table_id, shape.table, columns, first=0, last=subject.head)
        for shape, columns in ((ADDS, _NAMED), (REMOVES, _NAMED), (CDC, _NAMED[:2]))
    ]
    rows = named[0].unionByName(named[1]).unionByName(named[2], allowMissingColumns=True)
    plain = ~F.col("path").rlike(_SPELLED)
    by_name = rows.where(plain).select(F.col("path").alias("on_disk"))
    odd = rows.where(~plain | F.col("deletion_vector").isNotNull())
    known = by_name.unionByName(odd.mapInArrow(NamedFiles(subject.place.uri), NAMED))
    old = _listing(subject).where(F.col("modified_ms") < orphans_before(subject))
    lost = old.join(known, "on_disk", "left_anti")
    [row] = subject.collect(
        lost.agg(F.count("*").alias("files"), F.sum("size_bytes").alias("bytes"), F.min("on_disk").alias("first"))
    )
    yield from orphans(row["files"], row["bytes"] or 0, row["first"] or "")


def statistics_sane(subject: Subject) -> Iterator[Finding]:
    """Minimum ≤ maximum, and no more nulls than rows; that rows are not counted is a warning."""
    rows = _live(subject, "version", "path", "num_records", "stats")
    found = rows.mapInArrow(CheckStatistics(typed_columns(subject.snapshot)), FOUND)
    yield from told(
        subject,
        found,
        "statistics",
        lambda row: iter([Finding(**row.asDict())]),
        by=("severity", "version", "path", "column"),
    )
