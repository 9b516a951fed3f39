"""Table features that a protocol stands for, named or implied by its version, as Delta Spark 4.4 knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import orjson

from mainstem.deltalog.protocol import (
    FEATURES_READER_VERSION,
    FEATURES_WRITER_VERSION,
    FENCE,
    WRITABLE,
    reader_features,
    writer_features,
)
from mainstem.model import Protocol

ROW_TRACKING = "rowTracking"
DOMAIN_METADATA = "domainMetadata"
COLUMN_MAPPING = "columnMapping"
DELETION_VECTORS = "deletionVectors"
V2_CHECKPOINT = "v2Checkpoint"
IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
CHANGE_DATA_FEED = "changeDataFeed"


class _Since(NamedTuple):
    reader: int
    writer: int


# Before features had names, a version stood for all of them up to it.
_IMPLIED = {
    "appendOnly": _Since(0, 2),
    "invariants": _Since(0, 2),
    "checkConstraints": _Since(0, 3),
    CHANGE_DATA_FEED: _Since(0, 4),
    "generatedColumns": _Since(0, 4),
    COLUMN_MAPPING: _Since(2, 5),
    "identityColumns": _Since(0, 6),
}
KNOWN = WRITABLE | {FENCE}
# Which property asks for which features, as Delta's own CREATE TABLE does.
ENABLING: Mapping[str, tuple[str, ...]] = {
    "delta.appendOnly": ("appendOnly",),
    "delta.enableChangeDataFeed": (CHANGE_DATA_FEED,),
    "delta.enableDeletionVectors": (DELETION_VECTORS,),
    "delta.enableInCommitTimestamps": (IN_COMMIT_TIMESTAMP,),
    "delta.enableRowTracking": (ROW_TRACKING, DOMAIN_METADATA),
    "delta.enableTypeWidening": ("typeWidening",),
}


def features(protocol: Protocol) -> frozenset[str]:
    """Every feature that a table of this protocol supports."""
    if protocol.min_writer_version >= FEATURES_WRITER_VERSION:
        return frozenset((*reader_features(protocol), *writer_features(protocol)))
    return frozenset(
        name
        for name, since in _IMPLIED.items()
        if since.reader <= protocol.min_reader_version and since.writer <= protocol.min_writer_version
    )


def wanted(properties: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """The features without which these table properties mean nothing, by the property that asks for them."""
    found = {key: names for key, names in ENABLING.items() if properties.get(key, "").lower() == "true"}
    if properties.get("delta.columnMapping.mode", "none").lower() != "none":
        found["delta.columnMapping.mode"] = (COLUMN_MAPPING,)
    if properties.get("delta.checkpointPolicy", "").lower() == "v2":
        found["delta.checkpointPolicy"] = (V2_CHECKPOINT,)
    return found


def beyond_us(protocol: Protocol) -> list[str]:
    """What a table of this protocol asks of a writer that this library does not know; empty if it can be written."""
    wanted = [
        f"{side} version {version}"
        for side, version, known in (
            ("reader", protocol.min_reader_version, FEATURES_READER_VERSION),
            ("writer", protocol.min_writer_version, FEATURES_WRITER_VERSION),
        )
        if version > known
    ]
    return wanted + [f"feature {name}" for name in sorted(features(protocol) - KNOWN)]


def with_writer_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """The protocol with these features for writers, too; what its version stood for without names gets its names.

    The reader version stays: a feature for writers does not concern readers. The same protocol, if it has them all.
    """
    missing = set(names) - features(protocol)
    if not missing:
        return protocol
    return replace(
        protocol,
        min_writer_version=FEATURES_WRITER_VERSION,
        writer_features=orjson.dumps(sorted({*features(protocol), *missing})).decode(),
        extra=None,
    )


def without_writer_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """The protocol without these features for writers. The same one, if it has none of them.

    If a version from before features had names stands for the rest, it is that version again, as after Delta's own
    DROP FEATURE: the writers of that time can write the table again.
    """
    gone = features(protocol) & set(names)
    if not gone:
        return protocol
    rest = features(protocol) - gone
    for version in range(1, FEATURES_WRITER_VERSION):
        older = Protocol(protocol.seq, protocol.min_reader_version, version)
        if protocol.min_reader_version < FEATURES_READER_VERSION and features(older) == rest:
            return older
    return replace(protocol, writer_features=orjson.dumps(sorted(rest)).decode(), extra=None)
