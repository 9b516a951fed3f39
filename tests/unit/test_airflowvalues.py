"""What Airflow hands over becomes values of ours, without Airflow."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from jinja2 import Environment

from mainstem import UsageError
from mainstem.airflowvalues import COMMIT_INFO_TEMPLATE, connection_uri, run_info, run_info_of
from mainstem.uri import holds_password, parse_uri

RUN = {"dag_id": "nightly", "task_id": "load", "run_id": "manual__2026-11-18T00:00:00", "try_number": 2}


def connection(**fields: Any) -> Any:
    """A connection as Airflow has it."""
    empty = dict.fromkeys(("host", "login", "password", "schema", "port"))
    return SimpleNamespace(conn_id="lake", **{**empty, "extra_dejson": {}, **fields})


def test_a_run_is_named_by_its_context() -> None:
    task = SimpleNamespace(**RUN, map_index=3)
    assert run_info({"ti": task}) == {"airflow": {**RUN, "map_index": 3}}


def test_a_run_is_named_by_the_environment_of_what_it_starts() -> None:
    environ = {
        "AIRFLOW_CTX_DAG_ID": "nightly",
        "AIRFLOW_CTX_TASK_ID": "load",
        "AIRFLOW_CTX_DAG_RUN_ID": RUN["run_id"],
        "AIRFLOW_CTX_TRY_NUMBER": "2",
        "AIRFLOW_CTX_DAG_OWNER": "somebody",
    }
    assert run_info_of({key: str(value) for key, value in environ.items()}) == {"airflow": RUN}
    assert run_info_of({"AIRFLOW_CTX_TRY_NUMBER": "2", "PATH": "/bin"}) == {}


def test_the_template_gives_the_same_as_the_context() -> None:
    task = SimpleNamespace(**{**RUN, "run_id": 'a "quoted" <run>'}, map_index=-1)
    text = Environment().from_string(COMMIT_INFO_TEMPLATE).render(ti=task)
    assert orjson.loads(text) == run_info({"ti": task})


def test_a_connection_to_postgres_is_a_catalog_with_every_character_of_its_password() -> None:
    given = connection(
        conn_type="postgres", host="db.example.org", port=5433, login="e@tl", password="p/:@?#% ${X}", schema="lake",
        extra_dejson={"schema": "cat alog", "sslmode": "require"},
    )  # fmt: skip
    text = connection_uri(given)
    found = parse_uri(text, environ={})
    assert (found.engine, found.host, found.port, found.user) == ("postgres", "db.example.org", 5433, "e@tl")
    assert (found.database, found.schema, found.options["sslmode"]) == ("lake", "cat alog", "require")
    assert found.password is not None
    assert found.password.reveal() == "p/:@?#% ${X}"
    assert holds_password(text)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"conn_type": "sqlite", "host": "/lake/cat.db"}, "sqlite:////lake/cat.db"),
        ({"conn_type": "sqlite", "schema": "/lake/cat.db"}, "sqlite:////lake/cat.db"),
        ({"conn_type": "generic", "extra_dejson": {"uri": "duckdb:////lake/c.duckdb"}}, "duckdb:////lake/c.duckdb"),
        ({"conn_type": "postgres", "host": "h", "schema": "db"}, "postgresql://h/db"),
    ],
)
def test_other_connections_are_catalogs_too(fields: dict[str, Any], expected: str) -> None:
    assert connection_uri(connection(**fields)) == expected
    parse_uri(expected)


def test_a_connection_to_something_else_is_refused_by_its_name() -> None:
    with pytest.raises(UsageError, match=re.escape("connection lake is of type ftp")):
        connection_uri(connection(conn_type="ftp", host="h", password="secret"))


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("postgresql://u:secret@h/db", True),
        ("postgresql://u:half${REST}@h/db", True),
        ("deltasql://postgres/u:secret@h/db/lake", True),
        ("postgresql://u:${PASSWORD}@h/db", False),
        ("postgresql://${USER}:${PASSWORD}@${HOST}:${PORT}/${DB}", False),
        ("postgresql://u@h/db", False),
        ("${LAKE}", False),
        ("sqlite:////lake/cat.db", False),
    ],
)
def test_a_password_in_a_uri_is_told_from_the_name_of_a_variable(text: str, held: bool) -> None:
    assert holds_password(text) is held
