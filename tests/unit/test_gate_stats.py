"""A gate on statistics: what they surely say holds, and nothing else does."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pruning_cases import columns

from mainstem.gate import check_stats
from mainstem.model import AddFile
from mainstem.pruning import TableColumns, table_columns


def file(column: str, low: Any, high: Any, *, nulls: int = 0, **parts: str) -> AddFile:
    stats = {"numRecords": 4, "minValues": {column: low}, "maxValues": {column: high}, "nullCount": {column: nulls}}
    return AddFile(0, "f", 0, b"f", None, 1, json.dumps(parts), json.dumps(stats), True, 1)


def holds(column: str, given: AddFile, low: Any, high: Any, known: TableColumns | None = None) -> bool:
    return check_stats("t", [given], known or columns(), ranges={column: (low, high)}).success


@pytest.mark.parametrize(
    ("column", "stats", "within", "expected"),
    [
        ("n", (3, 9), (3, 9), True), ("n", (3, 9), (4, None), False), ("n", (3, 9), (None, 8), False),
        ("n", (3, 9), ("3", "9"), True), ("n", (10, 20), ("9", None), True), ("d", (0.5, 9.5), (0.5, 9.5), True),
        ("f", (0.1, 0.5), (0.1, 0.5), True), ("f", (0.1, 0.5), (0.11, None), False), ("f", (0, 1), (0, 1), True),
        ("m", (1.25, 2), (Decimal("1.25"), 2), True), ("m", (1.25, 2), (Decimal("1.26"), 2), False),
        ("s", ("b", "c"), ("b", "c"), True), ("s", ("b", "c"), ("c", None), False),
        ("day", ("2026-01-02", "2026-01-03"), (date(2026, 1, 2), "2026-01-03"), True),
        ("day", ("2026-01-02", "2026-01-03"), (date(2026, 1, 3), None), False),
        ("ts", ("2026-01-01T05:00:00.000Z", "2026-01-01T06:00:00.000Z"), (datetime(2026, 1, 1, 5), None), True),
        ("ts", ("2026-01-01T05:00:00.000Z", "2026-01-01T06:00:00.000Z"), (datetime(2026, 1, 1, 12), None), False),
        ("ts", ("2026-01-01T05:00:00.000Z", "2026-01-01T06:00:00.000Z"), (None, datetime(2026, 1, 1, 6)), True),
        ("ts", ("2026-01-01T05:00:00.000Z", "2026-01-01T06:00:00.000Z"), (None, datetime(2026, 1, 1, 5)), False),
        ("ts", ("2026-01-01T05:00:00.000Z", "2026-01-01T06:00:00.000Z"),
         (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=-5))), datetime(2026, 1, 1, 6, tzinfo=UTC)), False),
        ("ts", ("2026-01-01T05:00:00.000Z", "2026-01-01T06:00:00.000Z"), (None, "2026-01-01 06:00:00"), True),
        ("st.n", (1, 2), (0, 5), False), ("nope", (1, 2), (0, 5), False), ("n", (None, None), (0, 5), False),
    ],
)  # fmt: skip
def test_a_range_is_compared_as_the_columns_values_are(
    column: str, stats: tuple[Any, Any], within: tuple[Any, Any], expected: bool
) -> None:
    assert holds(column, file(column, *stats), *within) is expected


def test_a_file_of_nulls_has_nothing_out_of_range() -> None:
    assert holds("n", file("n", None, None, nulls=4), 0, 1)


def test_the_values_of_a_partition_are_known_without_statistics() -> None:
    assert holds("pi", file("n", 1, 1, pi="5"), 5, 5)
    assert not holds("pi", file("n", 1, 1, pi="5"), 6, None)


def test_column_mapping_gives_the_names_that_statistics_have() -> None:
    field = {"name": "n", "type": "long", "metadata": {"delta.columnMapping.physicalName": "col-1"}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    mapped = table_columns(schema, [], {"delta.columnMapping.mode": "name"})
    given = file("col-1", 3, 9, nulls=2)
    assert holds("n", given, 3, 9, mapped)
    assert not holds("n", given, 4, 9, mapped)
    assert check_stats("t", [given], mapped, null_rate={"n": 0.5}).success
    assert not check_stats("t", [given], mapped, null_rate={"n": 0.4}).success


def with_vector(gone: int, *, nulls: int = 0) -> AddFile:
    given = file("n", 1, 9, nulls=nulls)
    return replace(given, deletion_vector=json.dumps({"storageType": "u", "pathOrInlineDv": "x", "cardinality": gone}))


def test_rows_that_a_deletion_vector_marks_are_no_rows() -> None:
    for gone, within, expected in ((1, (3, 3), True), (1, (4, None), False), (4, (0, 0), True)):
        assert check_stats("t", [with_vector(gone)], columns(), rows=within).success is expected


def test_which_rows_a_deletion_vector_marks_is_not_known_so_nulls_are_taken_to_be_left() -> None:
    half = with_vector(2, nulls=2)
    assert not check_stats("t", [half], columns(), null_rate={"n": 0.5}).success
    assert check_stats("t", [half], columns(), null_rate={"n": 1.0}).success
    assert check_stats("t", [with_vector(4, nulls=2)], columns(), null_rate={"n": 0.0}).success
