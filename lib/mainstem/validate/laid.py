"""Two lists of actions laid side by side: each action by what it is about, with its fields as texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from mainstem.deltalog.serialize import NAMES
from mainstem.model import Action, CommitInfo, DomainMetadata, OtherAction, Txn
from mainstem.validate.report import Finding

_PLACE = "seq"  # where an action stands is a matter of bytes, and the hash of the bytes says it


class About(NamedTuple):
    """What an action is about: its kind, the path, application or domain, and the how manieth of these it is."""

    name: str
    about: str
    number: int


@dataclass(frozen=True, slots=True)
class Laid:
    """One action. A field that is empty is not among its fields."""

    name: str
    about: str
    fields: Mapping[str, str]


def laid(action: Action) -> Laid:
    """An action by its name and by what it is about. Deletion vectors do not count: another one is a difference."""
    name = "commitInfo" if isinstance(action, CommitInfo) else NAMES.get(type(action))
    if isinstance(action, OtherAction):
        name, about = action.name, ""
    elif isinstance(action, Txn):
        about = action.app_id
    elif isinstance(action, DomainMetadata):
        about = action.domain
    else:
        about = getattr(action, "path", "")
    assert name is not None
    values = ((field.name, getattr(action, field.name)) for field in fields(action) if field.name != _PLACE)
    return Laid(name, about, {column: _text(value) for column, value in values if value is not None})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.hex() if isinstance(value, bytes) else str(value)


def numbered(actions: Iterable[Action]) -> Iterator[tuple[About, Laid]]:
    """Each action of one version with its key: of two that are about the same, the first meets the first."""
    seen: Counter[tuple[str, str]] = Counter()
    for action in actions:
        found = laid(action)
        seen[found.name, found.about] += 1
        yield About(found.name, found.about, seen[found.name, found.about]), found


def differences(version: int, ours: Iterable[Action], theirs: Iterable[Action]) -> Iterator[Finding]:
    """What one version says in the catalog and what it says in the log, by action and column; nothing if the same."""
    mine, other = dict(numbered(ours)), dict(numbered(theirs))
    for key in sorted(mine.keys() - other.keys()):
        yield only("missing_in_log", version, key.name, key.about)
    for key in sorted(other.keys() - mine.keys()):
        yield only("missing_in_catalog", version, key.name, key.about)
    for key in sorted(mine.keys() & other.keys()):
        left, right = mine[key].fields, other[key].fields
        for column in sorted(left.keys() | right.keys()):
            if left.get(column) != right.get(column):
                yield differs(version, key.name, key.about, column, left.get(column), right.get(column))


def only(check: str, version: int, name: str, about: str) -> Finding:
    """An action that one side alone has."""
    where = "catalog" if check == "missing_in_log" else "log"
    return Finding(check, "error", f"only the {where} has this {name}", version=version, path=about or None)


def differs(version: int, name: str, about: str, column: str, ours: str | None, theirs: str | None) -> Finding:
    """A column that the two sides fill otherwise."""
    return Finding(
        "differs", "error", f"{name} has another {column}", version=version, path=about or None, column=column,
        catalog=ours, log=theirs,
    )  # fmt: skip
