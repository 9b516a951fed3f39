"""From `dl_*` rows to Spark DataFrames, over JDBC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import UUID

from mainstem import replay, sqltext
from mainstem.columns import FILE_COLUMN_NAMES, FILE_COLUMNS, SEQ, Column
from mainstem.engines import Engine
from mainstem.identity import BUCKETS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# All that decides which action of a file is its latest. A file is its path and its deletion vector: the key holds both.
ACTION_COLUMNS = (Column("file_key", "binary", "binary"), Column("version", "bigint", "int64"), SEQ)
_BUCKET = Column("path_bucket", "int", "int32")
# Every slice is a statement of its own over the same rows: more of them than a database serves at once cost only.
_MOST_SLICES = 16


def read_query(
    spark: SparkSession, engine: Engine, query: str, *, slices: Sequence[str] = (), columns: Sequence[Column] = ()
) -> DataFrame:
    """The rows of a query that runs in the catalog's database, read by Spark's executors.

    With `slices`, each predicate becomes one task, which reads over a connection of its own. `columns` gives types
    where a driver's own guess differs between databases. The text may hold nothing but our own SQL and what
    `sqltext.jdbc_literal` let through.
    """
    jdbc = engine.jdbc()
    engine.close()  # an idle connection of ours must not keep the JVM out
    table = f"({query}) AS rows_of_query"
    properties = {**jdbc.options(), "fetchsize": str(engine.settings.fetch_size)}
    if columns:
        properties["customSchema"] = ", ".join(f"{column.name} {column.spark}" for column in columns)
    url = properties.pop("url")
    if slices:
        return spark.read.jdbc(url, table, predicates=list(slices), properties=properties)
    return spark.read.jdbc(url, table, properties=properties)


def slices(spark: SparkSession, engine: Engine) -> list[str]:
    """Ranges of `path_bucket` that together are all of it, one for each task; all rows of a path are in one."""
    count = engine.settings.jdbc_slices or min(parallelism(spark), _MOST_SLICES)
    return list(_ranges(min(count, BUCKETS)))


def _ranges(count: int) -> Iterator[str]:
    edges = [BUCKETS * n // count for n in range(count + 1)]
    for low, high in pairwise(edges):
        yield f"path_bucket BETWEEN {sqltext.jdbc_literal(low)} AND {sqltext.jdbc_literal(high - 1)}"


def parallelism(spark: SparkSession) -> int:
    """How many tasks the session is set up to run at a time."""
    # Asked of the configuration, because the context that knows better is out of reach over Spark Connect.
    for key in ("spark.default.parallelism", "spark.sql.shuffle.partitions"):
        found = spark.conf.get(key, None)
        if found is not None and found.isdigit() and int(found):
            return int(found)
    return _MOST_SLICES


def spans(
    spark: SparkSession,
    engine: Engine,
    table_id: str,
    version: int,
    *,
    condition: str | None = None,
    columns: Sequence[Column] = FILE_COLUMNS,
    content_sha256: str | None = None,
) -> DataFrame:
    """The files live at a version by their spans, FILE_COLUMNS exactly; with `condition`, those that satisfy it.

    This and every other frame of a version raises when it is read after the version has expired, or was replaced by one
    of other content than `content_sha256`: each slice asks in the statement that reads its rows.
    """
    text = _text(engine, "jdbc_spans", columns, table_id, version, condition, sha256=content_sha256)
    return _read(spark, engine, text, columns, slices(spark, engine))


def adds(
    spark: SparkSession,
    engine: Engine,
    table_id: str,
    version: int,
    *,
    columns: Sequence[Column] = ACTION_COLUMNS,
    condition: str | None = None,
    content_sha256: str | None = None,
    within: Sequence[str] | None = None,
) -> DataFrame:
    """Every add up to a version, live or not; of `within`, if given, instead of all slices."""
    text = _text(engine, "jdbc_adds", columns, table_id, version, condition, sha256=content_sha256)
    return _read(spark, engine, text, columns, slices(spark, engine) if within is None else within)


def removes(
    spark: SparkSession,
    engine: Engine,
    table_id: str,
    version: int,
    *,
    columns: Sequence[Column] = ACTION_COLUMNS,
    content_sha256: str | None = None,
    within: Sequence[str] | None = None,
) -> DataFrame:
    """Every remove up to a version; of `within`, if given, instead of all slices."""
    text = _text(
        engine, "jdbc_removes", columns, table_id, version, None, target="dl_remove_files", sha256=content_sha256
    )
    return _read(spark, engine, text, columns, slices(spark, engine) if within is None else within)


def union(parts: Iterable[DataFrame]) -> DataFrame:
    """The rows of all these frames, which have the same columns."""
    return reduce(lambda left, right: left.unionAll(right), parts)


def tombstones(
    spark: SparkSession, engine: Engine, table_id: str, version: int, *, since_ms: int, columns: Sequence[Column]
) -> DataFrame:
    """The files that a version no longer has and that were removed after a moment, each once."""
    text = _text(engine, "jdbc_tombstones", columns, table_id, version, None, target="dl_remove_files", since=since_ms)
    return _read(spark, engine, text, columns, slices(spark, engine))


def actions(
    spark: SparkSession,
    engine: Engine,
    table_id: str,
    table: str,
    columns: Sequence[Column],
    *,
    first: int,
    last: int,
    condition: str | None = None,
) -> DataFrame:
    """The rows of one of the tables of actions, or of versions, whose versions are within these bounds."""
    text = _text(engine, "jdbc_actions", columns, table_id, last, condition, target=table, first=first, last=last)
    sliced = any(column.name == _BUCKET.name for column in columns)
    return _read(spark, engine, text, columns, slices(spark, engine) if sliced else ())


def replayed(
    spark: SparkSession,
    engine: Engine,
    table_id: str,
    version: int,
    *,
    condition: str | None = None,
    content_sha256: str | None = None,
) -> DataFrame:
    """The files live at a version by the log's rows alone, FILE_COLUMNS exactly; spans are not asked.

    With `condition`, those that satisfy it: it narrows the rows that are fetched, never the actions that decide.
    """

    def places(within: str) -> DataFrame:
        # A slice holds all actions of its files: ranked by the task that reads it, they are never shuffled.
        added = adds(spark, engine, table_id, version, content_sha256=content_sha256, within=[within])
        removed = removes(spark, engine, table_id, version, content_sha256=content_sha256, within=[within])
        return replay.live_places(replay.actions(added, removed).coalesce(1))

    live = union(map(places, slices(spark, engine)))
    rows = adds(
        spark,
        engine,
        table_id,
        version,
        columns=(*FILE_COLUMNS, SEQ),
        condition=condition,
        content_sha256=content_sha256,
    )
    return replay.files_at(live, rows).select(*FILE_COLUMN_NAMES)


def _text(
    engine: Engine,
    name: str,
    columns: Sequence[Column],
    table_id: str,
    version: int,
    condition: str | None,
    *,
    target: str = "dl_add_files",
    sha256: str | None = None,
    **others: int,
) -> str:
    values: dict[str, int | UUID] = {"table_id": UUID(table_id), "version": version, **others}
    same = "1 = 1" if sha256 is None else f"v.content_sha256 = {sqltext.jdbc_text(sha256, engine.file_sql.text_of_hex)}"
    named = ", ".join(column.name for column in columns)
    pieces = {**engine.fragments, "columns": named, "condition": condition or "1 = 1", "target": target}

    def rendered(query: str, more: dict[str, str]) -> str:
        # Bound before the pieces are put in: whatever stands in their literals is no placeholder of ours.
        bound = sqltext.bind(sqltext.queries()[query], lambda value: sqltext.jdbc_literal(values[value])).text
        return sqltext.render(bound, {**pieces, **more})

    return rendered(name, {"refusal": rendered("jdbc_refusal", {"same_content": same})})


def _read(
    spark: SparkSession, engine: Engine, text: str, columns: Sequence[Column], within: Sequence[str]
) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812  as every user of Spark calls it

    typed = {column.name: column for column in (_BUCKET, *columns)}
    frame = read_query(spark, engine, text, slices=within, columns=list(typed.values()))
    # A cast to its own type costs nothing, and leaves behind what a JDBC driver tells of a column beside its type.
    return frame.select(*(F.col(column.name).cast(column.spark).alias(column.name) for column in columns))
