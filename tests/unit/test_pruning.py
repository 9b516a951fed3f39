from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from pruning_cases import HOSTILE_STATS, PREDICATES, File, Predicate, columns, files

from mainstem import UsageError
from mainstem.pruning import may_match, parse, table_columns
from mainstem.pruning.condition import Compare, HasNull, HasValue, OneOf


def kept(where: str, stats: object = None, **partition_values: str | None) -> bool:
    text = stats if stats is None or isinstance(stats, str) else json.dumps(stats)
    return may_match(parse(where, columns()), partition_values, text)


def bounds(low: object, high: object, column: str = "n", nulls: int = 0, records: int = 10) -> dict[str, object]:
    return {
        "numRecords": records,
        "minValues": {column: low},
        "maxValues": {column: high},
        "nullCount": {column: nulls},
    }


@settings(max_examples=600, deadline=None)
@given(files(), PREDICATES)
def test_a_file_with_a_matching_row_is_never_dropped(file: File, predicate: Predicate) -> None:
    matching = [row for row in file.rows if predicate.truth(row)]
    if matching:
        condition = parse(predicate.sql, columns())
        assert may_match(condition, file.partition_values, file.stats), (predicate.sql, condition, matching, file.stats)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n = 5", False), ("n = 15", True), ("n < 10", False), ("n <= 10", True), ("n > 20", False), ("n >= 20", True),
        ("5 = n", False), ("10 > n", False), ("20 >= n", True), ("n != 15", True), ("NOT n < 21", False),
        ("NOT (n >= 10 AND n <= 20)", False), ("n BETWEEN 21 AND 30", False), ("n NOT BETWEEN 0 AND 100", False),
        ("n IN (1, 2, 3)", False), ("n IN (1, 15)", True), ("n NOT IN (1, NULL)", False), ("n IN (1, NULL)", False),
        ("n = NULL", False), ("NOT n = NULL", False), ("n <=> NULL", False), ("n IS NULL", False),
        ("n IS NOT NULL", True),
        ("n = 15.5", False), ("n < 10.5", True), ("n > 19.5", True), ("n > 20.5", False), ("n = '15'", True),
        ("n = '5'", False), ("n > 1e3", False), ("n < 1e400", True), ("n = 1.5D", False),
        ("n = CAST('5' AS INT)", False),
        ("N = 5", False), ("`n` = 5L", False), ("n = 5 AND s = 'x'", False), ("n = 5 OR s = 'x'", True),
        ("n + 1 = 6", True), ("abs(n) = 5", True), ("n = small", True), ("n % 2 = 5 AND n = 5", False),
        ("TRUE", True), ("FALSE", False), ("NULL", False), ("n = -5", False), ("n > -(5)", True), ("n == 5", False),
    ],
)  # fmt: skip
def test_integers_between_10_and_20(where: str, expected: bool) -> None:
    assert kept(where, bounds(10, 20)) is expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("ts > TIMESTAMP '2024-01-01 00:00:00.123'", True),  # the maximum was cut: it may be 123 milliseconds and more
        ("ts >= TIMESTAMP '2024-01-01 00:00:00.123999'", True),
        ("ts >= TIMESTAMP '2024-01-01 00:00:00.124'", False),
        ("ts < TIMESTAMP '2023-12-31 00:00:00'", False),
        ("ts <= '2023-12-31'", True),
        ("ts < '2023-12-31'", False),
        ("ts >= '2024-01-02'", False),
        ("ts >= DATE '2024-01-01'", True),
        ("ts >= '2024-01-01T01:00:00+01:00'", True),
        ("ts >= '2024-01-01T00:00:01+01:00'", True),
        ("ts >= '2024-01-01T00:00:00.124Z'", False),
        ("ts >= 'tomorrow'", True),
    ],
)
def test_moments_are_cut_to_milliseconds_and_utc(where: str, expected: bool) -> None:
    stats = bounds("2023-12-31T00:00:00.000Z", "2024-01-01T00:00:00.123Z", "ts")
    assert kept(where, stats) is expected


def test_moments_in_other_zones_are_a_day_wide() -> None:
    stats = bounds("2024-01-01T12:00:00.000-08:00", "2024-01-01T12:00:00.000-08:00", "ts")
    assert kept("ts = TIMESTAMP '2024-01-01 20:00:00'", stats)
    assert not kept("ts >= '2024-01-04'", stats)
    assert not kept("ts < '2023-12-31'", stats)


