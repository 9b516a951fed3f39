"""From a SQL predicate to the condition that a file must meet. It is parsed, never pasted into any statement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mainstem.engines.filesql import Kind
from mainstem.errors import UsageError
from mainstem.pruning import comparison
from mainstem.pruning.comparison import FLIPPED, NEGATED, AnyOperator
from mainstem.pruning.condition import Condition, HasNull, HasValue, all_of, any_of
from mainstem.pruning.kinds import TableColumn, TableColumns
from mainstem.pruning.literals import Constant, constant, spelled_by_escapes, texts_are_sure

_OPERATORS: dict[type[exp.Expr], AnyOperator] = {
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "!=",
}  # fmt: skip
_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a subquery"),
    (exp.AggFunc, "an aggregate"),
    (exp.Window, "a window function"),
    (exp.UDTF, "a table function"),
    (exp.Placeholder, "a parameter"),
    (exp.Parameter, "a parameter"),
    (exp.Alias, "an alias"),
    (exp.Star, "*"),
)
# What has no truth of its own. Everything else that we do not know may be a condition, and decides nothing.
_NO_CONDITION = (
    exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Tuple, exp.Interval, exp.HexString,
    exp.RawString, exp.Concat, exp.DPipe,
)  # fmt: skip
_HINT = "Give a condition on the table's columns, as in Spark's WHERE."


def parse(where: str, columns: TableColumns, *, in_utc: bool = True) -> Condition:
    """What a file must show so that some of its rows may make `where` true.

    A predicate that is broken, or names a column that the table does not have, is a usage error. One that we cannot
    decide is met by every file. Unless the session that runs it is `in_utc`, moments without a zone are taken with a
    margin that is as wide as zones are apart.
    """
    where = spelled_by_escapes(where)
    node = _parsed(where)
    try:
        _check(node, columns)
        return _Reader(columns, trust_texts=texts_are_sure(where), in_utc=in_utc).true(node)
    except RecursionError:
        raise _too_deep(where) from None


def _parsed(where: str) -> exp.Expr:
    try:
        found = sqlglot.parse(where, dialect="spark")
    except SqlglotError as error:
        raise UsageError(f"the predicate {_short(where)} cannot be read: {_said(error)}.", hint=_HINT) from error
    except RecursionError:
        raise _too_deep(where) from None
    if len(found) != 1 or found[0] is None:
        raise UsageError(
            f"the predicate {_short(where)} is {'empty' if not any(found) else 'more than one'}.", hint=_HINT
        )
    node: exp.Expr = found[0]
    if not isinstance(node, exp.Condition | exp.Escape) or isinstance(node, exp.Query):
        raise UsageError(f"the predicate {_short(where)} is a statement or a name, not a condition.", hint=_HINT)
    return node


def _said(error: SqlglotError) -> str:
    details: list[dict[str, Any]] = getattr(error, "errors", [])
    if not details:
        return re.sub(r"\x1b\[\d*m", "", " ".join(str(error).split()))
    first = details[0]
    return f"{str(first.get('description', '')).rstrip('. ')} at line {first.get('line')}, column {first.get('col')}"


def _short(where: str) -> str:
    return repr(where if len(where) <= 200 else where[:200] + "…")


def _too_deep(where: str) -> UsageError:
    return UsageError(
        f"the predicate {_short(where)} is nested too deeply.", hint="Use IN instead of a long chain of OR."
    )


def _check(node: exp.Expr, columns: TableColumns) -> None:
    for part in node.walk():
        for kind, title in _REFUSED:
            if isinstance(part, kind):
                raise UsageError(f"the predicate contains {title}: {_short(part.sql('spark'))}.", hint=_HINT)
        if isinstance(part, exp.Column) and not isinstance(part.parent, exp.Dot):
            columns.find(_names(part))
        if isinstance(part, exp.Dot) and not isinstance(part.parent, exp.Dot) and (names := _dotted(part)):
            columns.find(names)


def _names(column: exp.Column) -> list[str]:
    return [part.name for part in column.parts]


def _dotted(node: exp.Expr) -> list[str] | None:
    """The names of `a.b.c.d.e`, which is a column and fields of it; None if it is anything else."""
    if isinstance(node, exp.Column):
        return _names(node)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier) and (inner := _dotted(node.this)):
        return [*inner, node.expression.name]
    return None


@dataclass(frozen=True, slots=True)
class _Reader:
    """`true` says what a file needs so that some row makes the node TRUE, `false` the same for FALSE.

    NULL is neither: NOT swaps the two, AND and OR swap places under it, and nothing else is needed for SQL's logic.
    """

    columns: TableColumns
    trust_texts: bool
    in_utc: bool

    def true(self, node: exp.Expr) -> Condition:
        return self._read(node, wanted=True)

    def _read(self, node: exp.Expr, *, wanted: bool) -> Condition:
        if node.args.get("negate"):
            wanted = not wanted
        if isinstance(node, exp.Paren):
            return self._read(node.this, wanted=wanted)
        if isinstance(node, exp.Not):
            return self._read(node.this, wanted=not wanted)
        if isinstance(node, exp.And | exp.Or):
            parts = [self._read(part, wanted=wanted) for part in _chain(node)]
            return all_of(parts) if isinstance(node, exp.And) is wanted else any_of(parts)
        for kind, read in _READERS:
            if isinstance(node, kind):
                return read(self, node, wanted)
        return self._condition_of_its_own(node, wanted)

    def _condition_of_its_own(self, node: exp.Expr, wanted: bool) -> Condition:
        value = constant(node)
        if value is not None and (value.value is None or isinstance(value.value, bool)):
            return value.value is wanted
        column = self.column(node)
        if isinstance(node, _NO_CONDITION) or (column is not None and column.kind not in (Kind.BOOLEAN, Kind.OTHER)):
            raise UsageError(f"{_short(node.sql('spark'))} is a value, not a condition.", hint=_HINT)
        return True if column is None else comparison.compare(column, "=", Constant(wanted))

    def column(self, node: exp.Expr) -> TableColumn | None:
        if isinstance(node, exp.Paren):
            return self.column(node.this)
        names = _dotted(node)
        return self.columns.find(names) if names else None

    def constant(self, node: exp.Expr) -> Constant | None:
        found = constant(node, in_utc=self.in_utc)
        if found is None or self.trust_texts or not any(part.is_string for part in node.find_all(exp.Literal)):
            return found
        return None

    def compared(self, node: exp.Binary, wanted: bool) -> Condition:
        operator = _OPERATORS[type(node)]
        column, value = self.column(node.this), self.constant(node.expression)
        if column is None or value is None:
            operator = FLIPPED[operator]
            column, value = self.column(node.expression), self.constant(node.this)
        if column is None or value is None:
            return self._never(node.this, node.expression)
        return comparison.compare(column, operator if wanted else NEGATED[operator], value)

    def _never(self, *sides: exp.Expr) -> Condition:
        """A comparison with a constant NULL is never true and never false; any other is undecided."""
        return not any(found is not None and found.value is None for found in map(self.constant, sides))

    def null_safe(self, node: exp.Binary, wanted: bool) -> Condition:
        same = wanted is isinstance(node, exp.NullSafeEQ)
        column, value = self.column(node.this), self.constant(node.expression)
        if column is None or value is None:
            column, value = self.column(node.expression), self.constant(node.this)
        if column is None or value is None:
            return True
        if value.value is None:
            return HasNull(column) if same else HasValue(column)
        if same:
            return comparison.compare(column, "=", value)
        return any_of([comparison.compare(column, "!=", value), HasNull(column)])

    def is_(self, node: exp.Is, wanted: bool) -> Condition:
        column, value = self.column(node.this), constant(node.expression)
        if column is None or value is None:
            return True
        if value.value is None:
            return HasNull(column) if wanted else HasValue(column)
        if not isinstance(value.value, bool):
            return True
        if wanted:
            return comparison.compare(column, "=", value)
        return any_of([comparison.compare(column, "=", Constant(not value.value)), HasNull(column)])

    def between(self, node: exp.Between, wanted: bool) -> Condition:
        column = self.column(node.this)
        if column is None or node.args.get("symmetric"):
            return True
        bounds = ((node.args["low"], ">="), (node.args["high"], "<="))
        parts = [self._bounded(column, operator, self.constant(bound), wanted) for bound, operator in bounds]
        return all_of(parts) if wanted else any_of(parts)

    def _bounded(self, column: TableColumn, operator: Any, value: Constant | None, wanted: bool) -> Condition:
        if value is None:
            return HasValue(column)
        return comparison.compare(column, operator if wanted else NEGATED[operator], value)

    def in_(self, node: exp.In, wanted: bool) -> Condition:
        column = self.column(node.this)
        values = [self.constant(value) for value in node.expressions]
        if column is None or not values:
            return True
        known = [value for value in values if value is not None]
        if wanted:
            return comparison.one_of(column, known) if len(known) == len(values) else HasValue(column)
        # NOT IN needs every value to differ; one that we do not know takes nothing away from the others.
        if len(known) > comparison.MOST_LISTED and all(value.value is not None for value in known):
            return HasValue(column)
        return all_of([HasValue(column), *(comparison.compare(column, "!=", value) for value in known)])

    def like(self, node: exp.Like, wanted: bool) -> Condition:
        column, pattern = self.column(node.this), self.constant(node.expression)
        if column is None or pattern is None or not isinstance(pattern.value, str):
            return self._never(node.this, node.expression)
        prefix, rest = _prefix(pattern.value)
        if not rest and column.kind is Kind.STRING:
            return comparison.compare(column, "=" if wanted else "!=", pattern)
        if wanted:
            return comparison.starts_with(column, prefix)
        return comparison.starts_otherwise(column, prefix) if rest == "%" else HasValue(column)

    def escaped(self, node: exp.Escape, wanted: bool) -> Condition:
        return True  # LIKE … ESCAPE: the pattern means something else

    def starting(self, node: exp.StartsWith, wanted: bool) -> Condition:
        column, prefix = self.column(node.this), self.constant(node.expression)
        if column is None or prefix is None or not isinstance(prefix.value, str):
            return self._never(node.this, node.expression)
        found = comparison.starts_with if wanted else comparison.starts_otherwise
        return found(column, prefix.value)


_READERS: tuple[tuple[Any, Callable[[_Reader, Any, bool], Condition]], ...] = (
    (exp.NullSafeEQ | exp.NullSafeNEQ, _Reader.null_safe),
    (tuple(_OPERATORS), _Reader.compared),
    (exp.Is, _Reader.is_),
    (exp.Between, _Reader.between),
    (exp.In, _Reader.in_),
    (exp.Escape, _Reader.escaped),
    (exp.Like, _Reader.like),
    (exp.StartsWith, _Reader.starting),
)


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of ANDs, or of ORs. A loop: chains grow long, and each link is one level of the tree."""
    kind, found, waiting = type(node), [], [node]
    while waiting:
        link = waiting.pop()
        if type(link) is kind:
            waiting += [link.expression, link.this]
        else:
            found.append(link)
    return found


def _prefix(pattern: str) -> tuple[str, str]:
    """A LIKE pattern as the text before its first wildcard or escape, and the rest."""
    at = min((at for at in map(pattern.find, "%_\\") if at >= 0), default=len(pattern))
    return pattern[:at], pattern[at:]
