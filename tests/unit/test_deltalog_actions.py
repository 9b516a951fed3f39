"""Lines of a commit to actions: what is kept, what is derived, and what is refused with file and line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mainstem.deltalog import iter_commit, parse_commit, serialize_commit
from mainstem.deltalog.bodies import num_records
from mainstem.errors import CorruptLog
from mainstem.model import (
    Action,
    AddFile,
    CdcFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    OtherAction,
    Protocol,
    RemoveFile,
    Txn,
)

FILE = "00000000000000000003.json"
ADD = '{"add":{"path":"p","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true%s}}'


def parse(*lines: str | bytes) -> list[Action]:
    data = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    return parse_commit(data, file=FILE, table_root="/t")


def add(**fields: Any) -> str:
    base = {"path": "p", "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True}
    return json.dumps({"add": {**base, **fields}}, separators=(",", ":"))


def refused(*lines: str | bytes, line: int = 1) -> str:
    with pytest.raises(CorruptLog) as caught:
        parse(*lines)
    assert caught.value.details["file"] == FILE
    assert caught.value.details["line"] == line
    assert f"{FILE}, line {line}" in caught.value.message
    return caught.value.message


def test_every_field_of_an_add_has_its_column() -> None:
    dv = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    stats = '{"numRecords":7,"minValues":{"a":1}}'
    [action] = parse(
        add(
            partitionValues={"d": None, "e": "x"},
            stats=stats,
            tags={"k": "v"},
            deletionVector=dv,
            baseRowId=5,
            defaultRowCommitVersion=6,
            clusteringProvider="liquid",
        )
    )
    assert isinstance(action, AddFile)
    assert action.seq == 1
    assert (action.path, action.size_bytes, action.modification_time, action.data_change) == ("p", 1, 2, True)
    assert action.partition_values == '{"d":null,"e":"x"}'
    assert (action.stats, action.num_records) == (stats, 7)
    assert (action.tags, action.dv_id) == ('{"k":"v"}', "uab^-aqEH.-t@S}K{vb[*k^@4")
    assert json.loads(action.deletion_vector or "") == dv
    assert (action.base_row_id, action.default_row_commit_version, action.clustering_provider) == (5, 6, "liquid")
    assert action.extra is None


def test_every_other_action_has_its_type() -> None:
    actions = parse(
        '{"remove":{"path":"p","deletionTimestamp":9,"dataChange":false}}',
        '{"cdc":{"path":"_change_data/c","partitionValues":{},"size":3,"dataChange":false}}',
        '{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"partitionColumns":["a"],"configuration":{}}}',
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["x"],"writerFeatures":["x"]}}',
        '{"txn":{"appId":"app","version":4,"lastUpdated":5}}',
        '{"domainMetadata":{"domain":"delta.x","configuration":"{}","removed":true}}',
        '{"commitInfo":{"timestamp":1,"operation":"WRITE","operationParameters":{"mode":"Append"},"txnId":"u"}}',
        '{"futureAction":[1,2]}',
    )
    assert [type(action) for action in actions] == [
        CommitInfo,
        RemoveFile,
        CdcFile,
        Metadata,
        Protocol,
        Txn,
        DomainMetadata,
        OtherAction,
    ]
    assert [action.seq for action in actions] == list(range(8))
    info = actions[0]
    assert isinstance(info, CommitInfo)
    assert (info.timestamp, info.operation, info.operation_params, info.txn_id) == (
        1,
        "WRITE",
        '{"mode":"Append"}',
        "u",
    )
    assert actions[-1] == OtherAction(7, "futureAction", "[1,2]")


def test_what_has_no_column_survives_in_extra() -> None:
    line = (
        '{"add":{"size":1,"path":"p","newField":{"z":1e400,"a":[1.0]},"partitionValues":{},"stats":null,'
        '"modificationTime":2,"dataChange":true}}'
    )
    [action] = parse(line)
    assert isinstance(action, AddFile)
    assert action.extra is not None
    assert '"newField":{"z":1e400,"a":[1.0]}' in action.extra
    assert serialize_commit([action]).decode() == line + "\n"


@pytest.mark.parametrize(
    "line",
    [
        ADD % ',"stats":null,"tags":null,"deletionVector":null,"baseRowId":null',
        ADD % ',"x":123456789012345678901234567890',
        ADD % ',"x":-0.0,"y":1E5,"z":-0,"w":1e200000,"v":0.1e-400',
        ADD % r',"x":"\ud800"',
        ADD % r',"x":"\u0000"',
        ADD % r',"k\u0000\udc00":1',
        ADD % ',"x":{"a":1,"a":2}',
        ADD % (',"x":"' + "é☃🦎" + '"'),
        ADD % ',"tags":{"a" : "b"}',
        r'{"add":{"path":"p","partitionValues":{"a":"\u0000\ud800"},"size":1,"modificationTime":2,"dataChange":true}}',
        r'{"commitInfo":{"x":NULL}}'.replace("NULL", '"\\u0000\\ud800",  "big":1e400,"y":{"a":1,"a":2}'),
        r'{"futureAction":{"x":"\ud800\u0000","n":1e200000}}',
    ],
)
def test_odd_values_come_back_letter_by_letter(line: str) -> None:
    actions = parse(line)
    written = serialize_commit(actions)
    assert parse(written) == actions
    assert serialize_commit(parse(written)) == written
    assert _loose(written.decode()) == _loose(line)


def _loose(text: str) -> Any:
    return json.loads(text, parse_int=lambda n: ("int", n), parse_float=lambda n: ("float", n), object_pairs_hook=list)


@pytest.mark.parametrize("number", ["1e400", "1e200000", "NaN", "123456789012345678901234567890", "-0.0", "1" * 5000])
def test_statistics_are_text_and_kept_whatever_numbers_they_hold(number: str) -> None:
    stats = '{"minValues":{"a":' + number + '},"numRecords":' + number + "}"
    [action] = parse(add(stats=stats))
    assert isinstance(action, AddFile)
    assert action.stats == stats
    assert action.num_records is None


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        ('{"numRecords":12}', 12),
        ('{"minValues":{"numRecords":3},"numRecords":12}', 12),
        ('{ "numRecords" : 12 }', 12),
        ('{"numRecords":9223372036854775807}', 2**63 - 1),
        ('{"numRecords":9223372036854775808}', None),
        ('{"numRecords":-1}', None),
        ('{"numRecords":12.0}', None),
        ('{"numRecords":"12"}', None),
        ('{"minValues":{"numRecords":3}}', None),
        ("[12]", None),
        ("", None),
        ("broken", None),
    ],
)
def test_num_records_is_known_only_where_statistics_say_a_whole_number(stats: str, expected: int | None) -> None:
    assert num_records(stats) == expected


def test_a_line_may_be_written_with_blanks_and_windows_line_ends() -> None:
    spaced = json.dumps(json.loads(add(partitionValues={"a": "b"})))
    [one], [two] = parse(spaced), parse(spaced + "\r", "", "  ")
    assert isinstance(one, AddFile)
    assert one.partition_values == '{"a": "b"}'
    assert one == two


def test_nulls_of_other_actions_on_a_line_are_dropped() -> None:
    assert parse('{"txn":{"appId":"a","version":1},"add":null}') == parse('{"txn":{"appId":"a","version":1}}')


def test_a_second_commit_info_is_carried_along() -> None:
    actions = parse(add(), '{"commitInfo":{"operation":"A"}}', '{"commitInfo":{"operation":"B"}}')
    assert [type(action) for action in actions] == [CommitInfo, AddFile, OtherAction]
    assert parse(serialize_commit(actions)) == actions


def test_a_commit_may_arrive_in_chunks_of_any_size() -> None:
    data = "\n".join(add(path=f"p{n}") for n in range(20)).encode()
    whole = parse(data)
    for size in (1, 7, 100):
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        assert list(iter_commit(chunks, file=FILE, table_root="/t")) == whole


def test_a_path_of_3000_bytes_is_accepted() -> None:
    [action] = parse(add(path="x" * 3000))
    assert isinstance(action, AddFile)


def test_an_absolute_path_is_legal() -> None:
    assert len(parse(add(path="file:/etc/passwd"), add(path="s3://other/bucket/x"))) == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (add() + "x", "after the object"),
        (add() + add(), "after the object"),
        (add()[:-1], "was expected"),
        ('{"add":', ""),
        ("[]", "an object was expected"),
        ("3", "an object was expected"),
        ("{}", "no action"),
        ('{"add":null}', "no action"),
        ('{"add":{},"remove":{}}', "several actions"),
        ('{"add":1}', "must be an object"),
        ('{"commitInfo":"x"}', "must be an object"),
        ('{"add":{"path":"a","path":"b"}}', "appears twice"),
        ('{"txn":{"appId":"a","version":1},"txn":{"appId":"a","version":1}}', "appears twice"),
        (add().replace('"partitionValues":{}', '"partitionValues":{"a":"1","a":"2"}'), "appears twice"),
        (ADD % ',"x":NaN', "NaN is not JSON"),
        (ADD % ',"x":Infinity', "not JSON"),
        (add(path=None), "path is missing"),
        (add(path=""), "path is missing"),
        (add(path=1), "path must be a string"),
        (add(path="../x"), "leads out"),
        (add(path="%2e%2e%2fx"), "leads out"),
        (add(size=None), "size is missing"),
        (add(size=-1), "size is negative"),
        (add(size=2**63), "64 bits"),
        (add(size=10**30), "64 bits"),
        (add(size=1.5), "whole number"),
        (ADD.replace('"size":1', '"size":1e400') % "", "64 bits"),
        (add(size="1"), "whole number"),
        (add(size=True), "whole number"),
        (add(modificationTime=2**64), "64 bits"),
        (add(modificationTime=None), "modificationTime is missing"),
        (add(dataChange=None), "dataChange is missing"),
        (add(dataChange="true"), "true or false"),
        (add(partitionValues=None), "partitionValues is missing"),
        (add(partitionValues=[]), "must be an object"),
        (add(stats={"numRecords": 1}), "must be a string"),
        (add(path="a\0b"), r"U\+0000"),
        (add(stats="a\0b"), r"U\+0000"),
        (add(path="a\ud800b"), "surrogate"),
        (add(stats="\udfff"), "surrogate"),
        (add(deletionVector={"storageType": "u"}), "deletionVector lacks"),
        (add(deletionVector="u"), "must be an object"),
        (add(deletionVector={"storageType": "u", "pathOrInlineDv": "../" + "x" * 20}), "leads out"),
        (add(deletionVector={"storageType": "i", "pathOrInlineDv": "x", "offset": -1}), "offset is negative"),
        (add(deletionVector={"storageType": "i", "pathOrInlineDv": "\0"}), r"U\+0000"),
        ('{"txn":{"appId":"a","version":9223372036854775808}}', "64 bits"),
        ('{"txn":{"version":1}}', "appId is missing"),
        ('{"protocol":{"minReaderVersion":99999999999,"minWriterVersion":2}}', "32 bits"),
        ('{"protocol":{"minReaderVersion":1}}', "minWriterVersion is missing"),
        (
            '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[1],"writerFeatures":[]}}',
            "array of strings",
        ),
        ('{"metaData":{"format":{}}}', "id is missing"),
        ('{"domainMetadata":{"domain":"d","configuration":"c"}}', "removed is missing"),
        ('{"commitInfo":{"inCommitTimestamp":123456789012345678901234567890}}', "64 bits"),
        (r'{"a\u0000b":{}}', "name of the action"),
        (r'{"a\ud800b":{}}', "name of the action"),
        ('{"a\tb":{}}', ""),
    ],
)
def test_what_the_protocol_does_not_allow_is_refused_with_file_and_line(line: str, why: str) -> None:

    assert re.search(why, refused(add(), line, line=2))


def test_pretty_printed_json_is_refused() -> None:
    refused(json.dumps(json.loads(add()), indent=2))


def test_an_empty_commit_file_is_a_torn_write() -> None:
    assert "torn write" in refused(b"")
    assert "torn write" in refused("\n \n")


def test_a_byte_order_mark_is_refused() -> None:
    assert "byte order mark" in refused(b"\xef\xbb\xbf" + add().encode())


def test_invalid_utf8_is_refused_with_its_offset_in_the_file() -> None:
    first = add().encode()
    with pytest.raises(CorruptLog, match=f"at byte {len(first) + 1 + 16} of the file") as caught:
        parse(first, b'{"add":{"path":"\xff"}}')
    assert caught.value.details["offset"] == len(first) + 17
    assert caught.value.details["line"] == 2


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_without_end_is_refused_and_does_not_crash(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    deep = opening * 100_000 + "1" + closing * 100_000
    assert "nested" in refused('{"futureAction":' + deep + "}")
    assert "nested" in refused('{"futureAction":' + opening * 100_000)
    assert "nested" in refused(ADD % f',"x":{deep}')


def test_brackets_inside_of_strings_are_no_nesting() -> None:
    [action] = parse(ADD % (',"x" : "' + "[" * 5000 + r"\"" + '"'))
    assert serialize_commit([action])


def test_nesting_of_254_is_read_both_ways() -> None:
    deep = "[" * 253 + "]" * 253
    assert parse('{"f":' + deep + "}") == [OtherAction(1, "f", deep)]
    assert parse('{"f": ' + deep + "}") == [OtherAction(1, "f", deep)]
    refused('{"f":[' + deep + "]}")
    refused('{"f": [' + deep + "]}")


def test_a_line_above_the_bound_is_refused_before_it_is_read_whole() -> None:
    pulled = 0

    def endless() -> Any:
        nonlocal pulled
        while True:
            pulled += 1
            yield b"x" * 1000

    with pytest.raises(CorruptLog, match="longer than 10000 bytes"):
        list(iter_commit(endless(), file=FILE, table_root="/t", max_line_bytes=10_000))
    assert pulled < 20


def test_a_million_partition_values_are_kept() -> None:
    values = {str(n): "v" for n in range(1_000_000)}
    [action] = parse(add(partitionValues=values))
    assert isinstance(action, AddFile)
    assert json.loads(action.partition_values) == values


@pytest.mark.parametrize("name", ["metaData", "protocol"])
def test_a_commit_changes_metadata_and_protocol_at_most_once(name: str) -> None:
    line = {
        "metaData": '{"metaData":{"id":"i"}}',
        "protocol": '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}',
    }[name]
    assert "a second" in refused(line, line, line=2)


def test_an_error_tells_nothing_of_the_line_but_what_is_wrong() -> None:
    assert "s3cr3t" not in refused('{"add":{"path":"s3cr3t","size":"x"}} trailing')
