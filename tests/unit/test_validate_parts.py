"""The parts of validation that need neither Spark nor a database."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import orjson
import pyarrow as pa

from mainstem.deltalog.actions import parse_commit
from mainstem.rows import BY_KIND
from mainstem.validate.described import described_differences, of_actions
from mainstem.validate.distributed.commits import ranges
from mainstem.validate.distributed.tasks import (
    AddKeys,
    CheckStatistics,
    HashRecorded,
    LayRecorded,
    ReadActions,
    ReadLines,
    WrongKeys,
)
from mainstem.validate.laid import differences

ADD = '{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true}}'
INFO = '{"commitInfo":{"operation":"WRITE"}}'
PROTOCOL = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'


def parsed(*lines: str) -> list[object]:
    return parse_commit("\n".join(lines).encode(), file="x", table_root="file:///t")


def batch(*rows: dict[str, object]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(list(rows))]


def log_of(folder: Path, *commits: bytes) -> str:
    (folder / "_delta_log").mkdir()
    for version, data in enumerate(commits):
        (folder / "_delta_log" / f"{version:020d}.json").write_bytes(data)
    return str(folder)


def test_versions_in_order_are_runs_without_a_gap() -> None:
    assert ranges([5, 1, 2, 3, 9]) == [(1, 3), (5, 5), (9, 9)]
    assert ranges([]) == []


def test_an_action_that_stands_twice_meets_the_one_that_stands_once() -> None:
    [found] = differences(3, parsed(INFO, ADD, ADD), parsed(INFO, ADD))
    assert (found.check, found.version, found.path) == ("missing_in_log", 3, "a")


def test_a_column_that_differs_is_told_with_both_values() -> None:
    found = list(differences(3, parsed(ADD), parsed(ADD.replace('"size":1', '"size":7'))))
    assert [(each.check, each.column, each.catalog, each.log) for each in found] == [
        ("differs", "size_bytes", "1", "7")
    ]


def test_what_a_table_says_of_itself_is_compared_by_value_not_by_text() -> None:
    metadata = '{"metaData":{"id":"m","format":{},"schemaString":"%s","partitionColumns":[],"configuration":{"a":"b"}}}'
    left = of_actions(parsed(PROTOCOL, metadata % '{\\"type\\":\\"struct\\",\\"fields\\":[]}'))
    right = of_actions(parsed(PROTOCOL, metadata % '{\\"fields\\": [], \\"type\\": \\"struct\\"}'))
    other = of_actions(parsed(PROTOCOL.replace('n":2', 'n":7'), metadata.replace('"b"', '"c"') % "{}"))
    assert left is not None
    assert right is not None
    assert other is not None
    assert list(described_differences(left, right)) == []
    assert {column for column, _, _ in described_differences(left, other)} == {
        "schema_json", "table_properties", "min_writer_version",
    }  # fmt: skip
    assert of_actions(parsed(PROTOCOL)) is None


def test_executors_read_lines_with_the_hash_of_their_file(tmp_path: Path) -> None:
    data = f"{INFO}\n\n{ADD}\n".encode()
    found = pa.Table.from_batches(ReadLines(log_of(tmp_path, data))(batch({"version": 0}, {"version": 1}))).to_pylist()
    assert [row["line"] for row in found if row["line"]] == [INFO.encode(), ADD.encode()]
    assert found[2]["sha256"] == sha256(data).hexdigest()
    assert "is not there" in found[3]["error"]


def test_a_commit_that_cannot_be_read_is_an_answer(tmp_path: Path) -> None:
    location = log_of(tmp_path, f"{ADD}\n".encode(), b'{"add":')
    found = pa.Table.from_batches(ReadActions(location)(batch({"version": 0}, {"version": 1}))).to_pylist()
    assert [(row["name"], row["about"]) for row in found if row["error"] is None] == [("add", "a")]
    assert found[1]["version"] == 1
    assert "line 1" in found[1]["error"]


def test_rows_of_the_catalog_are_laid_out_and_hashed_as_the_log_is(tmp_path: Path) -> None:
    data = f"{INFO}\n{PROTOCOL}\n{ADD}\n".encode()
    rows = [
        {
            "version": 0,
            "seq": 0,
            "kind": "dl_table_versions",
            "values": '{"commit_info":"{\\"operation\\":\\"WRITE\\"}"}',
        }
    ]
    for action in parsed(PROTOCOL, ADD):
        shape = BY_KIND[type(action)]
        values = dict(zip(shape.columns, shape.values(action), strict=True))
        values = {key: value.hex() if isinstance(value, bytes) else value for key, value in values.items()}
        rows.append({"version": 0, "seq": values["seq"], "kind": shape.table, "values": orjson.dumps(values).decode()})
    [found] = pa.Table.from_batches(HashRecorded()(batch(*rows))).to_pylist()
    assert found == {"version": 0, "sha256": sha256(data).hexdigest()}
    ours = pa.Table.from_batches(LayRecorded()(batch(*rows))).to_pylist()
    theirs = pa.Table.from_batches(ReadActions(log_of(tmp_path, data))(batch({"version": 0}))).to_pylist()
    assert ours == theirs


def test_a_key_that_is_not_that_of_its_path_is_found() -> None:
    [keyed] = AddKeys("file:///t")(batch({"path": "a", "dv_id": None}))
    key = keyed.column("file_key")[0].as_py()
    row = {"version": 1, "seq": 1, "path": "a", "dv_id": None, "path_bucket": 67, "file_key": key}
    wrong = {**row, "seq": 2, "file_key": bytes(16)}
    found = pa.Table.from_batches(WrongKeys("file:///t")(batch(row, wrong))).to_pylist()
    assert found == [{"version": 1, "seq": 2}]


def test_statistics_are_looked_at_by_executors_as_by_the_driver() -> None:
    stats = '{"numRecords":3,"minValues":{"a":{"b":5}},"maxValues":{"a":{"b":4}},"nullCount":{"c":4}}'
    rows = [
        {"version": 1, "path": "x", "num_records": 3, "stats": stats},
        {"version": 2, "path": "y", "num_records": None, "stats": None},
    ]
    found = pa.Table.from_batches(CheckStatistics()(batch(*rows))).to_pylist()
    assert [(row["severity"], row["version"], row["column"]) for row in found] == [
        ("error", 1, "c"), ("error", 1, "a.b"), ("warning", 2, None),
    ]  # fmt: skip
