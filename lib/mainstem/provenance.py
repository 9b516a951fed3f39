"""What a user may say in the commitInfo of a commit, so that Delta can still read the log and is told nothing wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from mainstem.errors import UsageError
from mainstem.model import Action, CommitInfo

_TEXTS = frozenset({"userMetadata", "userId", "clusterId"})


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and not any(isinstance(each, dict | list) for each in value.values())


# Delta's own fields and what its reader takes for each. By one that it cannot read the whole log is lost to it.
_DELTAS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("version", "timestamp", "inCommitTimestamp", "readVersion"), (_whole, "a whole number")),
    **dict.fromkeys(("userName", "operation", "isolationLevel", "engineInfo", "txnId", *_TEXTS), (_text, "a text")),
    **dict.fromkeys(("operationMetrics", "tags", "job", "notebook"), (_texts, "an object of texts")),
    "operationParameters": (_object, "an object"),
    "isBlindAppend": (_truth, "true or false"),
}


def usable(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a user adds to commitInfo, unless Delta gives the name a meaning: a value of another type than it expects
    makes the whole log unreadable to Delta, and one of the right type says something that is not so."""
    for name, value in info.items():
        if name in _DELTAS and not (name in _TEXTS and isinstance(value, str)):
            raise UsageError(
                f"info names {name!r}, which is a field of Delta's own.",
                hint="Nothing was written. Choose another name, or give a text as userMetadata.",
            )
    return info


def require_readable_info(actions: Iterable[Action], *, table: str) -> None:
    """Raise unless Delta can read the commitInfo among a user's actions. What only a commit knows is set anew."""
    for action in actions:
        if not isinstance(action, CommitInfo):
            continue
        for name, value in orjson.loads(action.body).items():
            fits, kind = _DELTAS.get(name, (None, ""))
            if fits is not None and value is not None and not fits(value):
                raise UsageError(
                    f"the commitInfo of the commit to {table} cannot be taken: its {name!r} must be {kind}.",
                    hint="Nothing was written. Delta could not read the table's log any more.",
                    table=table,
                    field=name,
                )
