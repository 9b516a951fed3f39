"""Checkpoints of every kind give the actions of a log; a broken or hostile one is refused with its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mainstem.deltalog import parse_commit
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.statsjson import stats_texts
from mainstem.errors import CorruptLog
from mainstem.model import Action, AddFile, DomainMetadata, Metadata, OtherAction, Protocol, RemoveFile, Txn

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
CLASSIC = f"{3:020d}.checkpoint.parquet"
V2_JSON = f"{3:020d}.checkpoint.{UUID}.json"
V2_PARQUET = f"{3:020d}.checkpoint.{UUID}.parquet"

TEXTS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
ADD = {
    "path": pa.string(),
    "partitionValues": TEXTS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": TEXTS,
    "deletionVector": VECTOR,
}
TYPES: dict[str, dict[str, pa.DataType]] = {
    "protocol": {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": pa.list_(pa.string()),
    },
    "metaData": {
        "id": pa.string(),
        "format": pa.struct({"provider": pa.string(), "options": TEXTS}),
        "schemaString": pa.string(),
        "partitionColumns": pa.list_(pa.string()),
        "configuration": TEXTS,
    },
    "add": ADD,
    "remove": {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "deletionVector": VECTOR,
    },
    "txn": {"appId": pa.string(), "version": pa.int64()},
    "domainMetadata": {"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()},
    "sidecar": {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()},
    "checkpointMetadata": {"version": pa.int64()},
}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {
    "metaData": {
        "id": "i",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": "{}",
        "partitionColumns": ["p"],
        "configuration": {"k": "v"},
    }
}
HEAD = [PROTOCOL, METADATA]


def add(path: str, **fields: Any) -> dict[str, Any]:
    base = {"path": path, "partitionValues": {"p": "1"}, "size": 5, "modificationTime": 6, "dataChange": False}
    return {"add": {**base, **fields}}


def remove(path: str, **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 7, "dataChange": True, **fields}}


def sidecar(path: Any) -> dict[str, Any]:
    return {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}


class Table:
    """A log to put checkpoints into."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "_delta_log"
        (self.folder / "_sidecars").mkdir(parents=True)

    def parquet(self, name: str, rows: list[dict[str, Any]], **types: dict[str, pa.DataType]) -> None:
        columns = {}
        for kind, fields in {**TYPES, **types}.items():
            if any(kind in row for row in rows):
                columns[kind] = pa.array([_pairs(row.get(kind), fields) for row in rows], pa.struct(fields))
        pq.write_table(pa.table(columns), self.folder / name)

    def json(self, name: str, rows: list[Any]) -> None:
        lines = [row if isinstance(row, str) else json.dumps(row, separators=(",", ":")) for row in rows]
        (self.folder / name).write_text("\n".join(lines))

    def actions(self, *, batch_rows: int = 8192) -> list[Action]:
        log = LogDirectory.open(str(self.root))
        [checkpoint] = log.list().checkpoints
        return list(read_checkpoint(log, checkpoint, batch_rows=batch_rows))

    def refused(self) -> CorruptLog:
        with pytest.raises(CorruptLog) as caught:
            self.actions()
        assert "file" in caught.value.details
        return caught.value


def _pairs(body: dict[str, Any] | None, fields: dict[str, pa.DataType]) -> Any:
    """Arrow takes a map as a list of pairs."""
    if body is None:
        return None
    return {
        key: list(value.items()) if isinstance(value, dict) and pa.types.is_map(fields[key]) else value
        for key, value in body.items()
    }


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


def keyed(actions: list[Action]) -> list[Action]:
    """The actions without their places: a checkpoint has no order."""
    return sorted((_at_zero(action) for action in actions), key=repr)


def _at_zero(action: Action) -> Action:
    return replace(action, seq=0)