LISTED = ", ".join(f"'2025-12-31 21:30:{second}'" for second in range(10, 30))
ELSEWHERE = [
    # Between 02:00 and 03:00 in UTC, which is the evening before in New York and the morning in Tokyo.
    ("ts < '2026-01-01 00:00:00'", True), ("ts < TIMESTAMP '2026-01-01 00:00:00'", True), ("ts > '2026-01-01'", True),
    ("ts < DATE '2026-01-01'", True), ("ts = '2025-12-31 21:30:00'", True), ("ts = '2026-01-01 11:30:00'", True),
    ("NOT ts >= '2026-01-01 00:00:00'", True), ("ts BETWEEN '2025-12-31 21:00:00' AND '2025-12-31 22:00:00'", True),
    ("ts IN ('2025-12-31 21:30:00')", True), ("ts <=> TIMESTAMP '2026-01-01 11:30:00'", True),
    (f"ts IN ({LISTED})", True),
    ("ts < '2025-12-31 00:00:00'", False), ("ts >= '2026-01-02'", False), ("ts = '2026-01-03 00:00:00'", False),
    # What names its zone is the same everywhere.
    ("ts < '2026-01-01T02:00:00Z'", False), ("ts >= TIMESTAMP '2026-01-01 03:00:01+00:00'", False),
    ("ts >= TIMESTAMP '2026-01-01 03:00:00Z'", True), ("ts <= CAST('2025-12-31 22:00:00-05:00' AS TIMESTAMP)", True),
    # Moments without any zone are not moved; beside one that has a zone they are.
    ("tn < '2026-01-01 02:00:00'", False), ("tn >= TIMESTAMP_NTZ '2026-01-01 03:00:01'", True),
    ("tn < TIMESTAMP '2026-01-01 02:00:00Z'", True), ("tn < DATE '2026-01-01'", False),
    # A day begins when it does there.
    ("day < DATE '2026-01-01'", False), ("day = '2026-01-01'", True), ("day = '2026-01-02'", False),
    ("day < TIMESTAMP '2026-01-01 00:00:00Z'", True), ("day < CAST(TIMESTAMP '2026-01-01 00:00:00Z' AS DATE)", True),
    ("day < TIMESTAMP '2025-12-30 00:00:00Z'", False), ("ts < TIMESTAMP '9999-12-31 23:59:59'", True),
]  # fmt: skip


@pytest.mark.parametrize(("where", "expected"), ELSEWHERE)
def test_in_a_session_of_another_zone_a_moment_may_be_anywhere_in_the_zones(where: str, expected: bool) -> None:
    low, high = "2026-01-01T02:00:00.000Z", "2026-01-01T03:00:00.000Z"
    stats = {
        "numRecords": 10,
        "minValues": {"ts": low, "tn": low[:-1], "day": "2026-01-01"},
        "maxValues": {"ts": high, "tn": high[:-1], "day": "2026-01-01"},
        "nullCount": {"ts": 0, "tn": 0, "day": 0},
    }
    assert may_match(parse(where, columns(), in_utc=False), {}, json.dumps(stats)) is expected


@pytest.mark.parametrize(
    ("where", "text", "expected"),
    [
        ("pt = '2026-01-01 00:00:00'", "2026-01-01T05:00:00.000000Z", True),
        ("pt = TIMESTAMP '2026-01-01 05:00:00Z'", "2026-01-01 00:00:00", True),
        ("pt < '2026-01-01'", "2026-01-01T04:00:00.000000Z", True),
        ("pt = '2026-01-01 00:00:00'", "2026-01-03 00:00:00", False),
        ("pt IN ('2026-01-01 00:00:00', '2026-01-02 00:00:00')", "2026-01-02T05:00:00.000000Z", True),
        ("pd = '2026-01-01'", "2026-01-02", False),
        ("pd = TIMESTAMP '2026-01-01 00:00:00'", "2026-01-01", True),
    ],
)
def test_partitions_of_moments_are_as_wide_as_the_zones_there(where: str, text: str, expected: bool) -> None:
    name = where.split()[0]
    assert may_match(parse(where, columns(), in_utc=False), {name: text}, None) is expected


