"""A condition as SQL over the columns of `dl_add_files`. Values are bound, or inlined as text of our own making."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainstem import sqltext
from mainstem.engines.filesql import TEXTS, Bind, FileSql, Kind
from mainstem.pruning.comparison import days_from
from mainstem.pruning.condition import All, Any, Compare, Condition, HasNull, HasValue, OneOf, Operator, Value
from mainstem.pruning.evaluate import HIVE_NULL, MAYBE_CUT
from mainstem.pruning.kinds import TableColumn

if TYPE_CHECKING:
    from mainstem.engines import Engine

_TRUE, _FALSE = "(1 = 1)", "(1 = 0)"
_WITHOUT_END = (float("inf"), float("-inf"))  # loosened beyond what a double can be: every value is on this side
_DIGITS_OF_A_DOUBLE = 15  # decimals of so many digits stay apart when they are read as doubles


class Bound:
    """Values by name: `names` are in the text, `values` go to the database beside it."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self._names: dict[int | str, str] = {}

    def __call__(self, value: int | str) -> str:
        if value not in self._names:
            self._names[value] = f"prune_{len(self._names)}"
            self.values[self._names[value]] = value
        return f":{self._names[value]}"


def inliner(engine: Engine) -> Bind:
    """Values as SQL text: integers as they are, texts by the hexadecimal digits of their bytes."""

    def inline(value: int | str) -> str:
        if isinstance(value, int):
            return sqltext.jdbc_literal(value)
        return sqltext.jdbc_text(value, engine.file_sql.text_of_hex)

    return inline


def condition_sql(condition: Condition, files: FileSql, bind: Bind) -> str:
    """SQL that is true for every file that `may_match` keeps; where the database can tell as much, for no other."""
    return _Writer(files, bind).write(condition)


class _Writer:
    def __init__(self, files: FileSql, bind: Bind) -> None:
        self.files = files
        self.bind = bind

    def write(self, condition: Condition) -> str:
        if isinstance(condition, bool):
            return _TRUE if condition else _FALSE
        if isinstance(condition, All | Any):
            word = " AND " if isinstance(condition, All) else " OR "
            return f"({word.join(map(self.write, condition.parts))})"
        if condition.column.partition:
            return self._partition(condition)
        if isinstance(condition, HasNull):
            return self._counted(condition.column, "0")
        if isinstance(condition, Compare):
            return self._compare(condition)
        return self._has_value(condition.column)

    def _has_value(self, column: TableColumn) -> str:
        return self._counted(column, "num_records", f"({self.files.records(self.bind)}) = num_records", ["numRecords"])

    def _counted(self, column: TableColumn, number: str, surely: str = "", names: Sequence[str] = ()) -> str:
        """Unless NULL is surely counted that often."""
        count = self.files.null_count(column.path, self.bind)
        if count is None:
            return _TRUE
        doubts = [self.files.ambiguous(path, self.bind) for path in (["nullCount", *column.path], names) if path]
        facts = [f"({count}) = {number}", surely, *(f"NOT {doubt}" for doubt in doubts if doubt)]
        return f"({' AND '.join(filter(None, facts))}) IS NOT TRUE"

    def _compare(self, leaf: Compare) -> str:
        column, low = leaf.column, leaf.operator in ("<", "<=")
        section = "minValues" if low else "maxValues"
        bound = self.files.bound(section, column.path, column.kind, self.bind)
        if bound is None:
            return self._has_value(column)
        related = self._related(leaf, section, bound)
        doubt = self.files.ambiguous([section, *column.path], self.bind)
        parts = [f"({related} OR {doubt})" if doubt else related, self._has_value(column)]
        return f"coalesce({', '.join(parts)})"

    def _related(self, leaf: Compare, section: str, bound: str) -> str:
        kind = leaf.column.kind
        if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            return self._related_moment(leaf, section, bound)
        operator, value = self._within_errors(leaf)
        if value in _WITHOUT_END:
            return _TRUE
        related = f"({bound}) {operator} {self._constant(kind, value)}"
        if kind is not Kind.STRING or section == "minValues":
            return related
        cut = f"(length({bound}) >= {MAYBE_CUT} AND {self.files.begins(self.bind(str(value)), bound)})"
        return f"({related} OR {cut})"

    def _related_moment(self, leaf: Compare, section: str, bound: str) -> str:
        # The rest of a minimum's millisecond is taken as its beginning, and that of a maximum's as its end.
        low, text = section == "minValues", str(leaf.value)
        related = f"(({bound}) || '{'000' if low else '999'}') {leaf.operator} {self.bind(text)}"
        day = self.files.local_day(section, leaf.column.path, self.bind)
        # In another zone than UTC, a text is less than a day off.
        near = f"({day}) {'<=' if low else '>='} {self.bind(days_from(text, 1 if low else -1))}"
        return f"coalesce({related}, {near})"

    def _within_errors(self, leaf: Compare) -> tuple[Operator, Value]:
        """The comparison, loosened by what the database may misread."""
        loose: Operator = "<=" if leaf.operator in ("<", "<=") else ">="
        if leaf.column.kind is Kind.DECIMAL and not self.files.exact_decimals:
            exact = leaf.column.precision <= _DIGITS_OF_A_DOUBLE
            return (leaf.operator if exact else loose), leaf.value
        if leaf.column.kind in (Kind.FLOAT, Kind.DOUBLE) and self.files.double_error:
            value = float(leaf.value)
            error = abs(value) * self.files.double_error
            return loose, value + error if loose == "<=" else value - error
        return leaf.operator, leaf.value

    def _constant(self, kind: Kind, value: Value) -> str:
        if isinstance(value, int):
            return self.bind(value)
        if kind in TEXTS:
            return self.bind(str(value))
        return self.files.number(self.bind(format(value, "f") if not isinstance(value, float) else repr(value)))

    def _partition(self, leaf: Compare | OneOf | HasNull | HasValue) -> str:
        text = self.files.partition(leaf.column.path[0], self.bind)
        if text is None:
            return _TRUE
        return f"CASE WHEN {self.files.readable_partition} THEN {self._partition_text(leaf, text)} ELSE {_TRUE} END"

    def _partition_text(self, leaf: Compare | OneOf | HasNull | HasValue, text: str) -> str:
        kind = leaf.column.kind
        textual = kind in (Kind.STRING, Kind.OTHER)
        there = f"{text} IS NOT NULL" if textual else f"({text} IS NOT NULL AND {text} <> '')"
        if isinstance(leaf, HasValue):
            return there
        typed = self.files.typed(text, kind)
        if isinstance(leaf, HasNull):
            return f"({text} IS NULL OR {text} IN ('', '{HIVE_NULL}'))" if textual else f"({typed}) IS NULL"
        if isinstance(leaf, OneOf):
            listed = ", ".join(self._constant(kind, value) for value in leaf.values)
            related = f"({typed}) IN ({listed})"
        else:
            operator, value = self._within_errors(leaf)
            related = _TRUE if value in _WITHOUT_END else f"({typed}) {operator} {self._constant(kind, value)}"
        if textual:
            return f"coalesce({related} OR {text} = '{HIVE_NULL}', {_FALSE})"
        return f"coalesce({related}, {there})"
