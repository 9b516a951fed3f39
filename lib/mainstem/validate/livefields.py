"""What a state says of a live file beside what the catalog says: both as texts of the log, compared by what they mean.

A state repeats what commits said, in a spelling of its own: maps come in another order, statistics may be left out, or
were columns in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mainstem.deltalog.fields import SURROGATE
from mainstem.deltalog.jsontext import decoded
from mainstem.validate.typed import Names, TypedColumns, is_number, is_other_bound, is_other_partition, leaves

NUMBERS = ("size_bytes", "modification_time", "base_row_id", "default_row_commit_version")
TEXTS = ("partition_values", "stats", "deletion_vector")
FIELDS = (*NUMBERS, *TEXTS)
_OF_A_VECTOR = ("sizeInBytes", "cardinality")  # what else it says is in its id, by which the two were found

Difference = tuple[str, Any, Any]


def differing(ours: Mapping[str, Any], theirs: Mapping[str, Any], columns: TypedColumns) -> Iterator[Difference]:
    """Each field in which the two sides differ, with what they say there. A side has FIELDS by their names."""
    for name in NUMBERS:
        if ours[name] != theirs[name]:
            yield name, ours[name], theirs[name]
    for name, of_texts in zip(TEXTS, (_partition_values, _statistics, _vectors), strict=True):
        if ours[name] != theirs[name]:
            yield from of_texts(ours[name], theirs[name], columns)


def _partition_values(ours: str | None, theirs: str | None, columns: TypedColumns) -> Iterator[Difference]:
    left, right = _object(ours or "{}"), _object(theirs or "{}")
    if left is None or right is None:
        yield "partition_values", ours, theirs
        return
    for name in sorted(left.keys() | right.keys()):
        mine, other = left.get(name), right.get(name)
        if _is_text(mine) and _is_text(other) and is_other_partition(columns.find((name,)), mine, other):
            yield f"partition_values.{columns.name((name,))}", mine, other


def _is_text(value: Any) -> bool:
    # Half of a surrogate pair is no text: who writes it into a checkpoint makes something else of it.
    return value is None or (isinstance(value, str) and not SURROGATE.search(value))


def _statistics(ours: str | None, theirs: str | None, columns: TypedColumns) -> Iterator[Difference]:
    """Only what both sides say: a state may leave statistics out, all of them or some."""
    left, right = columns.read(ours), columns.read(theirs)
    if left is None or right is None:
        return
    counted, counted_there = left.get("numRecords"), right.get("numRecords")
    if is_number(counted) and is_number(counted_there) and counted != counted_there:
        yield "stats.numRecords", counted, counted_there
    tight, tight_there = left.get("tightBounds"), right.get("tightBounds")
    if isinstance(tight, bool) and isinstance(tight_there, bool) and tight != tight_there:
        yield "stats.tightBounds", tight, tight_there
    for section in ("nullCount", "minValues", "maxValues"):
        there = dict(leaves(right.get(section)))
        for names, value in leaves(left.get(section)):
            if names in there and _says_otherwise(section, names, value, there[names], columns):
                yield f"stats.{section}.{columns.name(names)}", value, there[names]


def _says_otherwise(section: str, names: Names, ours: Any, theirs: Any, columns: TypedColumns) -> bool:
    if section == "nullCount":
        return is_number(ours) and is_number(theirs) and bool(ours != theirs)
    column = columns.find(names)
    return column is not None and is_other_bound(column, ours, theirs)


def _vectors(ours: str | None, theirs: str | None, columns: TypedColumns) -> Iterator[Difference]:
    left, right = _object(ours or ""), _object(theirs or "")
    if left is None or right is None:
        return
    for name in _OF_A_VECTOR:
        mine, other = left.get(name), right.get(name)
        if is_number(mine) and is_number(other) and mine != other:
            yield f"deletion_vector.{name}", mine, other


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        found = decoded(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
