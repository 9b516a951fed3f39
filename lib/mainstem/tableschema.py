"""A table's schema as its metadata has it, which is JSON text: checked before anyone builds on it, shown to people."""

from __future__ import annotations

from typing import Any

import orjson

from mainstem.errors import CorruptLog


def require_schema(text: str | None, *, table: str, version: int) -> str:
    """The text, if it is the JSON of a schema. Raises CorruptLog if there is none, or it is something else."""
    try:
        found = orjson.loads(text) if text is not None else None
    except orjson.JSONDecodeError:
        found = None
    if text is None or not _is_struct(found):
        raise CorruptLog(
            f"the table {table} has no schema at version {version}"
            f"{'' if text is None else ', but something else in its place'}.",
            hint="Its files can be listed without a predicate. The metaData action of its log is broken.",
            table=table,
            version=version,
        )
    return text


def column_rows(text: str) -> list[tuple[str, str, bool]]:
    """Each column's name, type and whether it may be null."""
    fields = orjson.loads(text)["fields"]
    return [(field["name"], type_name(field["type"]), field.get("nullable", True)) for field in fields]


def type_name(kind: Any) -> str:
    """A type of Delta's schema as Spark's SQL writes it."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "array":
        return f"array<{type_name(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{type_name(kind['keyType'])},{type_name(kind['valueType'])}>"
    if kind["type"] == "struct":
        return f"struct<{','.join(field['name'] + ':' + type_name(field['type']) for field in kind['fields'])}>"
    return str(kind["type"])


def _is_struct(kind: Any) -> bool:
    if not isinstance(kind, dict) or kind.get("type") != "struct" or not isinstance(kind.get("fields"), list):
        return False
    return all(
        isinstance(field, dict) and isinstance(field.get("name"), str) and _is_type(field.get("type"))
        for field in kind["fields"]
    )


def _is_type(kind: Any) -> bool:
    if isinstance(kind, str):
        return True
    if not isinstance(kind, dict) or not isinstance(kind.get("type"), str):
        return False
    if kind["type"] == "array":
        return _is_type(kind.get("elementType"))
    if kind["type"] == "map":
        return _is_type(kind.get("keyType")) and _is_type(kind.get("valueType"))
    return kind["type"] != "struct" or _is_struct(kind)
