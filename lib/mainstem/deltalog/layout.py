"""Which key of an action is which column, in the order in which Delta writes them, and what `extra` has to remember."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import orjson


class Kind(Enum):
    """How a column holds its value: as it is (numbers, booleans), as decoded text, or as the JSON text itself."""

    PLAIN = "plain"
    TEXT = "text"
    JSON = "json"


class Column(NamedTuple):
    """One key of an action and the attribute of its value in `mainstem.model`."""

    key: str
    attribute: str
    kind: Kind


COLUMNS: dict[str, tuple[Column, ...]] = {
    "add": (
        Column("path", "path", Kind.TEXT),
        Column("partitionValues", "partition_values", Kind.JSON),
        Column("size", "size_bytes", Kind.PLAIN),
        Column("modificationTime", "modification_time", Kind.PLAIN),
        Column("dataChange", "data_change", Kind.PLAIN),
        Column("stats", "stats", Kind.TEXT),
        Column("tags", "tags", Kind.JSON),
        Column("deletionVector", "deletion_vector", Kind.JSON),
        Column("baseRowId", "base_row_id", Kind.PLAIN),
        Column("defaultRowCommitVersion", "default_row_commit_version", Kind.PLAIN),
        Column("clusteringProvider", "clustering_provider", Kind.TEXT),
    ),
    "remove": (
        Column("path", "path", Kind.TEXT),
        Column("deletionTimestamp", "deletion_timestamp", Kind.PLAIN),
        Column("dataChange", "data_change", Kind.PLAIN),
        Column("extendedFileMetadata", "extended_file_metadata", Kind.PLAIN),
        Column("partitionValues", "partition_values", Kind.JSON),
        Column("size", "size_bytes", Kind.PLAIN),
        Column("tags", "tags", Kind.JSON),
        Column("deletionVector", "deletion_vector", Kind.JSON),
        Column("baseRowId", "base_row_id", Kind.PLAIN),
        Column("defaultRowCommitVersion", "default_row_commit_version", Kind.PLAIN),
        Column("stats", "stats", Kind.TEXT),
    ),
    "cdc": (
        Column("path", "path", Kind.TEXT),
        Column("partitionValues", "partition_values", Kind.JSON),
        Column("size", "size_bytes", Kind.PLAIN),
        Column("tags", "tags", Kind.JSON),
        Column("dataChange", "data_change", Kind.PLAIN),
    ),
    "metaData": (
        Column("id", "metadata_id", Kind.TEXT),
        Column("name", "name", Kind.TEXT),
        Column("description", "description", Kind.TEXT),
        Column("format", "format", Kind.JSON),
        Column("schemaString", "schema_json", Kind.TEXT),
        Column("partitionColumns", "partition_columns", Kind.JSON),
        Column("configuration", "table_properties", Kind.JSON),
        Column("createdTime", "created_time", Kind.PLAIN),
    ),
    "protocol": (
        Column("minReaderVersion", "min_reader_version", Kind.PLAIN),
        Column("minWriterVersion", "min_writer_version", Kind.PLAIN),
        Column("readerFeatures", "reader_features", Kind.JSON),
        Column("writerFeatures", "writer_features", Kind.JSON),
    ),
    "txn": (
        Column("appId", "app_id", Kind.TEXT),
        Column("version", "txn_version", Kind.PLAIN),
        Column("lastUpdated", "last_updated", Kind.PLAIN),
    ),
    "domainMetadata": (
        Column("domain", "domain", Kind.TEXT),
        Column("configuration", "configuration", Kind.TEXT),
        Column("removed", "removed", Kind.PLAIN),
    ),
}
KNOWN_KEYS: dict[str, frozenset[str]] = {name: frozenset(c.key for c in columns) for name, columns in COLUMNS.items()}
_PLACES = {name: {column.key: place for place, column in enumerate(columns)} for name, columns in COLUMNS.items()}


class Layout(NamedTuple):
    """What is particular about the keys of an action: nothing if `usual`, and those without a column."""

    usual: bool
    unknown: tuple[str, ...]
    keys_json: str


def usual_order(name: str, keys: Iterable[str]) -> list[str]:
    """The keys in the order in which Delta writes them, those without a column last, as they came."""
    places = _PLACES.get(name, {})
    return sorted(keys, key=lambda key: places.get(key, len(places)))


@lru_cache(maxsize=4096)
def layout_of(name: str, keys: tuple[str, ...]) -> Layout:
    """The layout of an action with these keys. A log has few, so that almost every action finds its own here."""
    places = _PLACES[name]
    known = [places[key] for key in keys if key in places]
    unknown = tuple(key for key in keys if key not in places)
    keys_json = json.dumps(keys, separators=(",", ":"))
    return Layout(not unknown and known == sorted(known), unknown, f'{{"keys":{keys_json}')


def extra_of(name: str, values: dict[str, Any], texts: dict[str, str] | None) -> str | None:
    """What the columns of an action cannot say about it: odd order, explicit nulls, unknown fields. Mostly None."""
    keys = tuple(values)
    # A hostile action with a million keys is served, but not remembered.
    layout = layout_of(name, keys) if len(keys) <= 64 else layout_of.__wrapped__(name, keys)
    if layout.usual and None not in values.values():
        return None
    if not layout.unknown:
        return layout.keys_json + "}"
    fields = ",".join(f"{json.dumps(key)}:{text_of(key, values, texts)}" for key in layout.unknown)
    return f'{layout.keys_json},"fields":{{{fields}}}}}'


def text_of(key: str, values: dict[str, Any], texts: dict[str, str] | None) -> str:
    """The JSON text of one field: its slice of the line, or what orjson writes where that is known to be the same."""
    return texts[key] if texts is not None else orjson.dumps(values[key]).decode()
