"""What a file must show to be kept: an and-or tree without NOT, whose leaves look at one column of one file.

A leaf asks whether some row of the file may make it true; a row in which the column is NULL makes no comparison true.
So a tree is already the answer to three-valued logic, and evaluating it needs two values only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from mainstem.pruning.kinds import TableColumn

Operator = Literal["<", "<=", ">", ">="]
# How a leaf holds a value: dates as YYYY-MM-DD, moments as YYYY-MM-DDTHH:MM:SS.ffffff in UTC, booleans as true or
# false. These texts sort as what they mean does, so that every database compares them alike.
Value = int | Decimal | float | str


@dataclass(frozen=True, slots=True)
class Compare:
    """Some value of the column may stand in this relation to `value`."""

    column: TableColumn
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class OneOf:
    """Some value of a partition column may be one of these."""

    column: TableColumn
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class HasNull:
    """Some row may have NULL here."""

    column: TableColumn


@dataclass(frozen=True, slots=True)
class HasValue:
    """Some row may have a value here."""

    column: TableColumn


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    parts: tuple[Condition, ...]


Leaf = Compare | OneOf | HasNull | HasValue
Condition = Leaf | All | Any | bool


def all_of(parts: Iterable[Condition]) -> Condition:
    """Every part; what cannot be decided is left out, and what never holds is the whole."""
    kept = _flat(All, parts)
    if False in kept:
        return False
    kept = [part for part in kept if part is not True]
    return All(tuple(kept)) if len(kept) > 1 else kept[0] if kept else True


def any_of(parts: Iterable[Condition]) -> Condition:
    """At least one part; one that cannot be decided makes the whole undecided."""
    kept = _flat(Any, parts)
    if True in kept:
        return True
    kept = [part for part in kept if part is not False]
    return Any(tuple(kept)) if len(kept) > 1 else kept[0] if kept else False


def _flat(kind: type[All] | type[Any], parts: Iterable[Condition]) -> list[Condition]:
    found: dict[Condition, None] = {}
    for part in parts:
        inner = part.parts if isinstance(part, All | Any) and type(part) is kind else (part,)
        found.update(dict.fromkeys(inner))
    return list(found)
