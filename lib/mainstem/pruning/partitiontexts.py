"""Which partitions may match, decided on their values alone, so that a database looks at the files of no other one."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from mainstem.engines.filesql import PREFIX
from mainstem.pruning.condition import All, Any, Condition
from mainstem.pruning.evaluate import may_match

# So many are named in a statement; where more may match, it looks at all files.
_MOST_NAMED = 200


def narrowed(condition: Condition, texts: Sequence[str]) -> Sequence[str] | None:
    """Those of a table's partition values by which a file may meet the condition; None if they leave out too little.

    Each is a JSON text, or the beginning of one that is longer: nothing is decided on a mere beginning. A file without
    any partition value is in no list, so there is none where such a file may match.
    """
    if may_match(condition, {}, None):
        return None
    kept = [text for text in texts if _may_match(condition, text)]
    return kept if len(kept) <= _MOST_NAMED and 2 * len(kept) <= len(texts) else None


def names_partition(condition: Condition) -> bool:
    """Whether a partition column has a say in it."""
    if isinstance(condition, bool):
        return False
    if isinstance(condition, All | Any):
        return any(map(names_partition, condition.parts))
    return condition.column.partition


def _may_match(condition: Condition, text: str) -> bool:
    try:
        values = orjson.loads(text) if len(text) < PREFIX else None
    except orjson.JSONDecodeError:
        return True
    return not isinstance(values, dict) or may_match(condition, values, None)