def test_a_classic_checkpoint_gives_what_a_commit_of_the_same_actions_gives(table: Table) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH", "offset": 4, "sizeInBytes": 40, "cardinality": 6}
    rows = [
        *HEAD,
        add("a", stats='{"numRecords":3}', tags={"t": "u"}),
        add("b%20c", deletionVector=vector),
        add("c", partitionValues={"p": None}),
        remove("d"),
        remove("a", deletionVector={**vector, "storageType": "i", "offset": None}),
        {"txn": {"appId": "app", "version": 9}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    ]
    table.parquet(CLASSIC, rows)
    del rows[6]["remove"]["deletionVector"]["offset"]  # a column that is null, in a log, is a key that is not there
    lines = b"\n".join(json.dumps(row, separators=(",", ":")).encode() for row in rows)
    assert keyed(table.actions()) == keyed(parse_commit(lines, file="f", table_root=table.root.as_uri()))


def test_all_parts_of_a_multi_part_checkpoint_are_read(table: Table) -> None:
    for number, rows in enumerate([[*HEAD, add("a")], [add("b")], [add("c"), remove("d")]], start=1):
        table.parquet(f"{3:020d}.checkpoint.{number:010d}.{3:010d}.parquet", rows)
    actions = table.actions()
    assert [action.path for action in actions if isinstance(action, AddFile)] == ["a", "b", "c"]
    assert [action.seq for action in actions] == list(range(1, 7))


@pytest.mark.parametrize("name", [V2_JSON, V2_PARQUET])
def test_a_v2_checkpoint_is_read_with_its_sidecars(table: Table, name: str) -> None:
    table.parquet("_sidecars/one.parquet", [add("a"), add("b")])
    table.parquet("_sidecars/two two.parquet", [remove("c")])
    rows = [{"checkpointMetadata": {"version": 3}}, *HEAD, sidecar("one.parquet"), sidecar("two%20two.parquet")]
    rows += [{"txn": {"appId": "app", "version": 9}}]
    (table.json if name.endswith("json") else table.parquet)(name, rows)
    actions = table.actions()
    assert {type(action) for action in actions} == {Protocol, Metadata, Txn, AddFile, RemoveFile}
    assert [action.path for action in actions if isinstance(action, AddFile | RemoveFile)] == ["a", "b", "c"]
    assert len({action.seq for action in actions}) == len(actions)


@pytest.mark.parametrize("name", [CLASSIC, V2_PARQUET, V2_JSON])
def test_a_v2_checkpoint_may_hold_its_files_itself(table: Table, name: str) -> None:
    (table.json if name.endswith("json") else table.parquet)(name, [*HEAD, add("a"), remove("b")])
    assert [type(action) for action in table.actions()] == [Protocol, Metadata, AddFile, RemoveFile]


@pytest.mark.parametrize("spell", [str, lambda uri: uri.replace("file:///", "file:/"), lambda uri: uri[7:]])
def test_a_sidecar_may_be_named_by_its_whole_address_in_this_table(table: Table, spell: Callable[[str], str]) -> None:
    table.parquet("_sidecars/one.parquet", [add("a")])
    address = spell((table.folder / "_sidecars" / "one.parquet").as_uri())
    table.json(V2_JSON, [*HEAD, sidecar(address)])
    assert sum(isinstance(action, AddFile) for action in table.actions()) == 1


@pytest.mark.parametrize(
    "path",
    [
        "../00000000000000000000.checkpoint.parquet",
        "%2e%2e/x.parquet",
        "%2e%2e%2fx.parquet",
        "..%5cx.parquet",
        "..",
        ".",
        ".hidden",
        "",
        "a/b.parquet",
        "/etc/passwd",
        "file:///etc/passwd",
        "s3://other/x.parquet",
        "{root}/_delta_log/_sidecars/../../x.parquet",
        "{root}/_delta_log/_sidecars/%2e%2e%2fx.parquet",
        "{root}-other/_delta_log/_sidecars/x.parquet",
        "x%00.parquet",
        None,
        5,
    ],
)
def test_a_sidecar_elsewhere_than_in_its_folder_is_refused(table: Table, path: Any) -> None:
    spelled = path.replace("{root}", table.root.as_uri()) if isinstance(path, str) else path
    table.json(V2_JSON, [*HEAD, sidecar(spelled)])
    assert "sidecar" in table.refused().message


@pytest.mark.parametrize("body", ["5", '"x"', "[]", '{"path":"a","size":1e400}', '{"path":"\\ud800"}'])
def test_a_sidecar_that_is_no_sidecar_is_refused_and_does_not_crash(table: Table, body: str) -> None:
    table.json(V2_JSON, [*HEAD, f'{{"sidecar":{body}}}'])
    assert "a sidecar without a path" in table.refused().message


def test_a_missing_sidecar_is_refused_with_its_name_and_its_checkpoint(table: Table) -> None:
    table.json(V2_JSON, [*HEAD, sidecar("gone.parquet")])
    error = table.refused()
    assert error.details["file"] == V2_JSON
    assert "its sidecar gone.parquet is not there" in error.message


def test_a_sidecar_named_twice_is_refused(table: Table) -> None:
    table.parquet("_sidecars/one.parquet", [add("a")])
    table.json(V2_JSON, [*HEAD, sidecar("one.parquet"), sidecar("%6fne.parquet")])
    assert "named twice" in table.refused().message


@pytest.mark.parametrize("row", [sidecar("two.parquet"), PROTOCOL, METADATA, {"txn": {"appId": "a", "version": 1}}])
def test_a_sidecar_holds_files_and_tombstones_only(table: Table, row: dict[str, Any]) -> None:
    table.parquet("_sidecars/one.parquet", [add("a"), row])
    table.json(V2_JSON, [*HEAD, sidecar("one.parquet")])
    error = table.refused()
    assert "only files and tombstones" in error.message
    assert error.details["file"] == "_sidecars/one.parquet"


@pytest.mark.parametrize("row", HEAD)
@pytest.mark.parametrize("name", [CLASSIC, V2_JSON])
def test_a_second_protocol_or_metadata_is_refused(table: Table, name: str, row: dict[str, Any]) -> None:
    (table.json if name.endswith("json") else table.parquet)(name, [*HEAD, row])
    assert "a second" in table.refused().message


@pytest.mark.parametrize(("rows", "lacking"), [([METADATA], "no protocol"), ([PROTOCOL], "no metaData")])
def test_a_checkpoint_without_protocol_or_metadata_is_refused(
    table: Table, rows: list[dict[str, Any]], lacking: str
) -> None:
    table.parquet(CLASSIC, [*rows, add("a")])
    assert lacking in table.refused().message


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"{}"])
def test_a_torn_parquet_file_is_refused_with_its_name(table: Table, content: bytes) -> None:
    (table.folder / CLASSIC).write_bytes(content)
    error = table.refused()
    assert error.details["file"] == CLASSIC
    assert "not a readable Parquet file" in error.message


