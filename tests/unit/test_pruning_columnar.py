"""Files in memory are sorted out by columns: exactly those stay that one by one would."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pruning_cases import HOSTILE_STATS, HOSTILE_TEXTS, ODD_MOMENTS, PREDICATES, File, Predicate, columns, files

from mainstem.livefiles import LiveFiles
from mainstem.pruning import may_match, parse

NOTHING: dict[str, str | None] = dict.fromkeys(("p", "pi", "pd", "pt", "pm", "pf"))
ODD = [
    *(File(NOTHING, stats) for stats in (*HOSTILE_STATS, *ODD_MOMENTS)),
    *(File(dict.fromkeys(NOTHING, text), None) for text in (*HOSTILE_TEXTS, "5", "05", "1e3", "2024-02-30")),
    File(NOTHING, '{"numRecords":-1,"minValues":{"n":1},"maxValues":{"n":2}}'),
    File(NOTHING, '{"numRecords":2,"minValues":{"n":99999999999999999999},"maxValues":{"n":9223372036854775808}}'),
    File(NOTHING, '{"numRecords":2,"minValues":{"s":"\\ud800"},"maxValues":{"s":"\\ud800"}}'),
    File({}, None),
]


def table(given: Sequence[File]) -> LiveFiles:
    rows = {
        "path": [str(number) for number in range(len(given))],
        "partition_values": [orjson.dumps(file.partition_values).decode() for file in given],
        "stats": [file.stats for file in given],
    }
    empty = pa.nulls(len(given), pa.string())
    others = ("dv_id", "size_bytes", "num_records", "data_change", "modification_time", "deletion_vector", "tags",
              "base_row_id", "default_row_commit_version", "clustering_provider", "version")  # fmt: skip
    typed = {name: pa.array(values, pa.string()) for name, values in rows.items()}
    return LiveFiles(pa.table({**typed, **dict.fromkeys(others, empty)}))


def by_columns(where: str, given: Sequence[File]) -> set[int]:
    found = table(given).matching(parse(where, columns()))
    assert found is not None
    return {int(path) for path in found["path"].to_pylist()}


def by_one(where: str, given: Sequence[File]) -> set[int]:
    condition = parse(where, columns())
    return {number for number, file in enumerate(given) if may_match(condition, file.partition_values, file.stats)}


@settings(max_examples=200, deadline=None)
@given(st.lists(files(), max_size=8), PREDICATES)
def test_columns_keep_what_one_by_one_keeps(given: list[File], predicate: Predicate) -> None:
    assert by_columns(predicate.sql, given) == by_one(predicate.sql, given)


@settings(max_examples=100, deadline=None)
@given(PREDICATES)
def test_odd_statistics_and_partitions_hide_no_file(predicate: Predicate) -> None:
    assert by_columns(predicate.sql, ODD) == by_one(predicate.sql, ODD)


@pytest.mark.parametrize(
    "where", ["n = 1 OR n = 100", "s > 'b'", "s >= '\U0010ffff'", "d < 0", "wide < 0", "n IS NULL"]
)
def test_odd_statistics_are_read_as_one_by_one(where: str) -> None:
    assert by_columns(where, ODD) == by_one(where, ODD)


def test_statistics_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    live = table([File(NOTHING, '{"numRecords":2,"minValues":{"n":1},"maxValues":{"n":2}}')])
    condition = parse("n = 1", columns())
    first = live.matching(condition)
    monkeypatch.setattr("mainstem.pruning.columnar.read_bounds", lambda *given: pytest.fail("read again"))
    assert live.matching(condition) == first


def test_more_files_than_one_by_one_is_good_for_are_left_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainstem.livefiles._MOST_BY_ONE", 1)
    live = table([File(NOTHING, None)] * 2)
    assert live.matching(parse("n = 1", columns())) is None
    assert table([File(NOTHING, None)]).matching(parse("n = 1", columns())) is not None


def test_a_constant_is_not_asked_of_any_file() -> None:
    live = table([File(NOTHING, None)] * 3)
    assert [live.matching(condition).num_rows for condition in (True, False)] == [3, 0]  # type: ignore[union-attr]
