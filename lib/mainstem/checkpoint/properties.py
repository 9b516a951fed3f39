"""What a table's properties and protocol say about its checkpoints and about how long its log is kept. Values only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from mainstem.errors import UsageError

INTERVAL = "delta.checkpointInterval"
POLICY = "delta.checkpointPolicy"
STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"
CODEC = "delta.parquet.compression.codec"
FILE_RETENTION = "delta.deletedFileRetentionDuration"
TXN_RETENTION = "delta.setTransactionRetentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"
LOG_CLEANUP = "delta.enableExpiredLogCleanup"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"

_DEFAULT_INTERVAL = 10
_DEFAULTS = {FILE_RETENTION: "interval 1 week", LOG_RETENTION: "interval 30 days"}
_UNITS: Mapping[str, int | Fraction] = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
    "microsecond": Fraction(1, 1000),
}
_TERM = re.compile(r"([+-]?\d{1,18}(?:\.\d{1,9})?)\s+([a-z]+?)s?(?:\s+|$)")
_CODECS = {"uncompressed": "none", "none": "none", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd"}

Properties = Mapping[str, str]


def due(version: int, properties: Properties) -> bool:
    """Whether Delta would write a checkpoint of this version: every `delta.checkpointInterval`-th, never the first."""
    return version > 0 and version % (_whole(properties, INTERVAL) or _DEFAULT_INTERVAL) == 0


def wants_v2(properties: Properties) -> bool:
    """Whether the table asks for v2 checkpoints. Its protocol must have the feature, too."""
    return properties.get(POLICY, "classic").lower() == "v2"


def stats_as_json(properties: Properties) -> bool:
    """Whether statistics stand in a checkpoint as text; unless the table says otherwise, they do."""
    return _flag(properties, STATS_AS_JSON, True)


def stats_as_struct(properties: Properties) -> bool:
    """Whether statistics and partition values stand in a checkpoint as columns of their types.

    Unless the table says otherwise, where it has no text of them: that is the protocol's default, and loses nothing.
    Delta Spark 4.4 writes them beside the text, too.
    """
    return _flag(properties, STATS_AS_STRUCT, not stats_as_json(properties))


def codec(properties: Properties) -> str:
    """How the files of a checkpoint are compressed: as the table's new data files are, where every reader knows it."""
    return _CODECS.get(properties.get(CODEC, "").lower(), "snappy")


def cleans_log(properties: Properties) -> bool:
    """Whether the table lets expired files of its log be deleted."""
    return _flag(properties, LOG_CLEANUP, True)


def protected_before(properties: Properties) -> int:
    """The version before which no checkpoint may be made, where the protocol has the feature checkpointProtection."""
    return _whole(properties, PROTECTED_BEFORE) or 0


def retention_ms(properties: Properties, name: str) -> int | None:
    """A duration of the table's properties in milliseconds; None for one that has no default and is not set."""
    text = properties.get(name) or _DEFAULTS.get(name)
    return None if text is None else milliseconds(text, name=name)


def removes_kept_ms(properties: Properties) -> int:
    """How long the catalog remembers what versions have removed that can no longer be read, in milliseconds.

    A vacuum may be asked for more than the table's own retention: as far back as the log is read, it is told what.
    """
    return max(retention_ms(properties, name) or 0 for name in (FILE_RETENTION, LOG_RETENTION))


def milliseconds(text: str, *, name: str) -> int:
    """An interval as Delta's properties write it, such as `interval 1 week`. Months and years have no fixed length."""
    rest = text.strip().lower()
    rest = rest.removeprefix("interval").strip()
    total, at = Fraction(0), 0
    while term := _TERM.match(rest, at):
        if term[2] not in _UNITS:
            break
        total += Fraction(term[1]) * _UNITS[term[2]]
        at = term.end()
    if not rest or at != len(rest) or total < 0:
        raise UsageError(
            f"The table property {name} is {text[:60]!r}, which is no interval of weeks, days, hours or less.",
            hint=f"Set {name} to an interval such as 'interval 7 days'.",
            property=name,
        )
    return int(total)


def _flag(properties: Properties, name: str, default: bool) -> bool:
    return properties.get(name, str(default)).strip().lower() == "true"


def _whole(properties: Properties, name: str) -> int | None:
    text = properties.get(name, "").strip()
    return int(text) if re.fullmatch(r"\d{1,18}", text, re.ASCII) else None
