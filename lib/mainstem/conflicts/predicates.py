"""From SQL to the question that conflict rules ask: may this file hold rows that were read?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import orjson

from mainstem.conflicts.values import MayMatch, json_object, properties_of
from mainstem.model import Metadata
from mainstem.pruning import Condition, TableColumns, may_match, parse, table_columns
from mainstem.pruning.condition import All, Any, Leaf, all_of

_PARTITIONS = 4096  # so many answers are remembered: most files share their partition with others
_NO_COLUMNS = '{"type":"struct","fields":[]}'


def read_predicate(where: str, metadata: Metadata, *, in_utc: bool = True) -> MayMatch:
    """Whether a file lies in a partition that `where` reads, as the table was at `metadata`.

    Decides by partition values alone, as Delta does: a predicate on data narrows nothing, nor does one that mixes both
    by OR, and in a table without partitions every file may match. What cannot be decided may match. A predicate that is
    broken, or names a column that the table does not have, is a `UsageError`. `in_utc` says whether the session that
    has read is in that zone.
    """
    columns = columns_of(metadata)
    condition = _on_partitions(parse(where, columns, in_utc=in_utc))
    names = {columns.find([name]).path[0] for name in _partitions(metadata)}

    @lru_cache(maxsize=_PARTITIONS)
    def in_what_was_read(partition_values: str | None) -> bool:
        values = json_object(partition_values)
        return not names <= values.keys() or may_match(condition, values, None)

    return (lambda file: in_what_was_read(file.partition_values)) if names else (lambda file: True)


def columns_of(metadata: Metadata) -> TableColumns:
    """The columns that a metaData describes, as files know them."""
    return table_columns(metadata.schema_json or _NO_COLUMNS, _partitions(metadata), properties_of(metadata))


def _partitions(metadata: Metadata) -> list[str]:
    found: list[str] = orjson.loads(metadata.partition_columns or "[]")
    return found


def _on_partitions(condition: Condition) -> Condition:
    """What is left of a condition when only those of its conjuncts count that look at nothing but partition columns."""
    parts = condition.parts if isinstance(condition, All) else (condition,)
    return all_of(part for part in parts if all(leaf.column.partition for leaf in _leaves(part)))


def _leaves(condition: Condition) -> Iterable[Leaf]:
    if isinstance(condition, bool):
        return
    if isinstance(condition, All | Any):
        for part in condition.parts:
            yield from _leaves(part)
    else:
        yield condition