def test_a_checkpoint_that_is_cut_in_the_middle_is_refused(table: Table) -> None:
    table.parquet(CLASSIC, [*HEAD, *(add(f"f{number}") for number in range(1000))])
    content = (table.folder / CLASSIC).read_bytes()
    (table.folder / CLASSIC).write_bytes(content[: len(content) // 2])
    assert table.refused().details["file"] == CLASSIC


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (add("../x"), "leads out of the table"),
        (add("%2e%2e/x"), "leads out of the table"),
        (add("a", size=-1), "size is negative"),
        (add("a", size=None), "size is missing"),
        (add("a", stats="\0"), "U+0000"),
        (add("a", partitionValues=None), "partitionValues is missing"),
        (remove(""), "path is missing or empty"),
    ],
)
def test_an_action_that_a_commit_may_not_hold_is_refused_in_a_checkpoint_too(
    table: Table, row: dict[str, Any], why: str
) -> None:
    table.parquet(CLASSIC, [*HEAD, row])
    assert why in table.refused().message


def test_a_column_that_is_no_struct_is_refused_and_never_passed_over(table: Table) -> None:
    pq.write_table(pa.table({"add": pa.array(["a", "b"])}), table.folder / CLASSIC)
    assert "the column add must be a struct" in table.refused().message


