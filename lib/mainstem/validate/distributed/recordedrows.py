"""The catalog's actions as DataFrames: with their columns, as JSON for Python, and as entries that can be hashed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import reduce
from typing import TYPE_CHECKING

from mainstem import frames
from mainstem.columns import Column
from mainstem.deltalog.layout import COLUMNS, Kind
from mainstem.deltalog.serialize import NAMES
from mainstem.recorded import there_are
from mainstem.rows import OTHER, SHAPES, Shape
from mainstem.validate.subject import Subject

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_TYPES = {"int": "bigint", "str": "string", "bool": "boolean", "bytes": "binary"}
_VERSION = Column("version", "bigint", "int64")
VERSIONS = "dl_table_versions"
_OF_VERSIONS = tuple(Column(name, "string", "string") for name in ("kind", "commit_info", "txn_id", "content_sha256"))
# An entry that no action has: what our columns derive from it, so that they are hashed with it.
DV_ID, ROWS = "#dv_id", "#num_records"
_FIELDS = "keys array<string>, fields map<string,string>"


def columns_of(shape: Shape) -> Sequence[Column]:
    """The columns of a kind of action with their types, in the order of its value's fields."""
    kinds = (str(field.type).split(" ")[0] for field in fields(shape.kind))
    return [Column(name, _TYPES[kind], "") for name, kind in zip(shape.columns, kinds, strict=True)]


def shapes_of(subject: Subject) -> Sequence[Shape]:
    """Of which kinds the table has any action."""
    with subject.store.reading() as queries:
        return there_are(queries, subject.table_id, first=subject.floor, last=subject.head, shapes=SHAPES)


def rows_of(subject: Subject, shape: Shape, *, ranges: Sequence[tuple[int, int]] = ()) -> DataFrame:
    """The rows of one kind of action with all their columns; of versions within `ranges`, if there are any."""
    return frames.actions(
        subject.spark, subject.store.engine, subject.table_id, shape.table, (_VERSION, *columns_of(shape)),
        first=subject.floor, last=subject.head, condition=_within(ranges),
    )  # fmt: skip


def versions_of(subject: Subject, *, ranges: Sequence[tuple[int, int]] = ()) -> DataFrame:
    """Each version with what was recorded of its commit."""
    return frames.actions(
        subject.spark, subject.store.engine, subject.table_id, VERSIONS, (_VERSION, *_OF_VERSIONS),
        first=subject.floor, last=subject.head, condition=_within(ranges),
    )  # fmt: skip


def _within(ranges: Sequence[tuple[int, int]]) -> str | None:
    # Nothing but integers of ours: see sqltext.jdbc_literal.
    return " OR ".join(f"version BETWEEN {int(first)} AND {int(last)}" for first, last in ranges) or None


def as_json(subject: Subject, *, ranges: Sequence[tuple[int, int]] = ()) -> DataFrame:
    """Every action as (version, seq, kind, values): the name of its table, and its columns as one JSON object."""
    from pyspark.sql import functions as F  # noqa: N812

    def of(frame: DataFrame, kind: str, seq: Expression, columns: Sequence[Column]) -> DataFrame:
        values = (
            F.hex(column.name).alias(column.name) if column.spark == "binary" else F.col(column.name)
            for column in columns
        )
        return frame.select(
            "version", seq.cast("bigint").alias("seq"), F.lit(kind).alias("kind"),
            F.to_json(F.struct(*values)).alias("values"),
        )  # fmt: skip

    parts = [of(versions_of(subject, ranges=ranges), VERSIONS, F.lit(0), _OF_VERSIONS[1:2])]
    for shape in shapes_of(subject):
        parts.append(of(rows_of(subject, shape, ranges=ranges), shape.table, F.col("seq"), columns_of(shape)))
    return reduce(lambda left, right: left.unionByName(right), parts)


def as_entries(subject: Subject) -> DataFrame:
    """Every action as (version, name, entries): its keys with the texts of their values, as the log would have them.

    Objects are spelled as Spark spells them. An empty field is no entry, whether the log has it as null or not at all.
    """
    from pyspark.sql import functions as F  # noqa: N812

    body = _entry("body", spelled(F.col("commit_info")))
    infos = versions_of(subject).where("commit_info IS NOT NULL")
    parts = [infos.select("version", F.lit("commitInfo").alias("name"), F.array(body).alias("entries"))]
    for shape in shapes_of(subject):
        rows = rows_of(subject, shape)
        if shape is OTHER:
            parts.append(
                rows.select("version", "name", F.array(_entry("body", spelled(F.col("body")))).alias("entries"))
            )
            continue
        name = NAMES[shape.kind]
        known = {field.name: column for field, column in zip(fields(shape.kind), shape.columns, strict=True)}
        entries = [_entry(column.key, _text(F.col(known[column.attribute]), column.kind)) for column in COLUMNS[name]]
        if "dv_id" in known:
            entries.append(_entry(DV_ID, F.col("dv_id")))
        if "num_records" in known:
            entries.append(_entry(ROWS, F.col("num_records").cast("string")))
        more = F.map_entries(F.from_json("extra", _FIELDS)["fields"])
        all_of_them = F.concat(
            F.array(*entries), F.coalesce(more, F.array().cast("array<struct<key:string,value:string>>"))
        )
        parts.append(rows.select("version", F.lit(name).alias("name"), all_of_them.alias("entries")))
    return reduce(lambda left, right: left.unionByName(right), parts)


def _entry(key: str, value: Expression) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(F.lit(key).alias("key"), value.cast("string").alias("value"))


def _text(value: Expression, kind: Kind) -> Expression:
    return spelled(value) if kind is Kind.JSON else value


def spelled(text: Expression) -> Expression:
    """A JSON text as Spark writes it when it has read it as part of a larger one: the same for the same value."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.from_json(F.concat(F.lit('{"x":'), text, F.lit("}")), "map<string,string>")["x"]
