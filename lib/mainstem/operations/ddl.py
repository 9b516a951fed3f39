"""A schema as the columns of a CREATE TABLE: all that it says, or an error that names what SQL cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mainstem.errors import UsageError
from mainstem.operations.sqltexts import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

_GENERATED = "delta.generationExpression"
_DEFAULT = "CURRENT_DEFAULT"
_IDENTITY = "delta.identity."
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
# What another table's schema says of that table's own files; a new table gets its own. A default for rows that are
# there already is for none.
_OF_ANOTHER_TABLE = ("delta.columnMapping.", "delta.typeChanges", "EXISTS_DEFAULT", "__")
_HINT = "Take it out, or give the schema as Delta's JSON: schema.json()."


def ddl(schema: StructType) -> str:
    """The columns as Spark's SQL declares them. Raises UsageError for what it has no words for."""
    return ", ".join(_column(field) for field in schema.fields)


def _column(field: StructField) -> str:
    made = list(_made(field))
    _refuse_unsaid(field, top=True)
    return " ".join([quoted(field.name), _declared(field), *made, *_remarks(field)])


def _made(field: StructField) -> Iterator[str]:
    """How Delta makes values of a column that an INSERT leaves out."""
    said: dict[str, Any] = field.metadata
    if _GENERATED in said:
        yield f"GENERATED ALWAYS AS ({said[_GENERATED]})"
    if f"{_IDENTITY}start" in said:
        how = "BY DEFAULT" if said.get(f"{_IDENTITY}allowExplicitInsert") else "ALWAYS"
        start, step = said[f"{_IDENTITY}start"], said.get(f"{_IDENTITY}step", 1)
        yield f"GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    if _DEFAULT in said:
        yield f"DEFAULT {said[_DEFAULT]}"


def _remarks(field: StructField) -> Iterator[str]:
    if not field.nullable:
        yield "NOT NULL"
    if "comment" in field.metadata:
        yield f"COMMENT {literal(field.metadata['comment'])}"


def _declared(field: StructField) -> str:
    text: str = field.metadata.get(_DECLARED) or _type(field.dataType, field.name)
    return text


def _type(kind: DataType, name: str) -> str:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(_nested(field) for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        _refuse(name, not kind.containsNull, "its elements may not be null")
        return f"ARRAY<{_type(kind.elementType, name)}>"
    if isinstance(kind, MapType):
        _refuse(name, not kind.valueContainsNull, "its values may not be null")
        return f"MAP<{_type(kind.keyType, name)}, {_type(kind.valueType, name)}>"
    return kind.simpleString()


def _nested(field: StructField) -> str:
    _refuse_unsaid(field, top=False)
    return " ".join([f"{quoted(field.name)}:", _declared(field), *_remarks(field)])


def _refuse_unsaid(field: StructField, *, top: bool) -> None:
    made = (_GENERATED, _DEFAULT, _IDENTITY) if top else ()
    for key in field.metadata:
        known = key == "comment" or key.startswith((*made, *_OF_ANOTHER_TABLE))
        _refuse(field.name, not known, f"it has the metadata {key!r}")


def _refuse(name: str, lost: bool, what: str) -> None:
    if lost:
        raise UsageError(
            f"the column {name!r} cannot be created as it is given: {what}, which SQL cannot say.", hint=_HINT
        )