def test_a_column_twice_is_refused(table: Table) -> None:
    column = pa.array([{"path": "a"}])
    pq.write_table(pa.Table.from_arrays([column, column], names=["add", "add"]), table.folder / CLASSIC)
    assert "appears twice" in table.refused().message


def test_a_partition_value_twice_is_refused(table: Table) -> None:
    rows = [*HEAD, add("a", partitionValues=[("p", "1"), ("p", "2")])]
    table.parquet(CLASSIC, rows)
    assert "a key of a map appears twice" in table.refused().message


def test_a_size_in_64_unsigned_bits_is_refused_and_never_wrapped(table: Table) -> None:
    table.parquet(CLASSIC, [*HEAD, add("a", size=2**63)], add={**ADD, "size": pa.uint64()})
    assert "size does not fit 64 bits" in table.refused().message


def test_unknown_fields_and_unknown_actions_survive(table: Table) -> None:
    newer = {**ADD, "newer": pa.struct({"m": TEXTS, "l": pa.list_(pa.string())})}
    rows = [*HEAD, add("a", newer={"m": [("k", "v")], "l": ["x"]}), {"rebase": {"onto": 5}}]
    table.parquet(CLASSIC, rows, add=newer, rebase={"onto": pa.int64()})
    actions = table.actions()
    [found] = [action for action in actions if isinstance(action, AddFile)]
    assert found.extra is not None
    assert json.loads(found.extra)["fields"] == {"newer": {"m": {"k": "v"}, "l": ["x"]}}
    assert [(action.name, action.body) for action in actions if isinstance(action, OtherAction)] == [
        ("rebase", '{"onto":5}')
    ]


def test_commit_infos_and_change_files_are_no_state(table: Table) -> None:
    types = {"commitInfo": {"timestamp": pa.int64()}, "cdc": {"path": pa.string()}}
    table.parquet(CLASSIC, [*HEAD, {"commitInfo": {"timestamp": 1}}, {"cdc": {"path": "c"}}], **types)
    assert [type(action) for action in table.actions()] == [Protocol, Metadata]