@settings(max_examples=300, deadline=None)
@given(files(), PREDICATES)
def test_another_zone_never_drops_what_utc_keeps(file: File, predicate: Predicate) -> None:
    if may_match(parse(predicate.sql, columns()), file.partition_values, file.stats):
        assert may_match(parse(predicate.sql, columns(), in_utc=False), file.partition_values, file.stats)


def test_texts_that_may_be_cut_are_only_beginnings() -> None:
    cut, long = "a" * 32, "a" * 40
    assert kept(f"s = '{long}'", bounds(cut, cut + "\uffff", "s"))
    assert kept(f"s = '{long}'", bounds(cut, cut, "s"))  # a writer that does not mark it
    assert not kept("s = 'b'", bounds(cut, cut, "s"))
    assert not kept("s = 'ab'", bounds("a", "a", "s"))
    assert kept("s LIKE 'b%'", bounds("a", "c", "s"))
    assert not kept("s LIKE 'b%'", bounds("c", "d", "s"))
    assert not kept("startswith(s, 'x')", bounds("a", "c", "s"))
    assert not kept("s NOT LIKE 'b%'", bounds("ba", "bz", "s"))
    assert kept("s NOT LIKE 'b%z'", bounds("ba", "bz", "s"))
    assert not kept("s LIKE 'b_d%'", bounds("c", "d", "s"))
    assert kept("s LIKE 'b!%' ESCAPE '!'", bounds("c", "d", "s"))


def test_texts_compare_by_code_points_not_by_utf_16() -> None:
    # In UTF-16 U+1F986 begins with 0xD83E and sorts before U+FF5E; Spark and Delta compare bytes of UTF-8.
    assert kept("s > '\uff5e'", bounds("a", "\U0001f986", "s"))


def test_an_escape_that_spark_may_read_otherwise_decides_nothing() -> None:
    assert kept(r"s = '\x41'", bounds("x", "y", "s"))
    assert not kept(r"s = 'it\'s'", bounds("x", "y", "s"))
    assert kept(r"s = r'a\d'", bounds("x", "y", "s"))


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("s = 'it''s'", "it's"),
        ("s = ''", ""),
        ("s = ''''", "'"),
        ("s = '''x'", "'x"),
        ("s = 'x'''", "x'"),
        ("s = 'it' 's'", "its"),
        ("s = 'a\\''''", "a''"),
        ('s = "say ""so"""', 'say "so"'),
        ("s = \"it''s\"", "it''s"),
        ("s = 'it\"\"s'", 'it""s'),
        ("s = '-- it''s'", "-- it's"),
        ("s = 'a' -- it''s", "a"),
        ("/* ' */ s = 'it''s'", "it's"),
    ],
)
def test_a_doubled_quote_is_a_quote_as_spark_4_reads_it(where: str, text: str) -> None:
    assert kept(where, bounds(text, text, "s"))
    assert not kept(where, bounds("\uffff", "\uffff", "s"))


def test_a_file_of_nulls_has_no_value_and_one_without_nulls_no_null() -> None:
    nulls = {"numRecords": 10, "minValues": {}, "maxValues": {}, "nullCount": {"n": 10}}
    assert not kept("n > 0", nulls)
    assert not kept("n != 0", nulls)
    assert not kept("n IS NOT NULL", nulls)
    assert kept("n IS NULL", nulls)
    assert kept("n <=> NULL", nulls)
    assert kept("NOT n <=> 5", nulls)
    assert kept("n > 0", {**nulls, "nullCount": {"n": 9}})
    assert kept("n IS NULL", {**nulls, "nullCount": {}})


def test_loose_bounds_of_a_deletion_vector_bind_like_tight_ones() -> None:
    # The protocol: with loose bounds, minimum and maximum still enclose; 0 and all NULLs still mean none and all.
    loose = {**bounds(10, 20, nulls=3), "tightBounds": False}
    assert not kept("n = 5", loose)
    assert kept("n IS NULL", loose)
    assert not kept("n IS NULL", {**bounds(10, 20), "tightBounds": False})
    assert not kept("n IS NOT NULL", {"numRecords": 10, "nullCount": {"n": 10}, "tightBounds": False})


