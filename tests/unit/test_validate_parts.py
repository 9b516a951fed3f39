"""The parts of validation that need neither Spark nor a database."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pytest

from mainstem.deltalog.actions import parse_commit
from mainstem.rows import BY_KIND
from mainstem.validate.data import statistics_of
from mainstem.validate.described import described_differences, of_actions
from mainstem.validate.distributed.commits import ranges
from mainstem.validate.distributed.tasks import (
    AddKeys,
    CheckStatistics,
    CompareFiles,
    HashRecorded,
    LayRecorded,
    PlaceFiles,
    ReadActions,
    ReadLines,
    WrongKeys,
)
from mainstem.validate.laid import differences
from mainstem.validate.livefields import differing
from mainstem.validate.typed import TypedColumns, typed_columns

ADD = '{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true}}'
INFO = '{"commitInfo":{"operation":"WRITE"}}'
PROTOCOL = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'


def parsed(*lines: str) -> list[object]:
    return parse_commit("\n".join(lines).encode(), file="x", table_root="file:///t")


def batch(*rows: dict[str, object]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(list(rows))]


def field(name: str, kind: Any, physical: str | None = None) -> dict[str, Any]:
    metadata = {"delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def columns_of(kinds: Mapping[str, Any], *, physical: Mapping[str, str] | None = None) -> TypedColumns:
    """The columns of a table with these types; with names of their own in the files if the table is mapped."""
    fields = [field(name, kind, (physical or {}).get(name)) for name, kind in kinds.items()]
    mapping = {"delta.columnMapping.mode": "name"} if physical else {}
    described: Any = SimpleNamespace(
        schema_json=json.dumps({"type": "struct", "fields": fields}), partition_columns=[], properties=mapping
    )
    return typed_columns(described)


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
    columns = columns_of({"a": {"type": "struct", "fields": [field("b", "integer")]}, "c": "string"})
    check = pickle.loads(pickle.dumps(CheckStatistics(columns)))
    found = pa.Table.from_batches(check(batch(*rows))).to_pylist()
    assert [(row["severity"], row["version"], row["column"]) for row in found] == [
        ("error", 1, "c"), ("error", 1, "a.b"), ("warning", 2, None),
    ]  # fmt: skip


def wrong(kind: Any, least: Any, most: Any) -> list[str | None]:
    """The columns whose statistics are told to be wrong, of a table of one column `c`."""
    stats = json.dumps({"numRecords": 3, "minValues": {"c": least}, "maxValues": {"c": most}})
    return [found.column for found in statistics_of(1, "x", 3, stats, columns_of({"c": kind}))]


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("double", 2.5, 2), ("integer", 3, 2), ("decimal(38,2)", 1.5, 1.25), ("float", 0.3, 0.1), ("string", "b", "a"),
        ("date", "2026-01-02", "2026-01-01"), ("timestamp", "2026-01-01T02:00:00Z", "2026-01-01T02:00:00+01:00"),
        ("timestamp_ntz", "2026-01-01T02:00:00.001", "2026-01-01T02:00:00.000"), ("long", 10, "9"),
    ],
)  # fmt: skip
def test_a_minimum_above_its_maximum_is_found_by_the_type_of_its_column(kind: str, least: Any, most: Any) -> None:
    assert wrong(kind, least, most) == ["c"]
    assert wrong(kind, most, least) == []


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        # The hour between is there twice: 00:30 in UTC is before 01:10.
        ("timestamp", "2026-10-25T02:30:00.000+02:00", "2026-10-25T02:10:00.000+01:00"),
        ("timestamp", "2026-10-25T02:30:00", "2026-10-25T02:10:00"),
        ("timestamp", "9999-12-31T23:59:59.000Z", "+10000-01-01T00:00:00.000Z"),
        ("timestamp", "2026-01-01T00:00:00.000900Z", "2026-01-01T00:00:00.000Z"),
        ("date", "9999-12-31", "+10000-01-01"), ("date", "b", "a"), ("date", 5, 4),
        ("string", "a" * 32 + "b", "a" * 32), ("string", 5, 4), ("string", ["b"], ["a"]), ("binary", "b", "a"),
        ("float", 0.10000000149011612, 0.1), ("double", "NaN", 1), ("integer", True, False), ("long", None, 1),
        ({"type": "array", "elementType": "long", "containsNull": True}, 5, 4),
    ],
)  # fmt: skip
def test_statistics_that_may_be_true_are_not_told(kind: Any, least: Any, most: Any) -> None:
    assert wrong(kind, least, most) == []


def test_statistics_of_mapped_columns_are_found_by_their_names_in_the_files() -> None:
    columns = columns_of({"id": "long", "a.b": "long"}, physical={"id": "col-1", "a.b": "col-2"})
    stats = '{"numRecords":1,"minValues":{"col-1":2,"col-2":2,"id":9},"maxValues":{"col-1":1,"col-2":2,"id":1}}'
    [found] = statistics_of(1, "x", 1, stats, columns)
    assert (found.severity, found.column, found.catalog) == ("error", "id", "2 > 1")


@pytest.mark.parametrize("text", ["[1]", "5", "null", '"a"', "{", None, '{"a":NaN}', '{"a":' + "9" * 5000 + "1.0}}"])
def test_statistics_that_are_no_object_are_a_warning_in_both_forms(text: str | None) -> None:
    for columns in (columns_of({"id": "long"}), columns_of({"id": "decimal(5,2)"})):
        [found] = statistics_of(1, "x", 3, text, columns)
        assert (found.check, found.severity, found.column) == ("statistics", "warning", "stats")
        row = {"version": 1, "path": "x", "num_records": 3, "stats": text}
        [told] = pa.Table.from_batches(CheckStatistics(columns)(batch(row))).to_pylist()
        assert (told["severity"], told["message"]) == (found.severity, found.message)


@pytest.mark.parametrize("section", ["[]", "5", "null", '{"id":"x"}', '{"id":[1]}', '{"id":true}', '{"id":{"x":{}}}'])
def test_sections_of_statistics_of_other_types_are_passed_over(section: str) -> None:
    for kind in ("long", "decimal(5,2)"):
        for name in ("nullCount", "minValues", "maxValues"):
            other = {"minValues": "maxValues", "maxValues": "minValues"}.get(name, "tightBounds")
            stats, usual = f'{{"{name}":{section},"{other}":{{"id":1}}}}', f'{{"{name}":{{"id":1}}}}'
            assert list(statistics_of(1, "x", 3, stats, columns_of({"id": kind}))) == []
            assert list(differing(file(stats=stats), file(stats=usual), columns_of({"id": kind}))) == []


def test_a_number_that_no_arithmetic_can_hold_stops_nothing() -> None:
    columns = columns_of({"c": "decimal(38,2)"})
    ours, theirs = (file(stats=f'{{"maxValues":{{"c":{number}}}}}') for number in ("9e999999", "-9e999999"))
    assert list(differing(ours, theirs, columns)) == []
    assert wrong("decimal(38,2)", 1, 2) == []


def file(**fields: Any) -> dict[str, Any]:
    """What one side says of a file."""
    numbers = {"size_bytes": 1, "modification_time": 2, "base_row_id": None, "default_row_commit_version": None}
    return {**numbers, "partition_values": "{}", "stats": None, "deletion_vector": None, **fields}


def other(kinds: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """What a checkpoint says otherwise of a file, from both forms of the validation, which must say the same."""
    columns, texts = (
        columns_of(kinds),
        [{name: json.dumps(value) for name, value in side.items()} for side in (ours, theirs)],
    )
    left, right = (file(**side) for side in texts)
    found = list(differing(left, right, columns))
    sides = {
        f"{side}_{name}": value
        for side, fields in (("ours", left), ("theirs", right))
        for name, value in fields.items()
    }
    row = {"ours": True, "theirs": True, "ours_path": "x", "ours_dv_id": None, **sides}
    schema = pa.schema([(name, pa.string() if value is None else pa.scalar(value).type) for name, value in row.items()])
    batches = [pa.RecordBatch.from_pylist([row], schema)]
    told = [each for part in pickle.loads(pickle.dumps(CompareFiles(columns)))(batches) for each in part.to_pylist()]
    assert [(each["column"], each["catalog"], each["log"]) for each in told] == [
        (column, *(None if value is None else str(value) for value in values)) for column, *values in found
    ]
    return found


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        ("string", "a", "b"), ("string", "1", "1.0"), ("string", "a", None), ("string", None, "a"), ("long", "1", "2"),
        ("long", "1", "x"), ("date", "2026-01-01", "2026-01-02"), ("boolean", "true", "false"),
        ("timestamp", "2026-01-01 00:00:00", "2026-01-01 00:00:00.000001"), ("decimal(5,2)", "1.50", "1.51"),
        ("timestamp", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00"), ("double", "0.1", "0.2"),
    ],
)  # fmt: skip
def test_a_checkpoint_with_another_partition_value_is_told_with_both(kind: str, ours: Any, theirs: Any) -> None:
    found = other({"p": kind}, {"partition_values": {"p": ours}}, {"partition_values": {"p": theirs}})
    assert found == [("partition_values.p", ours, theirs)]


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        ("string", "", None), ("string", "__HIVE_DEFAULT_PARTITION__", None), ("long", "007", "7"),
        ("double", "1E3", "1000.0"), ("decimal(5,2)", "1.50", "1.5"), ("boolean", "TRUE", "true"),
        ("float", "0.1", "0.10000000149011612"), ("double", "Infinity", "inf"), ("string", "\ud800", "?"),
        ("timestamp", "2026-01-01 00:00:00", "2026-01-01T00:00:00.000000Z"),
        ("timestamp", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.000Z"),
        ("timestamp", "2026-01-01 00:00:00", "2026-01-01 00:00:00.0"), ("date", "10000-01-01", "+10000-01-01"),
    ],
)  # fmt: skip
def test_a_partition_value_that_is_spelled_otherwise_is_the_same(kind: str, ours: Any, theirs: Any) -> None:
    for left, right in ((ours, theirs), (theirs, ours)):
        assert other({"p": kind}, {"partition_values": {"p": left}}, {"partition_values": {"p": right}}) == []


def test_a_partition_value_that_is_not_there_is_null() -> None:
    assert other({"p": "string"}, {"partition_values": {"p": None}}, {"partition_values": {}}) == []
    assert other({"p": "string"}, {"partition_values": {}}, {"partition_values": {"p": "a"}}) == [
        ("partition_values.p", None, "a")
    ]


STATS: dict[str, Any] = {
    "numRecords": 3, "tightBounds": True, "minValues": {"id": 1, "in": {"at": "2026-01-01T00:00:00.000Z"}},
    "maxValues": {"id": 9, "in": {"at": "2026-01-02T00:00:00.000Z"}}, "nullCount": {"id": 0, "in": {"at": 1}},
}  # fmt: skip
KINDS = {"id": "long", "in": {"type": "struct", "fields": [field("at", "timestamp")]}}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"numRecords": 4}, ("stats.numRecords", 3, 4)), ({"tightBounds": False}, ("stats.tightBounds", True, False)),
        ({"minValues": {"id": 2}}, ("stats.minValues.id", 1, 2)),
        ({"maxValues": {"id": 8.5}}, ("stats.maxValues.id", 9, 8.5)),
        ({"nullCount": {"in": {"at": 2}}}, ("stats.nullCount.in.at", 1, 2)),
        (
            {"minValues": {"in": {"at": "2026-01-01T00:00:00.000+01:00"}}},
            ("stats.minValues.in.at", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000+01:00"),
        ),
    ],
)  # fmt: skip
def test_a_checkpoint_with_other_statistics_is_told_by_what_they_say(more: Any, told: tuple[str, Any, Any]) -> None:
    assert other(KINDS, {"stats": STATS}, {"stats": {**STATS, **more}}) == [told]


@pytest.mark.parametrize(
    "theirs",
    [
        {}, [], None, {"numRecords": 3.0}, {"numRecords": "4"}, {"minValues": {"id": 1.0, "gone": 7}}, {"maxValues": 5},
        {"maxValues": {"id": None, "in": 4}}, {"minValues": {"in": {"at": "2026-01-01T01:00:00+01:00"}}},
        {"minValues": {"in": {"at": "2026-01-01 00:00:00"}}}, {"nullCount": {"id": None}}, {"tightBounds": None},
        {"minValues": {"in": {"at": "2026-01-01T00:00:00.000900Z"}}},
    ],
)  # fmt: skip
def test_statistics_that_a_checkpoint_leaves_out_or_spells_otherwise_are_the_same(theirs: Any) -> None:
    assert other(KINDS, {"stats": STATS}, {"stats": theirs}) == []
    assert other(KINDS, {"stats": theirs}, {"stats": STATS}) == []


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        ("float", 0.1, 0.10000000149011612), ("double", 1000, 1e3), ("decimal(5,2)", 0.30, 0.30000000000000004),
        ("decimal(38,18)", 12345678901234567890.123456789, 12345678901234567000), ("string", "a" * 32, "a" * 20 + "b"),
        ("date", "1500-01-01", "1500-01-10"), ("binary", "a", "b"),
    ],
)  # fmt: skip
def test_bounds_that_went_through_columns_of_a_checkpoint_are_the_same(kind: str, ours: Any, theirs: Any) -> None:
    assert other({"c": kind}, {"stats": {"minValues": {"c": ours}}}, {"stats": {"minValues": {"c": theirs}}}) == []


def test_a_checkpoint_with_another_size_of_a_deletion_vector_is_told() -> None:
    ours = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 40, "cardinality": 6}
    theirs = {"cardinality": 5, "sizeInBytes": 41, "pathOrInlineDv": "x", "storageType": "i", "maxRowIndex": 9}
    assert other({}, {"deletion_vector": ours}, {"deletion_vector": theirs}) == [
        ("deletion_vector.sizeInBytes", 40, 41), ("deletion_vector.cardinality", 6, 5),
    ]  # fmt: skip
    assert other({}, {"deletion_vector": ours}, {"deletion_vector": {**ours, "maxRowIndex": 9}}) == []


def test_a_schema_that_nobody_can_read_types_nothing() -> None:
    described: Any = SimpleNamespace(schema_json='{"fields":[{"name":"a"}]}', partition_columns=[], properties={})
    assert typed_columns(described) == TypedColumns({}, exact=False)


def test_executors_place_a_file_by_any_of_its_names(tmp_path: Path) -> None:
    names = ["a.parquet", "day=1/b%20c.parquet", (tmp_path / "d e.parquet").as_uri(), "file:///elsewhere/f.parquet"]
    rows = [{"version": 1, "path": name, "size_bytes": 1, "num_records": 1} for name in names]
    [found] = PlaceFiles(str(tmp_path))(batch(*rows))
    assert found.column("on_disk").to_pylist() == ["a.parquet", "day=1/b c.parquet", "d e.parquet", None]
