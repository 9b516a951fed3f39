"""Whether a commit may follow those that came before it. Values in, values out: no database, no file, no clock."""

from mainstem.conflicts.error import conflict_error
from mainstem.conflicts.predicates import columns_of, read_predicate
from mainstem.conflicts.rules import find_conflicts
from mainstem.conflicts.values import (
    Conflict,
    Isolation,
    MayMatch,
    Proposed,
    Reads,
    Rule,
    Winner,
    is_blind_append,
    said_blind_append,
)

__all__ = [
    "Conflict",
    "Isolation",
    "MayMatch",
    "Proposed",
    "Reads",
    "Rule",
    "Winner",
    "columns_of",
    "conflict_error",
    "find_conflicts",
    "is_blind_append",
    "read_predicate",
    "said_blind_append",
]
