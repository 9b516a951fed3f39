"""From actions back to the lines of a commit file, the same bytes whoever writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from mainstem.deltalog.jsontext import members
from mainstem.deltalog.layout import COLUMNS, Column, Kind
from mainstem.model import (
    Action,
    AddFile,
    CdcFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    OtherAction,
    Protocol,
    RemoveFile,
    Txn,
)

NAMES: dict[type[Action], str] = {
    AddFile: "add",
    RemoveFile: "remove",
    CdcFile: "cdc",
    Metadata: "metaData",
    Protocol: "protocol",
    Txn: "txn",
    DomainMetadata: "domainMetadata",
}
_BY_SEQ = attrgetter("seq")
_BY_KEY = {name: {column.key: column for column in columns} for name, columns in COLUMNS.items()}


class _Fields(NamedTuple):
    """The keys of one kind of action, how to read all of their values at once, and which of them are JSON texts."""

    name: str
    keys: tuple[str, ...]
    values: Callable[[Action], tuple[Any, ...]]
    texts: tuple[str, ...]


_FIELDS = {
    kind: _Fields(
        name,
        tuple(column.key for column in COLUMNS[name]),
        attrgetter(*(column.attribute for column in COLUMNS[name])),
        tuple(column.key for column in COLUMNS[name] if column.kind is Kind.JSON),
    )
    for kind, name in NAMES.items()
}


def serialize_commit(actions: Iterable[Action]) -> bytes:
    """A commit file: commitInfo first, the rest in `seq` order, one JSON object a line, each line ended.

    Parsing it gives the same actions, and serializing those gives the same bytes.
    """
    ordered = sorted(actions, key=_BY_SEQ)  # commitInfo has the lowest one
    return b"".join([serialize_action(action) + b"\n" for action in ordered])


def serialize_action(action: Action) -> bytes:
    """One line, without its end: field for field what was parsed, unknown fields and explicit nulls included."""
    if isinstance(action, CommitInfo):
        return b'{"commitInfo":' + _one_line(action.body).encode() + b"}"
    if isinstance(action, OtherAction):
        return b"{" + orjson.dumps(action.name) + b":" + _one_line(action.body).encode() + b"}"
    name, keys, values, texts = _FIELDS[type(action)]
    if action.extra is None:
        # A large commit has many of these, so nothing is looked up field by field.
        fields = {key: value for key, value in zip(keys, values(action), strict=True) if value is not None}
        for key in texts:
            if key in fields:
                fields[key] = orjson.Fragment(_one_line(fields[key]))
        return orjson.dumps({name: fields})
    return f'{{"{name}":{{{_with_extra(name, action, action.extra)}}}}}'.encode()


def _with_extra(name: str, action: Action, extra: str) -> str:
    kept = {member.key: member for member in members(extra, strict=frozenset())}
    unknown = (
        {member.key: member.text for member in members(kept["fields"].text, strict=frozenset())}
        if "fields" in kept
        else {}
    )
    columns = _BY_KEY[name]
    return ",".join(
        f"{json.dumps(key)}:{unknown[key] if key in unknown else _value(action, columns[key])}"
        for key in kept["keys"].value
    )


def _value(action: Action, column: Column) -> str:
    value = getattr(action, column.attribute)
    if value is None:
        return "null"
    return _one_line(value) if column.kind is Kind.JSON else orjson.dumps(value).decode()


def _one_line(text: str) -> str:
    # Inside of a JSON string a line break is always escaped, so a raw one is a blank between two tokens.
    # Delta's reader ends a line at a carriage return, too.
    return text.replace("\n", " ").replace("\r", " ") if "\n" in text or "\r" in text else text
