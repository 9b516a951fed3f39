"""What defines a table, its protocol and its metadata: whether they are sound, and what they let a commit do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from mainstem.conflicts.features import (
    CHANGE_DATA_FEED,
    COLUMN_MAPPING,
    DELETION_VECTORS,
    DOMAIN_METADATA,
    features,
    wanted,
)
from mainstem.deltalog.protocol import refuse_unwritable
from mainstem.errors import UsageError
from mainstem.model import Action, AddFile, CdcFile, DomainMetadata, Metadata, OtherAction, Protocol

_OF_CHECKPOINTS = frozenset({"sidecar", "checkpointMetadata"})
_PREVIEWS = {"typeWidening": "typeWidening-preview"}


def beyond(actions: Iterable[Action], protocol: Protocol) -> str | None:
    """What of these actions a table of this protocol cannot have, in words; None if there is nothing."""
    known = features(protocol)
    for action in actions:
        kind = type(action)
        if kind is AddFile:
            if action.deletion_vector is not None and DELETION_VECTORS not in known:  # type: ignore[union-attr]
                return _lacks(f"the file {action.path!r} has a deletion vector", DELETION_VECTORS)  # type: ignore[union-attr]
        elif isinstance(action, DomainMetadata) and DOMAIN_METADATA not in known:
            return _lacks(f"it sets the domain {action.domain!r}", DOMAIN_METADATA)
        elif isinstance(action, CdcFile) and CHANGE_DATA_FEED not in known:
            return _lacks("it has a change file", CHANGE_DATA_FEED)
        elif isinstance(action, OtherAction) and action.name in _OF_CHECKPOINTS:
            return f"a {action.name} action belongs into a checkpoint"
    return None


def require_sound(
    actions: Sequence[Action], *, table: str, metadata: Metadata | None, protocol: Protocol | None
) -> None:
    """Raise if what a user's own actions make of a table's protocol and metadata is none, or not the same table's.

    A feature that is taken away leaves over what uses it. What Delta's engine or this library proposes is not asked:
    those that drop a feature clean up before, and what an older version has left unsound must not hold them up.
    """
    after, before = metadata, protocol
    for action in actions:
        if isinstance(action, Metadata):
            after = action
            if metadata is not None and action.metadata_id != metadata.metadata_id:
                other = f"its metaData has the id {action.metadata_id!r}, and the table's is {metadata.metadata_id!r}"
                raise _refused(table, other, "A table keeps its id.")
        elif isinstance(action, Protocol):
            protocol = action
            refuse_unwritable(action, table=table)
            lost = sorted(features(before) - features(action)) if before is not None else []
            if lost:
                hint = "Drop a feature by Delta's own ALTER TABLE … DROP FEATURE."
                raise _refused(table, f"its protocol no longer has {', '.join(lost)}", hint, features=lost)
    if (after is metadata and protocol is before) or after is None or protocol is None:
        return
    if wrong := _unsound(after, protocol):
        raise _refused(table, f"its metadata is unsound: {wrong}")


def _refused(table: str, why: str, hint: str = "", **details: object) -> UsageError:
    said = f"Nothing was written. {hint}".rstrip()
    return UsageError(f"the commit to {table} is refused: {why}.", hint=said, table=table, **details)


def _unsound(metadata: Metadata, protocol: Protocol) -> str | None:
    properties = orjson.loads(metadata.table_properties or "{}")
    for key, value in properties.items():
        if not isinstance(value, str):
            return f"its property {key!r} is {orjson.dumps(value).decode()[:80]}, and a property is a text"
    known = features(protocol)
    for key, names in wanted(properties).items():
        for name in names:
            if name not in known and _PREVIEWS.get(name) not in known:
                return _lacks(f"its property {key!r} is {properties[key]!r}", name)
    mapped = "delta.columnMapping.mode" in wanted(properties) and COLUMN_MAPPING in known
    try:
        schema = orjson.loads(metadata.schema_json or "")
    except orjson.JSONDecodeError:
        return "it has no schema" if metadata.schema_json is None else "its schema is no JSON"
    try:
        if wrong := _unsound_type(schema, "the schema", mapped=mapped):
            return wrong
    except RecursionError:
        return "its schema is nested too deeply"
    if not isinstance(schema, dict) or schema["type"] != "struct":
        return "its schema is no struct"
    return _unsound_partitioning(metadata.partition_columns, {field["name"].lower() for field in schema["fields"]})


def _lacks(what: str, feature: str) -> str:
    return f"{what}, and the table's protocol does not have the feature {feature}"


def _unsound_type(kind: Any, where: str, *, mapped: bool) -> str | None:
    if isinstance(kind, str) and kind:
        return None
    if not isinstance(kind, dict) or not isinstance(kind.get("type"), str):
        return f"{where} is no type of Delta's schema"
    inner = {"array": ("elementType",), "map": ("keyType", "valueType")}.get(kind["type"], ())
    for key in inner:
        if wrong := _unsound_type(kind.get(key), f"the {key} of {where}", mapped=mapped):
            return wrong
    return _unsound_fields(kind.get("fields"), where, mapped=mapped) if kind["type"] == "struct" else None


def _unsound_fields(fields: Any, where: str, *, mapped: bool) -> str | None:
    if not isinstance(fields, list):
        return f"{where} has no list of fields"
    seen: set[str] = set()
    for field in fields:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or not field["name"]:
            return f"a field of {where} has no name"
        name = field["name"]
        if name.lower() in seen:
            return f"{where} has two columns {name!r}: they must differ by more than their case"
        seen.add(name.lower())
        if not isinstance(field.get("nullable"), bool):
            return f"the column {name!r} does not say whether it is nullable"
        about = field.get("metadata", {})
        if not isinstance(about, dict):
            return f"the metadata of the column {name!r} is no object"
        if mapped and not isinstance(about.get("delta.columnMapping.physicalName"), str):
            return f"the column {name!r} has no physical name, which column mapping needs"
        if mapped and type(about.get("delta.columnMapping.id")) is not int:
            return f"the column {name!r} has no id, which column mapping needs"
        if wrong := _unsound_type(field.get("type"), f"the column {name!r}", mapped=mapped):
            return wrong
    return None


def _unsound_partitioning(text: str | None, columns: set[str]) -> str | None:
    names = orjson.loads(text or "[]")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return "its partition columns are no list of names"
    for name in names:
        if name.lower() not in columns:
            return f"it is partitioned by {name!r}, which is no column of its schema"
    if len({name.lower() for name in names}) != len(names):
        return f"it is partitioned by one column twice: {names}"
    return None
