"""Which of many files in memory may match: decided by columns of bounds, which are read out of the statistics once.

The columns only sort out what surely does not match; what they leave is looked at file by file, as `may_match` does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from typing import Any as Anything

import orjson

from mainstem.engines.filesql import Kind
from mainstem.naming import storable
from mainstem.pruning.condition import All, Any, Compare, Condition, Leaf
from mainstem.pruning.evaluate import MAYBE_CUT, bound_value, may_match, partition_holds

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS = {Kind.INTEGER: "int64", Kind.FLOAT: "float64", Kind.DOUBLE: "float64"}
_READ = {*_NUMBERS, Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ}
_COMPARE = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


class Bound(NamedTuple):
    """The least or the greatest value of a column, as the files' statistics say it."""

    section: str
    path: tuple[str, ...]
    kind: Kind


Columns = Mapping[Bound, Anything]


def bounds_of(condition: Condition) -> Iterator[Bound]:
    """The bounds by which columns can decide something about the condition."""
    if isinstance(condition, All | Any):
        for part in condition.parts:
            yield from bounds_of(part)
    elif isinstance(condition, Compare) and not condition.column.partition and condition.column.kind in _READ:
        yield _bound(condition)


def _bound(leaf: Compare) -> Bound:
    section = "minValues" if leaf.operator in ("<", "<=") else "maxValues"
    return Bound(section, leaf.column.path, leaf.column.kind)


def read_bounds(stats: pa.ChunkedArray, wanted: Sequence[Bound]) -> dict[Bound, pa.Array]:
    """The bounds of each file; null where its statistics do not surely say one."""
    import pyarrow as pa

    found: dict[Bound, list[Anything]] = {bound: [] for bound in wanted}
    for text in stats.to_pylist():
        said = _parsed(text)
        for bound, values in found.items():
            values.append(_value(said, bound))
    return {bound: pa.array(values, _NUMBERS.get(bound.kind, "string")) for bound, values in found.items()}


def _parsed(text: str | None) -> Mapping[str, Anything]:
    try:
        said = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(said, dict):
        return {}
    records = said.get("numRecords")
    return said if type(records) is int and 0 <= records < 2**63 else {}


def _value(said: Mapping[str, Anything], bound: Bound) -> Anything:
    found: Anything = said.get(bound.section)
    for name in bound.path:
        found = found.get(name) if isinstance(found, dict) else None
    if bound.kind in (Kind.FLOAT, Kind.DOUBLE):
        return float(found) if type(found) in (int, float) and abs(found) < float("inf") else None
    value = bound_value(bound.kind, found, low=bound.section == "minValues")
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    return value


def candidates(condition: Condition, rows: pa.Table, columns: Columns) -> pa.Table:
    """The rows without those that surely do not match. `columns` are beside the rows."""
    if isinstance(condition, bool):
        return rows if condition else rows.slice(0, 0)
    mask = _kept(condition, rows, columns)
    return rows if mask is None else rows.filter(mask)


def matching(condition: Condition, rows: pa.Table) -> pa.Table:
    """Those rows that `may_match` keeps, one by one."""
    import pyarrow as pa

    texts = zip(rows.column("partition_values").to_pylist(), rows.column("stats").to_pylist(), strict=True)
    return rows.filter(pa.array([may_match(condition, _values(values), stats) for values, stats in texts], pa.bool_()))


def _values(partition_values: str | None) -> Mapping[str, str | None]:
    found: Mapping[str, str | None]
    try:
        found = orjson.loads(partition_values or "{}")
    except orjson.JSONDecodeError:
        found = json.loads(partition_values or "{}")  # which takes half of a surrogate pair for a character
    return found


def _kept(condition: Condition, rows: pa.Table, columns: Columns) -> Anything:
    """Which rows a condition keeps; None if it is all of them, as far as columns can tell."""
    import pyarrow.compute as pc

    if isinstance(condition, bool):
        return None  # `all_of` and `any_of` leave no constant inside of a tree
    if not isinstance(condition, All | Any):
        return _leaf(condition, rows, columns)
    masks = [_kept(part, rows, columns) for part in condition.parts]
    joined: Callable[[Anything, Anything], Anything] = pc.and_ if isinstance(condition, All) else pc.or_
    if isinstance(condition, All):
        masks = [mask for mask in masks if mask is not None]
    if not masks or any(mask is None for mask in masks):
        return None
    found = masks[0]
    for mask in masks[1:]:
        found = joined(found, mask)
    return found


def _leaf(leaf: Leaf, rows: pa.Table, columns: Columns) -> Anything:
    import pyarrow as pa
    import pyarrow.compute as pc

    if leaf.column.partition:
        # A table has few partitions beside its files: each is looked at once.
        coded = rows.column("partition_values").combine_chunks().dictionary_encode()
        name = leaf.column.path[0]
        holds = [partition_holds(leaf, _values(text).get(name)) for text in coded.dictionary.to_pylist()]
        return pa.array(holds, pa.bool_()).take(coded.indices)
    if not isinstance(leaf, Compare) or (bound := _bound(leaf)) not in columns:
        return None
    known = columns[bound]
    value = float(leaf.value) if bound.kind in (Kind.FLOAT, Kind.DOUBLE) else leaf.value
    if isinstance(value, str) and not storable(value):
        return None
    holds = pc.call_function(_COMPARE[leaf.operator], [known, pa.scalar(value, known.type)])
    if bound.kind is Kind.STRING and bound.section == "maxValues":
        # What may have been cut off a maximum may make it as great as any text that begins as it does.
        holds = pc.or_(holds, pc.starts_with(known, pattern=str(value)[:MAYBE_CUT]))
    return pc.fill_null(holds, True)
