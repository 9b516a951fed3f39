"""Which tables can be read: protocol versions and reader features, as Delta Spark 4.4 knows them."""

from __future__ import annotations

import json

from mainstem.errors import CorruptLog, UnsupportedFeature
from mainstem.model import Metadata, Protocol

MAX_READER_VERSION = 3
FEATURES_READER_VERSION = 3
FEATURES_WRITER_VERSION = 7

READABLE = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    }
)
# What Delta Spark 4.4 knows how to write. What a feature demands of data (constraints, generated columns) is kept by
# who writes the data; what it demands of a commit (row ids, timestamps, append-only) is kept by us.
WRITABLE = READABLE | {
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "domainMetadata",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
}
MAX_WRITER_VERSION = 7
# Ours: known to no other writer, so that each of them refuses by its own check of the protocol. Readers do not look.
FENCE = "mainstemFence"
# Their newest commits are known to another catalog only; the files in `_delta_log` are not the whole table.
CATALOG_MANAGED = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})


def reader_features(protocol: Protocol) -> tuple[str, ...]:
    """The features that a reader must know, in the order of the log; none below reader version 3."""
    return _names(protocol.reader_features)


def writer_features(protocol: Protocol) -> tuple[str, ...]:
    """The features that a writer must know, in the order of the log; none below writer version 7."""
    return _names(protocol.writer_features)


def refuse_unreadable(protocol: Protocol, *, table: str, undone: str = "Nothing was imported.") -> None:
    """Raise `UnsupportedFeature`, naming what is missing, unless this library can read a table of that protocol.

    `undone` says to its reader what has not happened.
    """
    managed = sorted(CATALOG_MANAGED & {*reader_features(protocol), *writer_features(protocol)})
    if managed:
        raise UnsupportedFeature(
            f"{table} is managed by another catalog (feature {', '.join(managed)}).",
            hint=f"Its log alone does not hold its newest commits. {undone}",
            table=table,
            features=managed,
        )
    if protocol.min_reader_version > MAX_READER_VERSION:
        raise UnsupportedFeature(
            f"{table} needs reader version {protocol.min_reader_version}; this library knows {MAX_READER_VERSION}.",
            hint=undone,
            table=table,
            min_reader_version=protocol.min_reader_version,
        )
    if protocol.min_reader_version >= FEATURES_READER_VERSION and protocol.reader_features is None:
        raise CorruptLog(
            f"{table} has reader version {protocol.min_reader_version} without a list of reader features.",
            hint=undone,
            table=table,
        )
    if protocol.min_writer_version >= FEATURES_WRITER_VERSION and protocol.writer_features is None:
        raise CorruptLog(
            f"{table} has writer version {protocol.min_writer_version} without a list of writer features.",
            hint=undone,
            table=table,
        )
    unknown = [name for name in reader_features(protocol) if name not in READABLE]
    if unknown:
        raise UnsupportedFeature(
            f"{table} needs reader features that this library does not have: {', '.join(unknown)}.",
            hint=undone,
            table=table,
            features=unknown,
        )


def refuse_unwritable(protocol: Protocol, *, table: str) -> None:
    """Raise `UnsupportedFeature`, naming what is missing, unless this library can write a table of that protocol."""
    if protocol.min_writer_version > MAX_WRITER_VERSION:
        unknown = [f"writer version {protocol.min_writer_version}"]
    else:
        refuse_unreadable(protocol, table=table)
        unknown = [name for name in writer_features(protocol) if name not in WRITABLE and name != FENCE]
    if unknown:
        raise UnsupportedFeature(
            f"{table} needs of its writers what this library does not have: {', '.join(unknown)}.",
            hint="Nothing was written. Write it with an engine that knows them.",
            table=table,
            features=unknown,
        )


def supports(protocol: Protocol, feature: str) -> bool:
    """Whether a table's writers must honour a feature by its name; older protocols name none."""
    return feature in writer_features(protocol)


def require_protocol_and_metadata(protocol: Protocol | None, metadata: Metadata | None, *, where: str) -> None:
    """Raise `CorruptLog` unless both are there: without them a state is no table."""
    lacking = [name for name, found in (("protocol", protocol), ("metaData", metadata)) if found is None]
    if lacking:
        raise CorruptLog(f"{where} has no {' and no '.join(lacking)} action.", hint="Nothing was imported.", file=where)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text is not None else ()
