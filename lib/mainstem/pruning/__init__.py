"""Which files may hold rows that meet a predicate: from statistics and partition values alone, never losing one."""

from mainstem.pruning.condition import Condition
from mainstem.pruning.evaluate import may_match
from mainstem.pruning.kinds import TableColumn, TableColumns, table_columns
from mainstem.pruning.predicate import parse
from mainstem.pruning.snapshots import bound_condition, inlined_condition

__all__ = [
    "Condition",
    "TableColumn",
    "TableColumns",
    "bound_condition",
    "inlined_condition",
    "may_match",
    "parse",
    "table_columns",
]