def test_the_size_of_a_batch_changes_nothing_but_the_order(table: Table) -> None:
    rows = [*HEAD, *(add(f"f{number}") for number in range(50)), remove("r")]
    rows += [{"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}]
    table.parquet(CLASSIC, rows)
    whole = table.actions()
    assert sum(isinstance(action, DomainMetadata) for action in whole) == 1
    for batch_rows in (1, 7):
        assert keyed(table.actions(batch_rows=batch_rows)) == keyed(whole)


STATS_TYPE = pa.struct({"numRecords": pa.int64(), "minValues": pa.struct({"a": pa.int64()})})


def test_statistics_that_exist_only_as_columns_become_text(table: Table) -> None:
    fields = {**{key: kind for key, kind in ADD.items() if key != "stats"}, "stats_parsed": STATS_TYPE}
    rows = [*HEAD, add("a", stats_parsed={"numRecords": 3, "minValues": {"a": 1}}), add("b", stats_parsed=None)]
    table.parquet(CLASSIC, rows, add=fields)
    adds = [action for action in table.actions() if isinstance(action, AddFile)]
    assert [(action.stats, action.num_records, action.extra) for action in adds] == [
        ('{"numRecords":3,"minValues":{"a":1}}', 3, None),
        (None, None, None),
    ]


def test_statistics_as_text_are_verbatim_and_win_over_the_columns(table: Table) -> None:
    text = '{ "numRecords":  3, "minValues":{"a":1e400}}'
    parsed = {"numRecords": 4, "minValues": {"a": 1}}
    rows = [*HEAD, add("a", stats=text, stats_parsed=parsed), add("b", stats_parsed=parsed)]
    table.parquet(CLASSIC, rows, add={**ADD, "stats_parsed": STATS_TYPE})
    adds = [action for action in table.actions() if isinstance(action, AddFile)]
    assert [action.stats for action in adds] == [text, '{"numRecords":4,"minValues":{"a":1}}']


def test_a_timestamp_of_type_int96_does_not_wrap_around(table: Table) -> None:
    """As nanoseconds, which 64 bits hold up to 2262, a maximum in the year 2960 was read as 1791."""
    moment = pa.timestamp("us", tz="UTC")
    kind = pa.struct({"minValues": pa.struct({"t": moment}), "maxValues": pa.struct({"t": moment})})
    values = {
        "minValues": {"t": datetime(1500, 1, 1, tzinfo=UTC)},
        "maxValues": {"t": datetime(2960, 10, 31, 1, tzinfo=UTC)},
    }
    cell = {**_pairs(add("a")["add"], ADD), "stats_parsed": values}
    columns = {"add": pa.array([None, None, cell], pa.struct({**ADD, "stats_parsed": kind}))}
    for place, row in enumerate(HEAD):
        [(name, body)] = row.items()
        cells: list[Any] = [None, None, None]
        cells[place] = _pairs(body, TYPES[name])
        columns[name] = pa.array(cells, pa.struct(TYPES[name]))
    pq.write_table(pa.table(columns), table.folder / CLASSIC, use_deprecated_int96_timestamps=True)
    [found] = [action for action in table.actions() if isinstance(action, AddFile)]
    assert json.loads(found.stats or "") == {
        "minValues": {"t": "1500-01-01T00:00:00.000Z"},
        "maxValues": {"t": "2960-10-31T01:00:00.000Z"},
    }


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.int64(), 2**63 - 1, "9223372036854775807"),
        (pa.float64(), -0.0, "-0.0"),
        (pa.float64(), float("nan"), '"NaN"'),
        (pa.float64(), float("-inf"), '"-Infinity"'),
        (pa.float32(), 0.1, "0.1"),
        (pa.float32(), 3.4028234663852886e38, "3.4028234663852886e+38"),
        (pa.decimal128(38, 10), Decimal("1234567890123456789012345678.0123456789"), None),
        (pa.decimal128(10, 2), Decimal("0.00"), "0.00"),
        (pa.date32(), date(9999, 12, 31), '"9999-12-31"'),
        (pa.timestamp("us"), datetime(2020, 1, 2, 3, 4, 5, 678999), '"2020-01-02T03:04:05.678"'),
        (pa.timestamp("us", tz="UTC"), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), '"1969-12-31T23:59:59.999Z"'),
        (pa.string(), "' OR 1=1 --\"\n\U0001f600", '"\' OR 1=1 --\\"\\n\U0001f600"'),
        (pa.bool_(), True, "true"),
    ],
)
def test_every_type_of_statistics_becomes_text_without_loss(kind: pa.DataType, value: Any, text: str | None) -> None:
    [written] = stats_texts(pa.array([{"v": value}], pa.struct({"v": kind})))
    assert written == f'{{"v":{text if text is not None else value}}}'


@pytest.mark.parametrize(("kind", "number"), [(pa.date32(), 2**31 - 1), (pa.timestamp("us"), 2**63 - 1)])
def test_what_json_cannot_say_is_left_out(kind: pa.DataType, number: int) -> None:
    plain = pa.int32() if kind == pa.date32() else pa.int64()
    column = pa.StructArray.from_arrays([pa.array([number], plain).cast(kind), pa.array([1])], names=["v", "n"])
    assert stats_texts(column) == ['{"n":1}']