@pytest.mark.parametrize("stats", HOSTILE_STATS)
def test_odd_statistics_neither_raise_nor_hide_a_file(stats: str | None) -> None:
    for where in ("n = 50 OR n = 7", "n = 1 OR n = 100", "s > 'b'", "d < 0", "day = '2024-01-01'", "wide < 0"):
        kept(where, stats)
    if stats is None or "maxValues" not in stats:
        assert kept("n = 5", stats)


def test_of_two_words_the_last_one_counts_as_it_does_for_delta() -> None:
    assert kept("n = 1", '{"numRecords":2,"minValues":{"n":100,"n":1},"maxValues":{"n":200}}')
    assert not kept("n = 1", '{"numRecords":2,"minValues":{"n":1,"n":100},"maxValues":{"n":200}}')


@pytest.mark.parametrize(
    ("where", "text", "expected"),
    [
        ("p = 'x'", "x", True), ("p = 'x'", "y", False), ("p = 'x'", None, False), ("p IS NULL", None, True),
        ("p IS NULL", "", True), ("p = ''", "", True), ("p IS NOT NULL", "", True), ("p IS NULL", "x", False),
        ("p != 'x'", "x", False), ("p = 'x'", "__HIVE_DEFAULT_PARTITION__", True), ("p IN ('a', 'x')", "x", True),
        ("p IS NULL", "__HIVE_DEFAULT_PARTITION__", True), ("p IN ('a')", "x", False), ("p NOT IN ('x')", "x", False),
        ("pi = 5", "5", True), ("pi = 5", "05", True), ("pi = 5", "6", False), ("pi = 5", "", False),
        ("pi IS NULL", "", True), ("pi IS NOT NULL", "", False), ("pi = 5", "five", True), ("pi > 4.5", "5", True),
        ("pi < 2.5", "3", False), ("pi <=> NULL", None, True), ("pi <=> 5", None, False), ("NOT pi <=> 5", None, True),
        ("pd = '2024-01-01'", "2024-01-01", True), ("pd > DATE '2024-01-01'", "2024-01-01", False),
        ("pd < TIMESTAMP '2024-01-01 12:00:00'", "2024-01-01", True),
        ("pd < TIMESTAMP '2024-01-01 00:00:00'", "2024-01-01", False),
        ("pt = '2024-01-01 00:00:00'", "2024-01-01 00:00:00", True),
        ("pt > '2024-01-01'", "2024-01-01 00:00:00", False),
        ("pt = '2024-01-01 00:00:00.5'", "2024-01-01T00:00:00.500000Z", True), ("pm = 1.5", "1.50", True),
        ("pm = 1.5", "1.51", False), ("pf", "true", True), ("pf", "false", False), ("NOT pf", "true", False),
        ("pf IS NOT TRUE", None, True), ("pf = FALSE", "true", False), ("p = \"' OR 1=1 --\"", "' OR 1=1 --", True),
        ("p = \"' OR 1=1 --\"", "x", False),
    ],
)  # fmt: skip
def test_partition_values_decide_exactly(where: str, text: str | None, expected: bool) -> None:
    name = next(name for name in ("pi", "pd", "pt", "pm", "pf", "p") if name in where.split()[:2] or name == "p")
    assert kept(where, None, **{name: text}) is expected


def test_column_mapping_gives_the_names_that_files_know() -> None:
    inner = {"name": "B", "type": "long", "metadata": {"delta.columnMapping.physicalName": "col-2"}}
    outer = {
        "name": "a.x",
        "type": {"type": "struct", "fields": [inner]},
        "metadata": {"delta.columnMapping.physicalName": "col-1"},
    }
    schema = json.dumps({"type": "struct", "fields": [outer]})
    mapped = table_columns(schema, [], {"delta.columnMapping.mode": "name"})
    stats = json.dumps({"numRecords": 1, "minValues": {"col-1": {"col-2": 7}}, "maxValues": {"col-1": {"col-2": 7}}})
    assert mapped.find(["A.X", "b"]).path == ("col-1", "col-2")
    assert not may_match(parse("`a.x`.b = 5", mapped), {}, stats)
    assert may_match(parse("`a.x`.b = 7", mapped), {}, stats)
    assert table_columns(schema, [], {}).find(["a.x", "B"]).path == ("a.x", "B")


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
        ("string", {"__COLLATIONS": {"c": "icu.UNICODE_CI"}}),
        ("binary", {}),
        ("boolean", {}),
        ({"type": "array", "elementType": "long", "containsNull": True}, {}),
        ("interval day to second", {}),
        ("variant", {}),
    ],
)
def test_types_that_do_not_compare_by_their_bounds_stay_in(kind: object, metadata: dict[str, object]) -> None:
    schema = json.dumps({"type": "struct", "fields": [{"name": "c", "type": kind, "metadata": metadata}]})
    found = table_columns(schema, [], {})
    assert may_match(parse("c = 'x'", found), {}, json.dumps(bounds("a", "b", "c")))
    assert not may_match(parse("c = 'x'", found), {}, json.dumps(bounds("a", "b", "c", nulls=10)))


