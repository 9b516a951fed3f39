"""Which files of the target a MERGE can touch: what its condition says of the target, and of the source's keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import expressions as exp

from mainstem.engines.filesql import Kind
from mainstem.errors import UsageError
from mainstem.operations.collected import literals_of
from mainstem.operations.sqltexts import literal, quoted
from mainstem.pruning import TableColumns, table_columns
from mainstem.pruning.literals import spelled_by_escapes, texts_are_sure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_PAIRS = 4


@dataclass(frozen=True, slots=True)
class Bounds:
    """`target` are conditions on the target alone; `pairs` are columns of the target that equal one of the source."""

    target: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]


def bounds_of(on: str, *, target: str, source: str) -> Bounds:
    """What every matching row must meet. A condition that cannot be taken apart bounds nothing."""
    spelled = spelled_by_escapes(on)
    try:
        parsed = sqlglot.parse_one(spelled, dialect="spark")
    except sqlglot.errors.ParseError as error:
        raise UsageError(
            f"the condition of the merge cannot be read: {on[:200]!r}.", hint="See Spark's MERGE."
        ) from error
    trusted = texts_are_sure(spelled)
    texts, pairs = [], []
    for part in _conjuncts(parsed):
        owners = {_owner(column) for column in part.find_all(exp.Column)}
        if owners == {target} and not any(part.find_all(exp.Subquery, exp.Select)):
            if trusted or not any(found.is_string for found in part.find_all(exp.Literal)):
                texts.append(_without_alias(part))
        elif isinstance(part, exp.EQ) and owners == {target, source}:
            pair = _pair(part, target)
            pairs += [pair] if pair else []
    return Bounds(tuple(texts), tuple(pairs[:_MOST_PAIRS]))


def source_bounds(source: DataFrame, bounds: Bounds, columns: TableColumns) -> tuple[str, ...]:
    """Conditions on the target that follow from the smallest and largest keys of the source; one job of Spark's.

    `columns` are the target's. Columns of different kinds bound nothing: as texts 9 is above 10.
    """
    from pyspark.sql import functions as F  # noqa: N812

    theirs = table_columns(source.schema.json(), (), {})
    pairs = [pair for pair in bounds.pairs if _same_order(pair, columns, theirs, source)]
    if not pairs:
        return ()
    calls = [call(F.col(quoted(their))) for _, their in pairs for call in (F.min, F.max)]
    [row] = literals_of(source.agg(*(each.alias(str(place)) for place, each in enumerate(calls))))
    found = []
    for place, (mine, _) in enumerate(pairs):
        low, high = row[2 * place], row[2 * place + 1]
        if low == literal(None):
            return ("FALSE",)  # no row of the source has this key: none can match
        if low is not None and high is not None:
            found.append(f"{quoted(mine)} >= {low} AND {quoted(mine)} <= {high}")
    return tuple(found)


def _same_order(pair: tuple[str, str], mine: TableColumns, theirs: TableColumns, source: DataFrame) -> bool:
    """Whether Spark compares both columns of a pair as it compares the source's alone."""
    if pair[1].lower() not in map(str.lower, source.columns):
        return False
    kinds = {columns.find([name]).kind for columns, name in zip((mine, theirs), pair, strict=True)}
    return len(kinds) == 1 and Kind.OTHER not in kinds


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.left), *_conjuncts(node.right)]
    return [node]


def _owner(column: exp.Column) -> str:
    """The alias that a column begins with, as `s` in `s.t.x`; nothing for one that stands alone."""
    first, *others = column.parts
    return first.name.lower() if others else ""


def _without_alias(node: exp.Expr) -> str:
    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        names = reversed(column.parts[1:])
        column.set("catalog", None)
        for place, name in zip(("this", "table", "db"), [*names, None, None], strict=False):
            column.set(place, name)
    return copy.sql(dialect="spark")


def _pair(equality: exp.EQ, target: str) -> tuple[str, str] | None:
    """The columns' names, if both sides are nothing but a column; the bounds of a struct's field are not asked for."""
    left, right = equality.left, equality.right
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    if not len(left.parts) == len(right.parts) == 2:
        return None
    mine, theirs = (left, right) if _owner(left) == target else (right, left)
    return mine.name, theirs.name
