"""Texts of statistics and partition values as typed columns: exact or absent."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mainstem.checkpoint.parsed import NotParsed, partition_column, stats_column
from mainstem.checkpoint.parsedtypes import partition_type, stats_type


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps(struct(*fields))


ARRAY = {"type": "array", "elementType": "integer", "containsNull": True}


def read(kind: str, value: Any) -> Any:
    """What a JSON value, given as text or as an object, becomes as the smallest value of a column."""
    found = stats_type(schema(field("c", kind)), [], {}, vectors=False)
    text = value if isinstance(value, str) and value.startswith("{") else json.dumps({"minValues": {"c": value}})
    [row] = stats_column(pa.array([text]), found).to_pylist()
    return row["minValues"]["c"] if row["minValues"] else None


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("byte", 127, 127),
        ("byte", 128, None),
        ("short", -32768, -32768),
        ("integer", 2**31, None),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", "{" + '"minValues":{"c":9223372036854775808}}', None),
        ("long", 1.5, None),
        ("long", True, None),
        ("long", "1", None),
        ("double", 1, 1.0),
        ("double", "-Infinity", -math.inf),
        ("double", "many", None),
        ("float", 0.1, pytest.approx(0.1)),
        ("float", 1e300, None),
        ("float", "Infinity", math.inf),
        ("string", "é", "é"),
        ("string", 5, None),
        ("date", "2026-02-28", date(2026, 2, 28)),
        ("date", "2026-02-30", None),
        ("date", "12026-02-28", None),
        ("timestamp", "2026-01-01T00:00:00.123Z", datetime(2026, 1, 1, 0, 0, 0, 123000, tzinfo=UTC)),
        ("timestamp", "2026-01-01T02:00:00+02:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("timestamp", "2026-01-01T00:00:00", None),  # whose midnight?
        ("timestamp", "2026-01-01T00:00:00.1234567Z", None),
        ("timestamp_ntz", "2026-01-01T00:00:00.5", datetime(2026, 1, 1, 0, 0, 0, 500000)),
        ("timestamp_ntz", "2026-01-01T00:00:00Z", None),
        ("timestamp_ntz", "2026-01-01", datetime(2026, 1, 1)),  # a column that was a date once
        ("decimal(5,2)", "{" + '"minValues":{"c":123.45}}', Decimal("123.45")),
        ("decimal(5,2)", "{" + '"minValues":{"c":123.456}}', None),
        ("decimal(5,2)", "{" + '"minValues":{"c":1234.5}}', None),
        ("decimal(38,0)", "{" + f'"minValues":{{"c":{"9" * 38}}}}}', Decimal("9" * 38)),
        ("decimal(38,0)", "{" + f'"minValues":{{"c":{"9" * 39}}}}}', None),
        ("decimal(38,0)", "{" + '"minValues":{"c":1e400}}', None),
        ("decimal(5,2)", "1.5", Decimal("1.50")),
        ("decimal(5,2)", "NaN", None),
    ],
)  # fmt: skip
def test_a_bound_is_exact_or_absent(kind: str, value: Any, expected: Any) -> None:
    assert read(kind, value) == expected


def test_not_a_number_is_a_number_of_its_own() -> None:
    assert math.isnan(read("double", "NaN"))


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"numRecords":1e400', '{"minValues":{"c":"\\ud800"}}'])
@pytest.mark.parametrize("kind", ["string", "decimal(5,2)"])
def test_statistics_that_are_no_object_say_nothing(text: str | None, kind: str) -> None:
    found = stats_type(schema(field("c", kind)), [], {}, vectors=False)
    [row] = stats_column(pa.array([text], pa.string()), found).to_pylist()
    assert row is None or not any(row.values()) or row["minValues"] == {"c": None}


def test_the_struct_of_statistics_follows_the_schema_as_files_name_it() -> None:
    text = schema(
        field("id", "long", **{"delta.columnMapping.physicalName": "col-1"}),
        field("part", "string"),
        field("deep", struct(field("x", "date"), field("list", ARRAY), field("flag", "boolean"))),
        field("v", "variant"),
    )
    found = stats_type(text, ["part"], {"delta.columnMapping.mode": "name"}, vectors=True)
    bounds = pa.struct([("col-1", pa.int64()), ("deep", pa.struct([("x", pa.date32())]))])
    nulls = pa.struct(
        [
            ("col-1", pa.int64()),
            ("deep", pa.struct([("x", pa.int64()), ("list", pa.int64()), ("flag", pa.int64())])),
            ("v", pa.int64()),
        ]
    )
    assert found == pa.struct(
        [
            ("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", nulls),
            ("tightBounds", pa.bool_()),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "covered"),
    [
        ({}, 32),
        ({"delta.dataSkippingNumIndexedCols": "3"}, 3),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, 40),
        ({"delta.dataSkippingNumIndexedCols": "0"}, 0),
        ({"delta.dataSkippingStatsColumns": "C1, `c39`,deep.x"}, 2),
    ],
)
def test_statistics_cover_the_columns_that_delta_collects_them_for(properties: dict[str, str], covered: int) -> None:
    found = stats_type(schema(*(field(f"c{place}", "long") for place in range(40))), [], properties, vectors=False)
    names = [each.name for each in found]
    assert ("nullCount" in names) == bool(covered)
    if covered:
        assert found.field("nullCount").type.num_fields == covered


def partition(kind: str, text: str | None) -> Any:
    found = partition_type(schema(field("p", kind)), ["p"], {})
    assert found is not None
    [row] = partition_column(pa.array([[("p", text)]], pa.map_(pa.string(), pa.string())), found).to_pylist()
    return row["p"]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("string", "x", "x"),
        ("string", "", None),
        ("integer", None, None),
        ("integer", "-7", -7),
        ("long", "+7", 7),
        ("boolean", "TRUE", True),
        ("boolean", "false", False),
        ("double", "1e3", 1000.0),
        ("float", "-Infinity", -math.inf),
        ("date", "2026-01-01", date(2026, 1, 1)),
        ("timestamp_ntz", "2026-01-01 00:00:00.000001", datetime(2026, 1, 1, 0, 0, 0, 1)),
        ("decimal(10,2)", "3.50", Decimal("3.50")),
        ("binary", "a\u0001", b"a\x01"),
    ],
)
def test_a_partition_value_gets_its_type(kind: str, text: str | None, expected: Any) -> None:
    assert partition(kind, text) == expected


@pytest.mark.parametrize(("kind", "text"), [("integer", "x"), ("byte", "300"), ("date", "today"), ("boolean", "2")])
def test_a_partition_value_that_is_not_of_its_type_is_never_taken_for_null(kind: str, text: str) -> None:
    with pytest.raises(NotParsed):
        partition(kind, text)


def test_partition_values_without_a_zone_or_a_type_have_no_column() -> None:
    text = schema(field("t", "timestamp"), field("i", "interval"), field("s", "string"))
    assert partition_type(text, ["s", "t"], {}) is None
    assert partition_type(text, ["i"], {}) is None
    assert partition_type(text, ["missing"], {}) is None
    assert partition_type(text, [], {}) is None
    assert partition_type(text, ["s"], {}) == pa.struct([("s", pa.string())])
