"""From the fields of one action to its value. Whatever is wrong raises `Refused`; the caller knows file and line."""

from __future__ import annotations

import re
from collections.abc import Callable

import orjson

from mainstem.deltalog.fields import (
    INT32_MAX,
    INT64_MAX,
    SURROGATE,
    Refused,
    Texts,
    Values,
    boolean,
    dv_id_of,
    integer,
    json_object,
    json_strings,
    missing,
    path_of,
    required,
    size_of,
    soft_text,
    string,
    timestamp,
)
from mainstem.deltalog.jsontext import last_text
from mainstem.deltalog.layout import COLUMNS, Kind, extra_of
from mainstem.identity import app_key, bucket_and_key
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
    draft_of,
)

_NUM_RECORDS = re.compile(r'\{"numRecords":(\d{1,18})[,}]')


_ADD = draft_of(AddFile)
_REMOVE = draft_of(RemoveFile)
# The keys of almost every add: all of them have columns, in the usual order, and are looked at one by one below.
_COMMON_ADD = ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats")


def add_file(values: Values, texts: Texts, seq: int, root: str) -> AddFile:
    # Most lines of most logs come here. What is as it should be is taken in place; a call is made only for the rest.
    path = values.get("path")
    if type(path) is not str or not path or ".." in path or "%" in path or "\0" in path:
        path = path_of(values)
    size = values.get("size")
    if type(size) is not int or not 0 <= size <= INT64_MAX:
        size = required(size_of(values), "size")
    changed = values.get("dataChange")
    if type(changed) is not bool:
        changed = required(boolean(values, "dataChange"), "dataChange")
    modified = values.get("modificationTime")
    if type(modified) is not int or not 0 <= modified <= INT64_MAX:
        modified = required(integer(values, "modificationTime"), "modificationTime")
    stats = values.get("stats")
    if type(stats) is not str or "\0" in stats:
        stats = string(values, "stats")
    partition = json_object(values, texts, "partitionValues") or missing("partitionValues")
    records = None if stats is None else num_records(stats)
    if stats is not None and tuple(values) == _COMMON_ADD:
        bucket, key = bucket_and_key(path, None, root)
        add = _ADD(seq, path, bucket, key, None, size, partition, stats, changed, modified, num_records=records)
    else:
        dv_id = dv_id_of(values) if "deletionVector" in values else None
        bucket, key = bucket_and_key(path, dv_id, root)
        add = _ADD(
            seq,
            path,
            bucket,
            key,
            dv_id,
            size,
            partition,
            stats,
            changed,
            modified,
            json_object(values, texts, "tags") if "tags" in values else None,
            None if dv_id is None else json_object(values, texts, "deletionVector"),
            integer(values, "baseRowId") if "baseRowId" in values else None,
            integer(values, "defaultRowCommitVersion") if "defaultRowCommitVersion" in values else None,
            string(values, "clusteringProvider") if "clusteringProvider" in values else None,
            records,
            extra_of("add", values, texts),
        )
    add.__class__ = AddFile
    return add


def remove_file(values: Values, texts: Texts, seq: int, root: str) -> RemoveFile:
    path = path_of(values)
    dv_id = dv_id_of(values) if "deletionVector" in values else None
    bucket, key = bucket_and_key(path, dv_id, root)
    remove = _REMOVE(
        seq,
        path,
        bucket,
        key,
        dv_id,
        integer(values, "deletionTimestamp"),
        required(boolean(values, "dataChange"), "dataChange"),
        boolean(values, "extendedFileMetadata"),
        json_object(values, texts, "partitionValues"),
        size_of(values),
        string(values, "stats") if "stats" in values else None,
        json_object(values, texts, "tags") if "tags" in values else None,
        integer(values, "baseRowId") if "baseRowId" in values else None,
        integer(values, "defaultRowCommitVersion") if "defaultRowCommitVersion" in values else None,
        None if dv_id is None else json_object(values, texts, "deletionVector"),
        extra_of("remove", values, texts),
    )
    remove.__class__ = RemoveFile
    return remove


def cdc_file(values: Values, texts: Texts, seq: int, root: str) -> CdcFile:
    return CdcFile(
        seq,
        path_of(values),
        required(json_object(values, texts, "partitionValues"), "partitionValues"),
        required(size_of(values), "size"),
        required(boolean(values, "dataChange"), "dataChange"),
        json_object(values, texts, "tags"),
        extra_of("cdc", values, texts),
    )


def metadata(values: Values, texts: Texts, seq: int, root: str) -> Metadata:
    # Delta's own reader fills in all but the id, and its golden tables leave out the schema.
    return Metadata(
        seq,
        required(string(values, "id"), "id"),
        string(values, "name"),
        string(values, "description"),
        json_object(values, texts, "format"),
        string(values, "schemaString"),
        json_strings(values, texts, "partitionColumns"),
        json_object(values, texts, "configuration"),
        integer(values, "createdTime"),
        extra_of("metaData", values, texts),
    )


def protocol(values: Values, texts: Texts, seq: int, root: str) -> Protocol:
    return Protocol(
        seq,
        required(integer(values, "minReaderVersion", 0, INT32_MAX), "minReaderVersion"),
        required(integer(values, "minWriterVersion", 0, INT32_MAX), "minWriterVersion"),
        json_strings(values, texts, "readerFeatures"),
        json_strings(values, texts, "writerFeatures"),
        extra_of("protocol", values, texts),
    )


def txn(values: Values, texts: Texts, seq: int, root: str) -> Txn:
    app_id = required(string(values, "appId"), "appId")
    return Txn(
        seq,
        app_id,
        app_key(app_id),
        required(integer(values, "version"), "version"),
        integer(values, "lastUpdated"),
        extra_of("txn", values, texts),
    )


def domain_metadata(values: Values, texts: Texts, seq: int, root: str) -> DomainMetadata:
    domain = required(string(values, "domain"), "domain")
    return DomainMetadata(
        seq,
        domain,
        app_key(domain),
        required(string(values, "configuration"), "configuration"),
        required(boolean(values, "removed"), "removed"),
        extra_of("domainMetadata", values, texts),
    )


def commit_info(values: Values, body: str, *, exact: bool) -> CommitInfo:
    """Provenance is kept whole and believed little: what is not of the expected type is only not read out.

    `exact` promises that orjson writes the very text that was there.
    """
    parameters = None
    if type(values.get("operationParameters")) is dict:
        parameters = (
            orjson.dumps(values["operationParameters"]).decode() if exact else last_text(body, "operationParameters")
        )
    return CommitInfo(
        COMMIT_INFO_SEQ,
        body,
        timestamp(values, "timestamp"),
        timestamp(values, "inCommitTimestamp"),
        soft_text(values, "operation"),
        parameters,
        soft_text(values, "userName"),
        soft_text(values, "engineInfo"),
        soft_text(values, "txnId"),
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
        if column.kind is Kind.TEXT and text is not None and SURROGATE.search(text):
            raise Refused(f"{column.key} contains a lone surrogate, which is not text")


def refuse_odd_name(name: str) -> None:
    """The name of an unknown action becomes a column, too."""
    if "\0" in name or SURROGATE.search(name):
        raise Refused("the name of the action contains U+0000 or a lone surrogate")
