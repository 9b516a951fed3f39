"""The first version of a new table, without Spark: protocol and metadata from a schema and properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import orjson

from mainstem.conflicts.features import ENABLING
from mainstem.deltalog.protocol import FEATURES_READER_VERSION, FEATURES_WRITER_VERSION, READABLE, WRITABLE
from mainstem.errors import UnsupportedFeature, UsageError

_OF_TYPES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}
_WANTED = "delta.feature."
_MATERIALIZED = (("RowId", "_row-id-col"), ("RowCommitVersion", "_row-commit-version-col"))
_PARTITIONS_ON = frozenset(
    {"string", "byte", "short", "integer", "long", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz",
     "binary"}
)  # fmt: skip


def first_actions(
    schema_json: str, *, partition_by: Sequence[str], properties: Mapping[str, str], now_ms: int
) -> list[dict[str, Any]]:
    """Protocol and metaData of a new table, as Delta's JSON objects.

    In-commit timestamps are on unless the properties say otherwise: the catalog's clock, not the files', is the time of
    its versions. What only Delta's engine can set up (column mapping, generated columns) is refused by name.
    """
    fields = _fields(schema_json)
    known = {field["name"]: field for field in fields}
    for name in partition_by:
        if name not in known:
            raise UsageError(
                f"there is no column {name!r} to partition by.", hint=f"The schema has {', '.join(known)}."
            )
        kind = known[name]["type"]
        if not isinstance(kind, str) or (kind not in _PARTITIONS_ON and not kind.startswith("decimal")):
            raise UsageError(f"a table cannot be partitioned by {name!r}: values of its type name no folder.")
    if fields and len(partition_by) == len(fields):
        raise UsageError("a table cannot be partitioned by all of its columns.", hint="Leave one column for the files.")
    given = {"delta.enableInCommitTimestamps": "true", **{key: str(value) for key, value in properties.items()}}
    features = sorted({*_asked_for(given), *_needed(fields)})
    kept = {key: value for key, value in given.items() if not key.startswith(_WANTED)}
    if "rowTracking" in features:
        # Where a file keeps the ids of rows that it took over from another one: names that no column can have.
        kept |= {f"delta.rowTracking.materialized{key}ColumnName": f"{name}-{uuid4()}" for key, name in _MATERIALIZED}
    return [
        {"protocol": _protocol(features)},
        {
            "metaData": {
                "id": str(uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema_json,
                "partitionColumns": list(partition_by),
                "configuration": kept,
                "createdTime": now_ms,
            }
        },
    ]


def _fields(schema_json: str) -> list[dict[str, Any]]:
    try:
        parsed = orjson.loads(schema_json)
        fields: list[dict[str, Any]] = parsed["fields"]
        names = [field["name"].lower() for field in fields]
        usable = parsed["type"] == "struct" and all("type" in field for field in fields)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UsageError("the schema is not one of Delta's JSON.", hint='It looks so: {"type":"struct",…}.') from error
    if not usable or not fields:
        raise UsageError("the schema has no column.", hint='Give at least one: {"type":"struct","fields":[…]}.')
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the schema has two columns {name!r}.", hint="Columns differ by more than their case.")
    return fields


def _asked_for(properties: Mapping[str, str]) -> Iterator[str]:
    if properties.get("delta.columnMapping.mode", "none").lower() != "none":
        raise UnsupportedFeature(
            "column mapping gives every column an id, which Delta's engine does.",
            hint="Open the catalog with a Spark session to create such a table.",
        )
    for key, features in ENABLING.items():
        if properties.get(key, "false").lower() == "true":
            yield from features
    for key, value in properties.items():
        if key.startswith(_WANTED):
            name = key.removeprefix(_WANTED)
            if value not in ("supported", "enabled") or name not in WRITABLE:
                raise UsageError(f"{key}={value} asks for a feature that this library does not have.")
            yield name
    if properties.get("delta.checkpointPolicy") == "v2":
        yield "v2Checkpoint"


def _needed(fields: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    text = orjson.dumps(fields).decode()
    for kind, feature in _OF_TYPES.items():
        if f'"{kind}"' in text:
            yield feature
    for mark in ("delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT", "delta.invariants"):
        if mark in text:
            raise UnsupportedFeature(
                f"the schema has columns with {mark}, whose values Delta's engine makes.",
                hint="Open the catalog with a Spark session to create such a table.",
            )


def _protocol(features: Sequence[str]) -> dict[str, Any]:
    if not set(features) - {"appendOnly"}:
        return {"minReaderVersion": 1, "minWriterVersion": 2}  # which has appendOnly and invariants without naming them
    named = sorted({*features, "appendOnly", "invariants"})
    reading = [name for name in named if name in READABLE]
    if not reading:
        return {"minReaderVersion": 1, "minWriterVersion": FEATURES_WRITER_VERSION, "writerFeatures": named}
    return {
        "minReaderVersion": FEATURES_READER_VERSION,
        "minWriterVersion": FEATURES_WRITER_VERSION,
        "readerFeatures": reading,
        "writerFeatures": named,
    }
