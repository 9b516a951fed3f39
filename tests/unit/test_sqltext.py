from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem import sqltext
from mainstem.errors import UsageError

TRICKY = """
-- name: one  with a remark
SELECT ':no' AS a, ":no" AS b, x::text, :id /* :no ; */ -- :no ;
FROM t WHERE y LIKE '50%' AND z = :other_id;
"""


def dollar(name: str) -> str:
    return f"${name}"


def pyformat(name: str) -> str:
    return f"%({name})s"


def test_only_real_parameters_are_bound() -> None:
    assert sqltext.bind(TRICKY, dollar).names == {"id", "other_id"}


def test_text_around_parameters_stays_as_it_is() -> None:
    assert sqltext.bind(TRICKY, lambda name: f":{name}").text == TRICKY


def test_percent_is_doubled_for_drivers_that_want_it() -> None:
    bound = sqltext.bind("SELECT '50%' WHERE a = :a", pyformat, double_percent=True)
    assert bound.text == "SELECT '50%%' WHERE a = %(a)s"


def test_a_missing_value_is_named() -> None:
    with pytest.raises(UsageError, match="other_id"):
        sqltext.bind(TRICKY, dollar).pick({"id": 1})


def test_values_that_a_statement_does_not_want_are_left_out() -> None:
    assert sqltext.bind("SELECT :a", dollar).pick({"a": 1, "b": 2}) == {"a": 1}


def test_a_script_splits_at_real_semicolons_only() -> None:
    script = "CREATE TABLE a (x text DEFAULT ';');\n-- a remark; with a mark\nDO $$ BEGIN; END $$;\n-- the end;\n"
    assert [statement.splitlines()[-1] for statement in sqltext.statements(script)] == [
        "CREATE TABLE a (x text DEFAULT ';')",
        "DO $$ BEGIN; END $$",
    ]


def test_a_last_statement_needs_no_semicolon() -> None:
    assert list(sqltext.statements("SELECT 1; SELECT 2")) == ["SELECT 1", "SELECT 2"]


def test_blocks_are_found_by_name() -> None:
    blocks = sqltext.named_blocks("-- a file\n-- name: a\nSELECT 1;\n\n-- name: b\nSELECT 2;\n")
    assert blocks == {"a": "SELECT 1", "b": "SELECT 2"}


def test_dropped_tables_are_read_from_statements_not_remarks() -> None:
    script = "-- DROP TABLE no;\nDROP VIEW v; drop table if exists b; DROP TABLE a;"
    assert sqltext.dropped_tables(script) == ["b", "a"]


def test_a_fragment_that_an_engine_lacks_is_named() -> None:
    with pytest.raises(UsageError, match="lock_rows"):
        sqltext.render("SELECT 1 {{lock_rows}}", {})


def test_a_fragment_in_a_literal_is_text() -> None:
    assert sqltext.render("SELECT '{{x}}' {{x}}", {"x": "y"}) == "SELECT '{{x}}' y"


@pytest.mark.parametrize("value", ["x", "1", b"1", 1.0, True, None, ["a"]])
def test_nothing_but_integers_and_uuids_enters_jdbc_text(value: object) -> None:
    with pytest.raises(UsageError, match="integers and UUIDs"):
        sqltext.jdbc_literal(value)  # type: ignore[arg-type]


@given(st.one_of(st.integers(), st.uuids()))
def test_jdbc_text_reads_back_as_the_value(value: int | UUID) -> None:
    text = sqltext.jdbc_literal(value)
    assert (int(text) if isinstance(value, int) else UUID(text.strip("'"))) == value


def test_every_query_of_the_package_is_found() -> None:
    assert {"tables_all", "migrations_seen"} <= sqltext.queries().keys()