def test_statistics_of_a_float_that_was_widened_are_as_rough_as_a_floats() -> None:
    # The row reads as 0.10000000149011612 where the file says 0.1.
    widened = {"delta.typeChanges": [{"fromType": "float", "toType": "double", "tableVersion": 3}]}
    stats = json.dumps(bounds(0.1, 0.1, "x"))
    for metadata, expected in ((widened, True), ({}, False), ({"delta.typeChanges": "odd"}, False)):
        field = {"name": "x", "type": "double", "metadata": metadata}
        found = table_columns(json.dumps({"type": "struct", "fields": [field]}), [], {})
        assert may_match(parse("x > 0.1D", found), {}, stats) is expected
        assert not may_match(parse("x > 0.2D", found), {}, stats)
        assert may_match(parse("x < 1.7976931348623157e308D", found), {}, stats)


def test_a_varchar_is_a_text() -> None:
    field = {"name": "c", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}}
    found = table_columns(json.dumps({"type": "struct", "fields": [field]}), [], {})
    assert not may_match(parse("c = 'x'", found), {}, json.dumps(bounds("a", "b", "c")))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "empty"), ("   ", "empty"), ("n =", "cannot be read"), ("n = 1; DROP TABLE x", "more than one"),
        ("SELECT 1", "not a condition"), ("DROP TABLE x", "not a condition"), ("nope = 1", "no 'nope'"),
        ("st.nope = 1", "no 'nope'"), ("n", "not a condition"), ("n + 1", "not a condition"), ("5", "not a condition"),
        ("n IN (SELECT 1)", "subquery"), ("EXISTS (SELECT 1)", "subquery"), ("sum(n) > 1", "aggregate"),
        ("count(*) OVER () > 1", "window"), ("n = ?", "parameter"), ("n = :x", "parameter"),
        ("upper(nope) = 'x'", "no 'nope'"),
        ("n = 1 AND (day = 2 OR nope IS NULL)", "no 'nope'"), ("'x'", "not a condition"), ("n = 'x", "cannot be read"),
    ],
)  # fmt: skip
def test_a_wrong_predicate_says_what_is_wrong(where: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(where, columns())
    assert said in str(caught.value)


def test_an_unknown_column_names_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"st\.n"):
        parse("nope = 1", columns())


def test_a_long_chain_is_read_and_an_endless_one_refused() -> None:
    chain = " OR ".join(f"n = {number}" for number in range(300))
    assert not may_match(parse(chain, columns()), {}, json.dumps(bounds(1000, 2000)))
    with pytest.raises(UsageError, match="deeply"):
        parse("(" * 5000 + "n = 1" + ")" * 5000, columns())


def test_a_long_list_of_partition_values_is_one_leaf_and_of_others_a_range() -> None:
    listed = ", ".join(map(str, range(100)))
    assert isinstance(parse(f"pi IN ({listed})", columns()), OneOf)
    assert not kept(f"n IN ({listed})", bounds(100, 200))
    assert kept(f"n IN ({listed})", bounds(50, 200))


def test_constants_beyond_the_type_are_known_to_be_so() -> None:
    assert parse("small = 300", columns()) is False
    assert isinstance(parse("small < 300", columns()), HasValue)
    assert isinstance(parse("small >= 127", columns()), Compare)
    assert kept("small = 127", bounds(0, 127, "small"))
    assert isinstance(parse("small IS NULL", columns()), HasNull)


def test_spark_compares_as_doubles_where_one_side_is_a_double() -> None:
    # 9007199254740993 and 9007199254740992 are the same double.
    assert kept("n = 9007199254740992D", bounds(9007199254740993, 9007199254740993))
