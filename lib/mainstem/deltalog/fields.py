"""Single fields of an action, each checked: its type, 64 bits, text that a database can hold.

`values` are the decoded fields. `texts` are their own slices of the line; None if orjson writes the very same text.
Whatever is wrong raises `Refused`; who called knows the file and the line.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import orjson

from mainstem.deltalog.jsontext import BigNumber
from mainstem.errors import CorruptLog
from mainstem.identity import dv_unique_id, refuse_escape

Values = dict[str, Any]
Texts = dict[str, str] | None

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
SURROGATE = re.compile("[\ud800-\udfff]")
_DV_UUID_LENGTH = 20  # of a `u` deletion vector: what stands before it is a folder


class Refused(ValueError):
    """A field that the protocol, or a database, does not allow."""


def required(value: Any, key: str) -> Any:
    return missing(key) if value is None else value


def missing(key: str) -> NoReturn:
    raise Refused(f"{key} is missing")


def path_of(values: Values) -> str:
    path = string(values, "path")
    if not path:
        raise Refused("path is missing or empty")
    if ".." in path or "%" in path:
        _refuse_escape(path, "path")
    return path


def _refuse_escape(path: str, what: str) -> None:
    try:
        refuse_escape(path, file="", what=what)
    except CorruptLog:
        raise Refused(f"the {what} {path[:200]!r} leads out of the table by '..'") from None


def dv_id_of(values: Values) -> str | None:
    vector = values.get("deletionVector")
    if vector is None:
        return None
    if type(vector) is not dict:
        raise Refused("deletionVector must be an object")
    storage, place = string(vector, "storageType"), string(vector, "pathOrInlineDv")
    if storage is None or place is None:
        raise Refused("deletionVector lacks storageType or pathOrInlineDv")
    if storage == "u":
        _refuse_escape(place[:-_DV_UUID_LENGTH], "deletion vector's folder")
    integer(vector, "sizeInBytes", 0)
    integer(vector, "cardinality", 0)
    return dv_unique_id(storage, place, integer(vector, "offset", 0))


def string(values: Values, key: str) -> str | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not str:
        raise Refused(f"{key} must be a string")
    if "\0" in value:
        raise Refused(f"{key} contains U+0000, which a database cannot store as text")
    return value


def boolean(values: Values, key: str) -> bool | None:
    value = values.get(key)
    if value is None or type(value) is bool:
        return value
    raise Refused(f"{key} must be true or false")


def size_of(values: Values) -> int | None:
    return integer(values, "size", 0)


def integer(values: Values, key: str, low: int = -INT64_MAX - 1, high: int = INT64_MAX) -> int | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is int:
        if low <= value <= high:
            return value
        raise Refused(
            f"{key} is negative" if low == 0 > value else f"{key} does not fit {64 if high == INT64_MAX else 32} bits"
        )
    if type(value) is BigNumber or (type(value) is float and abs(value) >= 2.0**63):
        raise Refused(f"{key} does not fit 64 bits")
    raise Refused(f"{key} must be a whole number")


def json_object(values: Values, texts: Texts, key: str) -> str | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not dict:
        raise Refused(f"{key} must be an object")
    if texts is not None:
        return texts[key]
    return orjson.dumps(value).decode() if value else "{}"


def json_strings(values: Values, texts: Texts, key: str) -> str | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not list or not all(type(item) is str for item in value):
        raise Refused(f"{key} must be an array of strings")
    return texts[key] if texts is not None else orjson.dumps(value).decode()


def timestamp(values: Values, key: str) -> int | None:
    value = values.get(key)
    return integer(values, key) if type(value) in (int, BigNumber) else None


def soft_text(values: Values, key: str) -> str | None:
    value = values.get(key)
    return value if type(value) is str and "\0" not in value and not SURROGATE.search(value) else None
