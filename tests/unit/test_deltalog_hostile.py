"""Input that must not hurt, read from a log on disk as an import reads it. Single lines: `test_deltalog_actions`."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mainstem.deltalog import iter_commit, parse_commit, serialize_commit
from mainstem.deltalog.files import LogDirectory
from mainstem.errors import CorruptLog
from mainstem.model import Action, AddFile, CommitInfo, DomainMetadata, Metadata, Txn

FILE = "00000000000000000000.json"
MEGABYTE = 1024 * 1024
ODD_NAMES = [
    'a"; drop table x;--',
    "' OR 1=1 --",
    "two\nlines\r\n",
    "\U0001f600 é \u2028 \u202e",
    "\\ \\u0041 %s :id $1 {x}",
    "x" * 1000,
    "\x01\x1f\x7f",
]


def read(tmp_path: Path, content: bytes) -> list[Action]:
    folder = tmp_path / "_delta_log"
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_bytes(content)
    log = LogDirectory.open(str(tmp_path))
    return list(iter_commit(log.stream(0), file=FILE, table_root=log.root))


def line(name: str, /, **fields: Any) -> bytes:
    return json.dumps({name: fields}, separators=(",", ":")).encode()


def add(**fields: Any) -> bytes:
    base = {"path": "p", "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True}
    return line("add", **{**base, **fields})


def test_a_line_of_a_gigabyte_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    with (tmp_path / "_delta_log" / FILE).open("wb") as file:
        file.write(add() + b"\n")
        file.truncate(1024 * MEGABYTE)  # a hole: no disk is used, and it is read as zeros
    log = LogDirectory.open(str(tmp_path))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptLog, match=f"{FILE}, line 2: the line is longer than"):
            list(iter_commit(log.stream(0), file=FILE, table_root=log.root))
        assert tracemalloc.get_traced_memory()[1] < 150 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_many_lines_are_read_in_memory_of_a_chunk_and_not_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    block = (add(stats="x" * 10_000) + b"\n") * 1000
    with (tmp_path / "_delta_log" / FILE).open("wb") as file:
        for _ in range(8):
            file.write(block)
    log = LogDirectory.open(str(tmp_path))
    tracemalloc.start()
    try:
        assert sum(1 for _ in iter_commit(log.stream(0), file=FILE, table_root=log.root)) == 8000
        assert tracemalloc.get_traced_memory()[1] < 50 * MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "where", "why"),
    [
        (b"", 1, "torn write"),
        (b"\n\n", 1, "torn write"),
        (b"\0" * 4096, 1, "an object was expected"),
        (add() + b"\n" + add()[:40], 2, ""),
        (add() + b"\n" + b"\0" * 100, 2, "an object was expected"),
        (b"\xef\xbb\xbf" + add(), 1, "byte order mark"),
        (add().decode().encode("utf-16"), 1, "invalid UTF-8 at byte 0"),
        (add() + b"\n" + add() + b" " + add(), 2, "something after the object"),
        (add() + b"\r" + add(), 1, "something after the object"),
        (add() + b"\n" + add(path="caf\xe9").decode("unicode_escape").encode("latin-1"), 2, "invalid UTF-8 at byte"),
        (b"<html>404</html>", 1, "an object was expected"),
        (add(path="a/../../etc/x"), 1, "leads out of the table"),
        (add(path="%2E%2e/x"), 1, "leads out of the table"),
        (add(path="a/%2e%2e/%2e%2e/x"), 1, "leads out of the table"),
        (line("cdc", path="../x", partitionValues={}, size=1, dataChange=False), 1, "leads out of the table"),
        (line("remove", path="x/../../y", dataChange=True), 1, "leads out of the table"),
    ],
)
def test_a_torn_or_foreign_file_is_refused_with_file_and_line(
    tmp_path: Path, content: bytes, where: int, why: str
) -> None:
    with pytest.raises(CorruptLog) as caught:
        read(tmp_path, content)
    assert (caught.value.details["file"], caught.value.details["line"]) == (FILE, where)
    assert why in caught.value.message


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_and_values_of_any_kind_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    content = b"\n".join(
        [
            line("commitInfo", userName=name, operation=name, operationParameters={name: name}),
            line(
                "metaData", id=name, name=name, schemaString=name, partitionColumns=[name], configuration={name: name}
            ),
            line("txn", appId=name, version=1),
            line("domainMetadata", domain=name, configuration=name, removed=False),
            add(path=name, partitionValues={name: name}, tags={name: name}, stats=name),
        ]
    )
    info, metadata, txn, domain, file = read(tmp_path, content)
    assert isinstance(info, CommitInfo)
    assert (info.user_name, info.operation, json.loads(info.operation_params or "")) == (name, name, {name: name})
    assert isinstance(metadata, Metadata)
    assert (metadata.name, json.loads(metadata.partition_columns or "")) == (name, [name])
    assert isinstance(txn, Txn)
    assert txn.app_id == name
    assert isinstance(domain, DomainMetadata)
    assert domain.configuration == name
    assert isinstance(file, AddFile)
    assert (file.path, file.stats, json.loads(file.partition_values)) == (name, name, {name: name})
    written = serialize_commit([info, metadata, txn, domain, file])
    assert [json.loads(text) for text in written.split(b"\n")[:-1]] == [json.loads(x) for x in content.split(b"\n")]


def test_parameters_of_an_operation_are_verbatim_whatever_numbers_they_hold() -> None:
    parameters = '{"a":1e400,"b":123456789012345678901234567890,"c":"\\ud800\\u0000","d":1.50}'
    body = f'{{"operationParameters":{{}},"x":-0,"operationParameters":{parameters}}}'
    [info] = parse_commit(f'{{"commitInfo":{body}}}'.encode(), file=FILE, table_root="/t")
    assert isinstance(info, CommitInfo)
    assert (info.body, info.operation_params) == (body, parameters)


def test_a_carriage_return_between_tokens_does_not_reach_a_written_line() -> None:
    content = b'{"add":{"path":"p","partitionValues":{\r"a":"1"},"size":1,"modificationTime":2,"dataChange":true}}\r\n'
    actions = parse_commit(content, file=FILE, table_root="/t")
    written = serialize_commit(actions)
    assert b"\r" not in written
    assert json.loads(written) == json.loads(content)


@pytest.mark.parametrize("number", ["9" * 1_000_000, "0." + "3" * 1_000_000, "1e" + "9" * 1000, "-" + "1" * 5000])
def test_a_number_of_a_million_digits_is_carried_along(number: str) -> None:
    content = f'{{"future":{{"n":{number}}}}}'.encode()
    assert serialize_commit(parse_commit(content, file=FILE, table_root="/t")) == content + b"\n"


def test_an_escape_of_a_zero_or_half_a_pair_stays_where_text_is_verbatim() -> None:
    content = add(partitionValues={"a": "\0", "b": "\ud800"}, tags={"t": "\udfff\0"})
    [action] = parse_commit(content, file=FILE, table_root="/t")
    assert isinstance(action, AddFile)
    assert (action.partition_values, action.tags) == ('{"a":"\\u0000","b":"\\ud800"}', '{"t":"\\udfff\\u0000"}')
    assert serialize_commit([action]) == content + b"\n"


def test_an_absolute_path_is_read_as_it_is(tmp_path: Path) -> None:
    paths = ["file:/etc/passwd", "s3://other/bucket/x", "/elsewhere/../x", "abfss://c@a.dfs.core.windows.net/x"]
    actions = read(tmp_path, b"\n".join(add(path=path) for path in paths))
    assert [action.path for action in actions if isinstance(action, AddFile)] == paths


def test_reading_a_log_changes_nothing_in_it(tmp_path: Path) -> None:
    read(tmp_path, add())
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text("broken")
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    log = LogDirectory.open(str(tmp_path))
    log.last_checkpoint_hint(log.list())
    list(iter_commit(log.stream(0), file=FILE, table_root=log.root))
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
