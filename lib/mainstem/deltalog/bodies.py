"""From the fields of one action to its value, each field checked: types, 64 bits, text that a database can hold.

`values` are the decoded fields. `texts` are their own slices of the line; None if orjson writes the very same text.
Whatever is wrong raises `Refused`; who called knows the file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import orjson

from mainstem.deltalog.jsontext import BigNumber
from mainstem.deltalog.layout import COLUMNS, Kind, extra_of
from mainstem.errors import CorruptLog
from mainstem.identity import app_key, canonical_path, dv_unique_id, file_key, path_bucket, refuse_escape
from mainstem.model import (
    COMMIT_INFO_SEQ,
    Action,
    AddFile,
    CdcFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)

Values = dict[str, Any]
Texts = dict[str, str] | None

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
_DV_UUID_LENGTH = 20  # of a `u` deletion vector: what stands before it is a folder
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUM_RECORDS = re.compile(r'\{"numRecords":(\d{1,18})[,}]')


class Refused(ValueError):
    """A field that the protocol, or a database, does not allow."""


def add_file(values: Values, texts: Texts, seq: int, root: str) -> AddFile:
    # Most lines of most logs come here. What is as it should be is taken in place; a call is made only for the rest.
    path = values.get("path")
    if type(path) is not str or not path or ".." in path or "%" in path or "\0" in path:
        path = _path(values)
    size = values.get("size")
    if type(size) is not int or not 0 <= size <= INT64_MAX:
        size = _required(_size(values), "size")
    changed = values.get("dataChange")
    if type(changed) is not bool:
        changed = _required(_boolean(values, "dataChange"), "dataChange")
    modified = values.get("modificationTime")
    if type(modified) is not int or not 0 <= modified <= INT64_MAX:
        modified = _required(_integer(values, "modificationTime"), "modificationTime")
    stats = values.get("stats")
    if type(stats) is not str or "\0" in stats:
        stats = _text(values, "stats")
    dv_id = _dv_id(values) if "deletionVector" in values else None
    canonical = canonical_path(path, root)
    return AddFile(
        seq,
        path,
        path_bucket(canonical),
        file_key(canonical, dv_id),
        dv_id,
        size,
        _object(values, texts, "partitionValues") or _missing("partitionValues"),
        stats,
        changed,
        modified,
        _object(values, texts, "tags") if "tags" in values else None,
        None if dv_id is None else _object(values, texts, "deletionVector"),
        _integer(values, "baseRowId") if "baseRowId" in values else None,
        _integer(values, "defaultRowCommitVersion") if "defaultRowCommitVersion" in values else None,
        _text(values, "clusteringProvider") if "clusteringProvider" in values else None,
        None if stats is None else num_records(stats),
        extra_of("add", values, texts),
    )


def remove_file(values: Values, texts: Texts, seq: int, root: str) -> RemoveFile:
    path = _path(values)
    dv_id = _dv_id(values)
    canonical = canonical_path(path, root)
    return RemoveFile(
        seq,
        path,
        path_bucket(canonical),
        file_key(canonical, dv_id),
        dv_id,
        _integer(values, "deletionTimestamp"),
        _required(_boolean(values, "dataChange"), "dataChange"),
        _boolean(values, "extendedFileMetadata"),
        _object(values, texts, "partitionValues"),
        _size(values),
        _text(values, "stats"),
        _object(values, texts, "tags"),
        _integer(values, "baseRowId"),
        _integer(values, "defaultRowCommitVersion"),
        None if dv_id is None else _object(values, texts, "deletionVector"),
        extra_of("remove", values, texts),
    )


def cdc_file(values: Values, texts: Texts, seq: int, root: str) -> CdcFile:
    return CdcFile(
        seq,
        _path(values),
        _required(_object(values, texts, "partitionValues"), "partitionValues"),
        _required(_size(values), "size"),
        _required(_boolean(values, "dataChange"), "dataChange"),
        _object(values, texts, "tags"),
        extra_of("cdc", values, texts),
    )


def metadata(values: Values, texts: Texts, seq: int, root: str) -> Metadata:
    # Delta's own reader fills in all but the id, and its golden tables leave out the schema.
    return Metadata(
        seq,
        _required(_text(values, "id"), "id"),
        _text(values, "name"),
        _text(values, "description"),
        _object(values, texts, "format"),
        _text(values, "schemaString"),
        _strings(values, texts, "partitionColumns"),
        _object(values, texts, "configuration"),
        _integer(values, "createdTime"),
        extra_of("metaData", values, texts),
    )


def protocol(values: Values, texts: Texts, seq: int, root: str) -> Protocol:
    return Protocol(
        seq,
        _required(_integer(values, "minReaderVersion", 0, INT32_MAX), "minReaderVersion"),
        _required(_integer(values, "minWriterVersion", 0, INT32_MAX), "minWriterVersion"),
        _strings(values, texts, "readerFeatures"),
        _strings(values, texts, "writerFeatures"),
        extra_of("protocol", values, texts),
    )


def txn(values: Values, texts: Texts, seq: int, root: str) -> Txn:
    app_id = _required(_text(values, "appId"), "appId")
    return Txn(
        seq,
        app_id,
        app_key(app_id),
        _required(_integer(values, "version"), "version"),
        _integer(values, "lastUpdated"),
        extra_of("txn", values, texts),
    )


def domain_metadata(values: Values, texts: Texts, seq: int, root: str) -> DomainMetadata:
    domain = _required(_text(values, "domain"), "domain")
    return DomainMetadata(
        seq,
        domain,
        app_key(domain),
        _required(_text(values, "configuration"), "configuration"),
        _required(_boolean(values, "removed"), "removed"),
        extra_of("domainMetadata", values, texts),
    )


def commit_info(values: Values, body: str) -> CommitInfo:
    """Provenance is kept whole and believed little: what is not of the expected type is only not read out."""
    parameters = values.get("operationParameters")
    return CommitInfo(
        COMMIT_INFO_SEQ,
        body,
        _timestamp(values, "timestamp"),
        _timestamp(values, "inCommitTimestamp"),
        _soft_text(values, "operation"),
        _soft_json(parameters) if type(parameters) is dict else None,
        _soft_text(values, "userName"),
        _soft_text(values, "engineInfo"),
        _soft_text(values, "txnId"),
    )


BUILDERS: dict[str, Callable[[Values, Texts, int, str], Action]] = {
    "add": add_file,
    "remove": remove_file,
    "cdc": cdc_file,
    "metaData": metadata,
    "protocol": protocol,
    "txn": txn,
    "domainMetadata": domain_metadata,
}


def num_records(stats: str) -> int | None:
    """The number of records that statistics name; None if they name none that fits 64 bits, or are no JSON."""
    leading = _NUM_RECORDS.match(stats)  # as every known writer has it: no need to parse the rest
    if leading:
        return int(leading[1])
    try:
        parsed = orjson.loads(stats)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    number = parsed.get("numRecords") if type(parsed) is dict else None
    return number if type(number) is int and 0 <= number <= INT64_MAX else None


def refuse_surrogates(name: str, action: Action) -> None:
    """Decoded text goes into text columns, and half of a surrogate pair is not text.

    JSON columns are free of this, as they are of U+0000: their text is verbatim, so an escape stays an escape.
    """
    for column in COLUMNS[name]:
        text = getattr(action, column.attribute)
        if column.kind is Kind.TEXT and text is not None and _SURROGATE.search(text):
            raise Refused(f"{column.key} contains a lone surrogate, which is not text")


def refuse_odd_name(name: str) -> None:
    """The name of an unknown action becomes a column, too."""
    if "\0" in name or _SURROGATE.search(name):
        raise Refused("the name of the action contains U+0000 or a lone surrogate")


def _required(value: Any, key: str) -> Any:
    return _missing(key) if value is None else value


def _missing(key: str) -> NoReturn:
    raise Refused(f"{key} is missing")


def _path(values: Values) -> str:
    path = _text(values, "path")
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


def _dv_id(values: Values) -> str | None:
    vector = values.get("deletionVector")
    if vector is None:
        return None
    if type(vector) is not dict:
        raise Refused("deletionVector must be an object")
    storage, place = _text(vector, "storageType"), _text(vector, "pathOrInlineDv")
    if storage is None or place is None:
        raise Refused("deletionVector lacks storageType or pathOrInlineDv")
    if storage == "u":
        _refuse_escape(place[:-_DV_UUID_LENGTH], "deletion vector's folder")
    _integer(vector, "sizeInBytes", 0)
    _integer(vector, "cardinality", 0)
    return dv_unique_id(storage, place, _integer(vector, "offset", 0))


def _text(values: Values, key: str) -> str | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not str:
        raise Refused(f"{key} must be a string")
    if "\0" in value:
        raise Refused(f"{key} contains U+0000, which a database cannot store as text")
    return value


def _boolean(values: Values, key: str) -> bool | None:
    value = values.get(key)
    if value is None or type(value) is bool:
        return value
    raise Refused(f"{key} must be true or false")


def _size(values: Values) -> int | None:
    return _integer(values, "size", 0)


def _integer(values: Values, key: str, low: int = -INT64_MAX - 1, high: int = INT64_MAX) -> int | None:
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


def _object(values: Values, texts: Texts, key: str) -> str | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not dict:
        raise Refused(f"{key} must be an object")
    if texts is not None:
        return texts[key]
    return orjson.dumps(value).decode() if value else "{}"


def _strings(values: Values, texts: Texts, key: str) -> str | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not list or not all(type(item) is str for item in value):
        raise Refused(f"{key} must be an array of strings")
    return texts[key] if texts is not None else orjson.dumps(value).decode()


def _timestamp(values: Values, key: str) -> int | None:
    value = values.get(key)
    return _integer(values, key) if type(value) in (int, BigNumber) else None


def _soft_text(values: Values, key: str) -> str | None:
    value = values.get(key)
    return value if type(value) is str and "\0" not in value and not _SURROGATE.search(value) else None


def _soft_json(value: Any) -> str | None:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # what orjson cannot write (a huge number, half a surrogate pair) stays in the body alone
        return None
