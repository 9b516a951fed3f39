"""The actions of a state that are no files, as plain values: one object a row, keyed by the name of its action.

What stands in a checkpoint is what Delta's schema of it has. Fields that this library does not know (`extra`) and
actions that it does not know have no column there: they stay in the commits and in the catalog. A field of which a
reader must know comes with a table feature, and a table with a feature that we do not know is not written at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from mainstem.chronicle import properties
from mainstem.deltalog.jsontext import decoded
from mainstem.errors import CorruptCatalog
from mainstem.model import DomainMetadata, Metadata, Protocol, Txn

Described = dict[str, dict[str, Any]]


def described(
    protocol: Protocol, metadata: Metadata, transactions: Sequence[Txn], domains: Sequence[DomainMetadata]
) -> list[Described]:
    """The rows in Delta's order, with what leaving a field out means where the log left it out."""
    return [
        {
            "protocol": {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "readerFeatures": _json(protocol.reader_features),
                "writerFeatures": _json(protocol.writer_features),
            }
        },
        {
            "metaData": {
                "id": metadata.metadata_id,
                "name": metadata.name,
                "description": metadata.description,
                "format": _format(metadata.format),
                "schemaString": metadata.schema_json,
                "partitionColumns": _json(metadata.partition_columns) or [],
                "configuration": properties(metadata),
                "createdTime": metadata.created_time,
            }
        },
        *(
            {"txn": {"appId": txn.app_id, "version": txn.txn_version, "lastUpdated": txn.last_updated}}
            for txn in transactions
        ),
        *(
            {"domainMetadata": {"domain": found.domain, "configuration": found.configuration, "removed": False}}
            for found in domains
        ),
    ]


def as_table(rows: Sequence[Described], schema: pa.Schema) -> pa.Table:
    """The rows under the columns of a checkpoint; the columns of other actions are null."""
    try:
        return pa.Table.from_pylist([{name: _pairs(body) for name, body in row.items()} for row in rows], schema=schema)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
        raise _unfit(error) from error


def as_lines(rows: Sequence[Described]) -> bytes:
    """The rows as a JSON checkpoint has them, one a line, without what is null."""
    try:
        return b"".join(orjson.dumps(without_nulls(row)) + b"\n" for row in rows)
    except orjson.JSONEncodeError as error:
        raise _unfit(error) from error


def _unfit(error: Exception) -> CorruptCatalog:
    return CorruptCatalog(f"the table's metadata fits no checkpoint: {error}.", hint="Nothing was written.")


def without_nulls(value: Any) -> Any:
    """The same without the fields that are null, as Delta writes its JSON."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _json(text: str | None) -> Any:
    return None if text is None else decoded(text)


def _format(text: str | None) -> dict[str, Any]:
    found = _json(text) or {}
    options = found.get("options") or {}
    return {
        "provider": found.get("provider", "parquet"),
        "options": {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()},
    }


def _pairs(body: dict[str, Any]) -> dict[str, Any]:
    """Maps as Arrow takes them. Of these actions only the maps from text to text are objects, but for `format`."""
    return {
        key: {"provider": value["provider"], "options": list(value["options"].items())}
        if key == "format"
        else list(value.items())
        if isinstance(value, dict)
        else value
        for key, value in body.items()
    }
