"""Actions with some of their fields set anew, so that they are written as such."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

import orjson

from mainstem.deltalog.bodies import commit_info
from mainstem.deltalog.jsontext import edited
from mainstem.deltalog.layout import COLUMNS
from mainstem.deltalog.serialize import NAMES
from mainstem.model import AddFile, CommitInfo, DomainMetadata, Metadata, RemoveFile, Txn, draft_of

Editable = TypeVar("Editable", AddFile, RemoveFile, Metadata, DomainMetadata, Txn)
_FIRST = "inCommitTimestamp"


def with_fields(action: Editable, **attributes: Any) -> Editable:
    """The same action with these attributes; None takes a field away.

    An action whose `extra` lists its keys is written by that list, so a field that comes or goes is changed there too.
    """
    if action.extra is None:
        return _replaced(action, attributes)
    keys: list[str] = json.loads(action.extra)["keys"]
    for column in COLUMNS[NAMES[type(action)]]:
        if column.attribute not in attributes:
            continue
        if attributes[column.attribute] is None:
            keys = [key for key in keys if key != column.key]
        elif column.key not in keys:
            keys.append(column.key)
    listed = orjson.dumps(keys).decode()
    return _replaced(action, {**attributes, "extra": edited(action.extra, {"keys": listed})})


def with_properties(metadata: Metadata, properties: Mapping[str, str | None]) -> Metadata:
    """The metadata with these table properties set, None taking one away; all others as they were written."""
    texts = {key: None if value is None else orjson.dumps(value).decode() for key, value in properties.items()}
    return with_fields(metadata, table_properties=edited(metadata.table_properties or "{}", texts))


def with_info(info: CommitInfo | None, **members: Any) -> CommitInfo:
    """The commitInfo with these members set, None taking one away; all others as they were written.

    A new in-commit timestamp comes first, where Delta looks for it.
    """
    if info is None:
        present = {key: value for key, value in members.items() if value is not None}
        head = {_FIRST: present[_FIRST]} if _FIRST in present else {}
        body = orjson.dumps({**head, **present}).decode()
        return commit_info(present, body, exact=True)
    texts = {key: None if value is None else orjson.dumps(value).decode() for key, value in members.items()}
    body = edited(info.body, texts, first=frozenset({_FIRST}))
    return replace(commit_info(json.loads(body), body, exact=False), seq=info.seq)


def _shape(kind: type[Any]) -> tuple[dict[str, int], Callable[[Any], tuple[Any, ...]], type[Any]]:
    names = [field.name for field in fields(kind)]
    return {name: place for place, name in enumerate(names)}, attrgetter(*names), draft_of(kind)


_SHAPES = {kind: _shape(kind) for kind in (AddFile, RemoveFile, Metadata, DomainMetadata, Txn)}


def _replaced(action: Editable, attributes: dict[str, Any]) -> Editable:
    """What `dataclasses.replace` does, at a fifth of its price: a commit may number 100,000 files."""
    places, values_of, draft = _SHAPES[type(action)]
    values = list(values_of(action))
    for name, value in attributes.items():
        values[places[name]] = value
    made = draft(*values)
    made.__class__ = type(action)
    found: Editable = made
    return found
