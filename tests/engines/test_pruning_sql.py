"""Pruning by SQL keeps what pruning in Python keeps, on every engine; what it keeps beyond that is known by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from pruning_cases import (
    HOSTILE_STATS,
    HOSTILE_TEXTS,
    ODD_MOMENTS,
    PREDICATES,
    Described,
    File,
    Predicate,
    columns,
    files,
)

from mainstem import Catalog, open_catalog
from mainstem.deltalog.bodies import num_records
from mainstem.engines import Engine
from mainstem.pruning import bound_condition, inlined_condition, may_match, parse

COLUMNS = ("table_id", "version", "size_bytes", "modification_time", "seq", "path_bucket", "data_change", "file_key")
COLUMNS += ("path", "partition_values", "stats", "num_records")
COMPACT: dict[str, Any] = {"separators": (",", ":"), "ensure_ascii": False}


@dataclass(frozen=True)
class Filled:
    """A catalog with files of every kind, for many predicates."""

    engine: Engine
    given: list[File] = field(repr=False)


def put(catalog: Catalog, given: Sequence[File]) -> None:
    """The files as one table; the path of each is its number."""
    with catalog.store.writing() as queries:
        table_id = str(uuid4())
        queries.connection.execute("DELETE FROM dl_add_files")
        queries.connection.execute(
            "INSERT INTO dl_tables (table_id, name, location, authority, created_at, protocol_min_reader, "
            f"protocol_min_writer) VALUES ('{table_id}', '{table_id}', 'l', 'log', '2026-11-18T00:00:00Z', 1, 2)"
        )
        queries.copy(
            "dl_add_files",
            COLUMNS,
            (
                (table_id, 0, 1, 1, number, 0, True, bytes(16), str(number),
                 json.dumps(file.partition_values, **COMPACT), file.stats,
                 None if file.stats is None else num_records(file.stats))
                for number, file in enumerate(given)
            ),
        )  # fmt: skip


def by_sql(engine: Engine, where: str, described: Described | None = None) -> set[int]:
    """The files that SQL keeps; with bound values and with inlined ones it keeps the same."""
    condition, values = bound_condition(where, described or Described(), engine)
    inlined = inlined_condition(where, described or Described(), engine)
    with engine.reading() as connection:
        bound = engine.execute(connection, f"SELECT path FROM dl_add_files WHERE ({condition})", values).fetchall()
        plain = engine.execute(connection, f"SELECT path FROM dl_add_files WHERE ({inlined})", {}).fetchall()
    assert sorted(bound) == sorted(plain)
    return {int(row[0]) for row in bound}


def by_python(where: str, given: Sequence[File]) -> set[int]:
    condition = parse(where, columns())
    return {number for number, file in enumerate(given) if may_match(condition, file.partition_values, file.stats)}


def sample(how_many: int) -> list[File]:
    """Files of every kind, the same in each run."""
    found: list[File] = []

    @seed(20261118)
    @settings(max_examples=how_many, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(files())
    def draw(file: File) -> None:
        found.append(file)

    draw()
    return found


def odd_files() -> list[File]:
    nothing: dict[str, str | None] = dict.fromkeys(("p", "pi", "pd", "pt", "pm", "pf"))
    partitions = [
        *HOSTILE_TEXTS,
        "5",
        "05",
        "+5",
        "1e3",
        "2024-02-29",
        "2024-02-30",
        "2024-02-28 00:00:00+01:00",
    ]
    return [
        *(File(nothing, stats) for stats in (*HOSTILE_STATS, *ODD_MOMENTS)),
        *(File(dict.fromkeys(nothing, text), None) for text in partitions),
        File({}, None),
    ]


@pytest.fixture(scope="module", params=("postgres", "sqlite", "duckdb"))
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """A catalog with files of every kind, for many predicates."""
    if request.param == "postgres":
        address = f"{request.getfixturevalue('postgres_uri')}?schema=pruning_{uuid4().hex[:12]}"
    else:
        address = f"{request.param}:///{tmp_path_factory.mktemp('pruning')}/lake.{request.param}"
    given = [*odd_files(), *sample(150)]
    with open_catalog(address) as catalog:
        catalog.migrate()
        put(catalog, given)
        yield Filled(catalog.engine, given)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=PREDICATES)
def test_sql_keeps_every_file_that_python_keeps(filled: Filled, predicate: Predicate) -> None:
    engine, given = filled.engine, filled.given
    missing = by_python(predicate.sql, given) - by_sql(engine, predicate.sql)
    assert not missing, (
        predicate.sql,
        [given[number].stats for number in missing][:2],
        [given[number].partition_values for number in missing][:2],
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=PREDICATES)
def test_sql_that_is_narrowed_to_partitions_keeps_what_python_keeps_and_nothing_new(
    filled: Filled, predicate: Predicate
) -> None:
    engine, given = filled.engine, filled.given
    texts = sorted({json.dumps(file.partition_values, **COMPACT)[:256] for file in given} - {"{}"})
    narrowed = by_sql(engine, predicate.sql, Described(partition_texts=texts))
    assert by_python(predicate.sql, given) <= narrowed <= by_sql(engine, predicate.sql)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=PREDICATES.filter(lambda one: not any(f"`{name}`" in one.sql for name in ("wide", "f", "d", "pm"))))
def test_sql_keeps_no_other_file_of_known_writers(filled: Filled, predicate: Predicate) -> None:
    engine, given = filled.engine, filled.given
    regular = {
        number
        for number, file in enumerate(given)
        # A leap day may not exist, and an escape may stand for anything: files that show one stay in.
        if file.rows and "-02-29" not in f"{file.stats}{file.partition_values}" and "\\" not in f"{file.stats}"
        and "\\" not in json.dumps(file.partition_values, **COMPACT)
    }  # fmt: skip
    more = (by_sql(engine, predicate.sql) - by_python(predicate.sql, given)) & regular
    assert not more, (predicate.sql, [(given[number].stats, given[number].partition_values) for number in more][:2])


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("column", ["d", "pi"])
def test_a_constant_near_the_end_of_all_doubles_loses_no_file(filled: Filled, column: str, sign: str) -> None:
    for operator in ("<", "<=", ">", ">=", "="):
        where = f"{column} {operator} {sign}1.7976931348623157e+308D"
        assert by_python(where, filled.given) <= by_sql(filled.engine, where), where


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_partition_value_is_a_text_and_nothing_else(filled: Filled, text: str) -> None:
    engine, given = filled.engine, filled.given
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    found = by_sql(engine, f"p = {quoted}")
    wanted = {number for number, file in enumerate(given) if file.partition_values.get("p") == text}
    texts = [json.dumps(file.partition_values, **COMPACT) for file in given]
    unsure = {
        number for number, text in enumerate(texts) if "\\u" in text or '"p":"__HIVE_DEFAULT_PARTITION__"' in text
    }
    assert wanted
    assert wanted <= found <= wanted | unsure


def test_statistics_are_read_from_texts_of_any_layout(catalog: Catalog) -> None:
    usual = '{"numRecords":2,"minValues":{"n":1,"s":"a"},"maxValues":{"n":3,"s":"b"},"nullCount":{"n":0,"s":0}}'
    texts = [
        usual,
        usual.replace(":", ": ").replace(",", ", "),
        usual.replace('"a"', '"a}{"'),
        usual.replace('"a"', '"a\\",\\"n\\":9"'),
        '{"nullCount":{"n":0},"maxValues":{"n":3},"minValues":{"n":1},"numRecords":2}',
        usual.replace('"s":"a"', '"st":{"n":7}'),
        usual[:-1] + ',"tightBounds":true}',
    ]
    put(catalog, [File({}, text) for text in texts])
    assert by_sql(catalog.engine, "n = 2") == set(range(len(texts)))
    assert by_sql(catalog.engine, "n = 4") == set()
    assert by_sql(catalog.engine, "n = 0") == set()
    assert by_sql(catalog.engine, "n IS NULL") == set()
    assert by_sql(catalog.engine, "st.n < 0") == set(range(len(texts))) - {5}


@pytest.mark.parametrize(
    "name", ['q"t', "a/b~c", "x.y", "[0]", "5", "$", "naïve 🦆", "a,b:c", "}", "'; DROP TABLE x --"]
)
def test_columns_of_any_name_are_found_or_decide_nothing(catalog: Catalog, name: str) -> None:
    field = {"name": name, "type": "long", "nullable": True, "metadata": {}}
    described = Described(json.dumps({"type": "struct", "fields": [field]}), (), {})
    stats = [
        json.dumps(
            {"numRecords": 1, "minValues": {name: value}, "maxValues": {name: value}, "nullCount": {name: 0}}, **COMPACT
        )
        for value in (1, 2, 3)
    ]
    put(catalog, [File({}, text) for text in stats])
    found = by_sql(catalog.engine, f"`{name}` = 2", described)
    assert found == {1} or ('"' in name and found == {0, 1, 2})


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(given_files=st.lists(files(), min_size=1, max_size=8), predicate=PREDICATES)
def test_no_file_with_a_matching_row_is_dropped(
    catalog: Catalog, given_files: list[File], predicate: Predicate
) -> None:
    put(catalog, given_files)
    found = by_sql(catalog.engine, predicate.sql)
    matching = {n for n, file in enumerate(given_files) if any(predicate.truth(row) for row in file.rows)}
    assert matching <= found, predicate.sql
