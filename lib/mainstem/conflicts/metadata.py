"""Changes of a table's metadata that a commit may follow without knowing of them, because they only enable features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from mainstem.conflicts.features import (
    COLUMN_MAPPING,
    DELETION_VECTORS,
    IN_COMMIT_TIMESTAMP,
    ROW_TRACKING,
    V2_CHECKPOINT,
    features,
)
from mainstem.conflicts.values import is_true, json_object, properties_of
from mainstem.model import Metadata, Protocol

ENABLE_ROW_TRACKING = "delta.enableRowTracking"
_MAPPING_MODE = "delta.columnMapping.mode"
_MAPPING_KEYS = frozenset(
    {
        "delta.columnMapping.id",
        "delta.columnMapping.physicalName",
        "delta.columnMapping.nested.ids",
        "parquet.field.id",
        "parquet.field.nested.ids",
    }
)
Properties = Mapping[str, str]


def enables_only(before: Metadata, after: Metadata, protocol: Protocol) -> bool:
    """Whether the step from one metadata to the next only enables what Delta lets concurrent commits pass over.

    That is row tracking, column mapping by name, deletion vectors, v2 checkpoints and in-commit timestamps, each only
    where `protocol`, that of the winner, supports it. Nothing may be unset, and the schema may differ in what column
    mapping writes into it.
    """
    same = (
        before.metadata_id == after.metadata_id
        and before.name == after.name
        and before.description == after.description
        and before.created_time == after.created_time
        and json_object(before.format) == json_object(after.format)
        and orjson.loads(before.partition_columns or "[]") == orjson.loads(after.partition_columns or "[]")
    )
    if not same:
        return False
    old, new = properties_of(before), properties_of(after)
    if old.keys() - new.keys():
        return False
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    supported = features(protocol)
    if not all(key in _ALLOWED and _ALLOWED[key](value, old, new, supported) for key, value in changed.items()):
        return False
    return before.schema_json == after.schema_json or (
        _maps_by_name(old, new) and _differs_in_mapping_only(before.schema_json, after.schema_json)
    )


def turns_on_row_tracking(before: Metadata, after: Metadata) -> bool:
    """Whether rows are tracked from here on, and were not before."""
    return is_true(properties_of(after).get(ENABLE_ROW_TRACKING)) and not is_true(
        properties_of(before).get(ENABLE_ROW_TRACKING)
    )


def _maps_by_name(old: Properties, new: Properties) -> bool:
    return (old.get(_MAPPING_MODE, "none").lower(), new.get(_MAPPING_MODE, "none").lower()) == ("none", "name")


def _turned_on(feature: str) -> Callable[[str, Properties, Properties, frozenset[str]], bool]:
    return lambda value, old, new, supported: is_true(value) and feature in supported


# What may be set, and on which condition: the new value, the properties before and after, the supported features.
_ALLOWED: dict[str, Callable[[str, Properties, Properties, frozenset[str]], bool]] = {
    ENABLE_ROW_TRACKING: _turned_on(ROW_TRACKING),
    "delta.rowTracking.materializedRowIdColumnName": lambda _value, _old, new, _on: is_true(
        new.get(ENABLE_ROW_TRACKING)
    ),
    "delta.rowTracking.materializedRowCommitVersionColumnName": lambda _value, _old, new, _on: is_true(
        new.get(ENABLE_ROW_TRACKING)
    ),
    _MAPPING_MODE: lambda _value, old, new, on: _maps_by_name(old, new) and COLUMN_MAPPING in on,
    "delta.columnMapping.maxColumnId": lambda *_: True,
    "delta.enableDeletionVectors": _turned_on(DELETION_VECTORS),
    "delta.checkpointPolicy": lambda value, _old, _new, on: value == "v2" and V2_CHECKPOINT in on,
    "delta.enableInCommitTimestamps": _turned_on(IN_COMMIT_TIMESTAMP),
    "delta.inCommitTimestampEnablementVersion": lambda *_: True,
    "delta.inCommitTimestampEnablementTimestamp": lambda *_: True,
}


def _differs_in_mapping_only(before: str | None, after: str | None) -> bool:
    old, new = json_object(before).get("fields", []), json_object(after).get("fields", [])
    return len(old) == len(new) and all(map(_same_but_mapping, old, new))


def _same_but_mapping(old: dict[str, Any], new: dict[str, Any]) -> bool:
    # Fields of a struct have metadata of their own, inside of its type: Delta lets no change of it pass.
    if any(old.get(key) != new.get(key) for key in ("name", "type", "nullable")):
        return False
    theirs, ours = old.get("metadata") or {}, new.get("metadata") or {}
    return all(theirs.get(key) == ours.get(key) for key in (theirs.keys() | ours.keys()) - _MAPPING_KEYS)
