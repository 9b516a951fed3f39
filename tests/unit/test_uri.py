"""Every spelling of a catalog's place, everything that is not one, and that no password ever shows."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import string
import time
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mainstem.errors import UsageError, mask
from mainstem.uri import CatalogUri, Secret, parse_uri, shown_uri

ENV = {
    "PW": "p@s/s%41:w?#&",
    "HOST": "db.example",
    "PORT": "6543",
    "DB": "a/b?c",
    "SIX": "::1",
    "LAKE": "/data/la?ke.db",
}
SENTINEL = "hunter2xyzzy"

# What is not named here has the default of a place on Postgres: localhost, 5432, nobody, public.
POSTGRES: dict[str, dict[str, Any]] = {
    "postgresql:///db": {},
    "postgres:///db": {},
    "POSTGRESQL:///db": {},
    "postgresql://h/db": {"host": "h"},
    "postgresql://h:1/db": {"host": "h", "port": 1},
    "postgresql://h:65535/db": {"host": "h", "port": 65535},
    "postgresql://:5433/db": {"port": 5433},
    "postgresql://u@h/db": {"user": "u", "host": "h"},
    "postgresql://u@/db": {"user": "u"},
    "postgresql://@h/db": {"host": "h"},
    "postgresql://u:@h/db": {"user": "u", "host": "h"},
    "postgresql://u:pw@h:5433/db": {"user": "u", "password": "pw", "host": "h", "port": 5433},
    "postgresql://u:p:w@h/db": {"user": "u", "password": "p:w", "host": "h"},
    "postgresql://u%40x:p%40%2F%25%3A@h/d%2Fb": {"user": "u@x", "password": "p@/%:", "host": "h", "database": "d/b"},
    "postgresql://u:${PW}@h/db": {"user": "u", "password": ENV["PW"], "host": "h"},
    "postgresql://u:a${PW}%41@h/db": {"user": "u", "password": f"a{ENV['PW']}A", "host": "h"},
    "postgresql://u:%24%7BPW%7D@h/db": {"user": "u", "password": "${PW}", "host": "h"},
    "postgresql://u:$PW@h/db": {"user": "u", "password": "$PW", "host": "h"},
    "postgresql://${HOST}:${PORT}/${DB}": {"host": "db.example", "port": 6543, "database": "a/b?c"},
    "postgresql://[::1]/db": {"host": "::1"},
    "postgresql://u@[2001:db8::2]:5433/db": {"user": "u", "host": "2001:db8::2", "port": 5433},
    "postgresql://[${SIX}]:5433/db": {"host": "::1", "port": 5433},
    "postgresql://${SIX}:5433/db": {"host": "::1", "port": 5433},
    "postgresql://[fe80::1%25eth0]/db": {"host": "fe80::1%eth0"},
    "postgresql://%2Fvar%2Frun%2Fpostgresql/db": {"host": "/var/run/postgresql"},
    "postgresql:///db?": {},
    "postgresql:///db?schema=lake": {"schema": "lake"},
    "postgresql:///db?schema=la%20ke&table=sales.orders": {"schema": "la ke", "table": "sales.orders"},
    "postgresql:///db?table=a.b.c+d": {"table": "a.b.c+d"},
    "postgresql:///db?sslmode=verify-full&sslrootcert=/etc/ca.pem": {
        "options": {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem"}
    },
    "postgresql:///db?sslcert=c&sslkey=k&application_name=a%40b&target_session_attrs=read-write": {
        "options": {"sslcert": "c", "sslkey": "k", "application_name": "a@b", "target_session_attrs": "read-write"}
    },
    "postgresql:///db?connect_timeout=3&pool_size=08": {"overrides": {"connect_timeout": "3", "pool_size": "8"}},
    "deltasql://postgres/db/lake": {"schema": "lake"},
    "deltasql://postgresql/db/lake": {"schema": "lake"},
    "deltasql://postgres/db/lake/sales.orders": {"schema": "lake", "table": "sales.orders"},
    "deltasql://postgres/db/lake?table=sales.orders": {"schema": "lake", "table": "sales.orders"},
    "deltasql://postgres/u@h/db/lake": {"user": "u", "host": "h", "schema": "lake"},
    "deltasql://postgres/@h:5433/db/lake": {"host": "h", "port": 5433, "schema": "lake"},
    "deltasql://postgres/u:pw@h:5433/db/lake/a.b.c?sslmode=require": {
        "user": "u",
        "password": "pw",
        "host": "h",
        "port": 5433,
        "schema": "lake",
        "table": "a.b.c",
        "options": {"sslmode": "require"},
    },
    "deltasql://postgres/u:${PW}@[::1]:5433/${DB}/l%2Fk/t%2Fu": {
        "user": "u",
        "password": ENV["PW"],
        "host": "::1",
        "port": 5433,
        "database": "a/b?c",
        "schema": "l/k",
        "table": "t/u",
    },
}

# The working directory is /work/here in these.
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "{e}:////abs/lake.db": ("/abs/lake.db", {}),
    "{e}://///abs//./lake.db": ("/abs/lake.db", {}),
    "{e}:///lake.db": ("{cwd}/lake.db", {}),
    "{e}:///./sub/lake.db": ("{cwd}/sub/lake.db", {}),
    "{e}:///../lake.db": ("{parent}/lake.db", {}),
    "{e}:////../lake.db": ("/lake.db", {}),
    "{e}:////abs/link/../lake.db": ("/abs/link/../lake.db", {}),
    "{e}:////abs/my lake%3F%23.db": ("/abs/my lake?#.db", {}),
    "{e}:////home/a:b@c/lake.db": ("/home/a:b@c/lake.db", {}),
    "{e}:////abs/%E2%82%AC.db": ("/abs/€.db", {}),
    "{e}:///${{LAKE}}": ("/data/la?ke.db", {}),
    "{e}:////x/${{HOST}}.db": ("/x/db.example.db", {}),
    "{e}:////abs/lake.db?table=sales.orders": ("/abs/lake.db", {"table": "sales.orders"}),
    "{e}:////abs/lake.db?busy_timeout=5&pool_size=2&connect_timeout=1": (
        "/abs/lake.db",
        {"overrides": {"busy_timeout": "5", "pool_size": "2", "connect_timeout": "1"}},
    ),
    "deltasql://{e}//abs/meta.db": ("/abs/meta.db", {}),
    "deltasql://{e}//abs/meta.db?table=t": ("/abs/meta.db", {"table": "t"}),
    "deltasql://{e}/rel.db": ("{cwd}/rel.db", {}),
    "deltasql://{e}/sub/rel.db?table=a.b.c": ("{cwd}/sub/rel.db", {"table": "a.b.c"}),
    "deltasql://{e}/${{LAKE}}": ("/data/la?ke.db", {}),
}

# Text, and words that its error must say.
WRONG: dict[str, str] = {
    "": "empty",
    "lake.db": "no scheme",
    "/abs/lake.db": "no scheme",
    "u:pw@h/db": "no scheme",
    "://h/db": "no scheme",
    "mysql://h/db": "scheme `mysql` is not known",
    "jdbc:postgresql://h/db": "no scheme",
    "postgresql:h/db": "two slashes",
    "postgresql:/h/db": "two slashes",
    "sqlite:lake.db": "two slashes",
    "sqlite:/abs/lake.db": "two slashes",
    "sqlite::memory:": "two slashes",
    "sqlite://lake.db": "three slashes before a relative path and four",
    "sqlite://": "path is empty",
    "sqlite:///": "path is empty",
    "sqlite:////": "directory",
    "sqlite:////abs/dir/": "directory",
    "duckdb:///dir/.": "directory",
    "duckdb:///dir/..": "directory",
    "sqlite:///:memory:": "`:memory:`",
    "duckdb:///:memory:named": "`:memory:`",
    "deltasql://sqlite/:memory:": "`:memory:`",
    "deltasql://sqlite": "path is empty",
    "deltasql://sqlite/": "path is empty",
    "sqlite:////abs/a#b.db": "%23",
    "sqlite:////abs/lake.db?schema=s": "option `schema` is not known",
    "sqlite:////abs/lake.db?sslmode=require": "option `sslmode` is not known",
    "postgresql://h": "database is empty",
    "postgresql://h/": "database is empty",
    "postgresql://h/?schema=s": "database is empty",
    "postgresql://h/db/": "nothing else follows the host",
    "postgresql://h/db/schema": "nothing else follows the host",
    "postgresql://:pw@h/db": "without a user",
    "postgresql://u@x@h/db": "%40",
    "postgresql://u@h/d@b": "%40",
    "postgresql://u:p/w@h/db": "%40",
    "postgresql://u:p?w@h/db": "%40",
    "postgresql://u:p#w@h/db": "%23",
    "postgresql://u:p w@h/db": "%20",
    "postgresql://h/db#x": "%23",
    "postgresql://h/db?application_name=a@b": "%40",
    "postgresql://h:/db": "port is empty",
    "postgresql://h:0/db": "port is not a number from 1 to 65535",
    "postgresql://h:65536/db": "port is not a number from 1 to 65535",
    "postgresql://h:-1/db": "port is not a number from 1 to 65535",
    "postgresql://h:٣/db": "port is not a number from 1 to 65535",
    "postgresql://u:pw@h:notaport/db": "port is not a number from 1 to 65535",
    "postgresql://::1/db": "IPv6 host stands in brackets",
    "postgresql://[::1/db": "brackets",
    "postgresql://[::1]5432/db": "brackets",
    "postgresql://[::1]:/db": "port is empty",
    "postgresql://[]/db": "host is empty",
    "postgresql://[localhost]/db": "no IPv6 address",
    "postgresql://[1.2.3.4]/db": "no IPv6 address",
    "postgresql://h]/db": "characters that no host has",
    "postgresql://a%2Fb/db": "characters that no host has",
    "postgresql://a%3Ab/db": "no IPv6 address",
    "postgresql://${DB}/db": "characters that no host has",
    "postgresql://${EMPTY}/db": "host is empty",
    "postgresql:///db?schema=": "option `schema` is empty",
    "postgresql:///db?table=": "option `table` is empty",
    "postgresql:///db?sslmode": "option `sslmode` has no value",
    "postgresql:///db?color=red": "option `color` is not known",
    "postgresql:///db?busy_timeout=5": "option `busy_timeout` is not known",
    "postgresql:///db?SSLMODE=require": "option `SSLMODE` is not known",
    "postgresql:///db?sslmode=a&sslmode=a": "option `sslmode` is given twice",
    "postgresql:///db?table=a&table=b": "option `table` is given twice",
    "postgresql:///db?sslmode=a&&table=b": "not a plain word",
    "postgresql:///db?${PW}=1": "not a plain word",
    "postgresql:///db?pool_size=0": "option `pool_size` is not a positive whole number",
    "postgresql:///db?pool_size=-1": "option `pool_size` is not a positive whole number",
    "postgresql:///db?connect_timeout=1.5": "option `connect_timeout` is not a positive whole number",
    "postgresql:///db?connect_timeout=9999999999": "option `connect_timeout` is not a positive whole number",
    "sqlite:///l.db?busy_timeout=soon": "option `busy_timeout` is not a positive whole number",
    "deltasql://": "not followed by postgres/, sqlite/ or duckdb/",
    "deltasql://mysql/db/s": "not followed by postgres/, sqlite/ or duckdb/",
    "deltasql://u:pw@h/db/s": "not followed by postgres/, sqlite/ or duckdb/",
    "deltasql:///postgres/db/s": "not followed by postgres/, sqlite/ or duckdb/",
    "deltasql://postgres": "needs a database and a schema",
    "deltasql://postgres/db": "needs a database and a schema",
    "deltasql://postgres/u@h/db": "needs a database and a schema",
    "deltasql://postgres/db/": "schema is empty",
    "deltasql://postgres//schema": "database is empty",
    "deltasql://postgres/db/schema/": "table is empty",
    "deltasql://postgres/db/schema/sales/orders": "sales.orders",
    "deltasql://postgres/h:5432/db/schema": "without its `@`",
    "deltasql://postgres/u:p/w@h/db/s": "%40",
    "deltasql://postgres/db/s?schema=t": "schema is given twice",
    "deltasql://postgres/db/s/t?table=t": "table is given twice",
    "postgresql://u:%zz@h/db": "without two hexadecimal digits in its password",
    "postgresql://h/100%": "without two hexadecimal digits in its database",
    "sqlite:///a%2.db": "without two hexadecimal digits in its path",
    "postgresql://h/%FF": "in its database are not UTF-8",
    "sqlite:///%C3.db": "in its path are not UTF-8",
    "sqlite:///%ED%B2%80.db": "in its path are not UTF-8",
    "sqlite:///a\0.db": "control character",
    "sqlite:///a\n.db": "control character",
    "sqlite:///a\x7f.db": "control character",
    "sqlite:///a\x85.db": "control character",
    "sqlite:///a\udc80.db": "invalid UTF-8",
    "sqlite:///a%00.db": "control character",
    "postgresql://u:%0A@h/db": "control character or invalid UTF-8 in its password",
    "postgresql://u:${NEWLINE}@h/db": "control character or invalid UTF-8 in its password",
    "postgresql://u:${MISSING}@h/db": "${MISSING}",
    "${MISSING}": "${MISSING}",
    "${EMPTY}": "EMPTY is empty",
    "${SELF}": "no scheme",
    "postgresql://u:${PW@h/db": "not closed",
    "postgresql://u:${}@h/db": "not closed",
    "postgresql://u:${A${PW}}@h/db": "not closed",
    "sqlite:///${1X}.db": "not closed",
}
WRONG_ENV = {**ENV, "EMPTY": "", "SELF": "${SELF}", "NEWLINE": "a\nb"}


def everything_said(error: BaseException) -> str:
    """All that a log, a report or a traceback could show of an error."""
    parts = ["".join(traceback.format_exception_only(error)), repr(error), str(error), repr(error.__dict__)]
    if isinstance(error, UsageError):
        parts.append(json.dumps(error.as_dict()))
    for other in (error.__cause__, error.__context__):
        parts += [everything_said(other)] if other else []
    return "\n".join(parts)


def everything_shown(uri: CatalogUri) -> str:
    fields = dataclasses.asdict(uri)
    password = f"{uri.password} {uri.password!r} {uri.password:>9} {fields['password']}" if uri.password else ""
    return f"{uri} {uri!r} {uri.masked} {uri!s:>9} {[uri]} {fields} {password}"


@pytest.mark.parametrize("text", POSTGRES)
def test_every_form_of_a_postgres_place_is_read(text: str) -> None:
    expected: dict[str, Any] = {
        "engine": "postgres",
        "database": "db",
        "host": "localhost",
        "port": 5432,
        "user": None,
        "password": None,
        "schema": "public",
        "table": None,
        "options": {},
        "overrides": {},
    } | POSTGRES[text]
    uri = parse_uri(text, environ=ENV)
    found = {name: getattr(uri, name) for name in expected}
    found["password"] = uri.password.reveal() if uri.password else None
    assert found == expected


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("form", FILES)
def test_every_form_of_a_file_becomes_an_absolute_path(
    engine: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cwd = Path(os.getcwd())
    path, rest = FILES[form]
    uri = parse_uri(form.format(e=engine), environ=ENV)
    assert (uri.engine, uri.database) == (engine, path.format(cwd=cwd, parent=cwd.parent))
    assert (uri.host, uri.port, uri.user, uri.password) == (None, None, None, None)
    assert {"table": uri.table, "options": uri.options, "overrides": uri.overrides} == {
        "table": None,
        "options": {},
        "overrides": {},
    } | rest


def test_a_relative_path_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uri = parse_uri("sqlite:///lake.db", environ={})
    before = str(uri)
    monkeypatch.chdir("/")
    assert str(uri) == before
    assert uri.database.startswith(str(Path(tmp_path).resolve()))


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_uri_says_what_is_wrong_and_which_forms_are_right(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_uri(text, environ=WRONG_ENV)
    assert WRONG[text] in caught.value.message
    hint = caught.value.hint or ""
    for form in (
        "postgresql://user@host:5432/db?schema=",
        "sqlite:////absolute",
        "sqlite:///relative",
        "duckdb:////absolute",
        "deltasql://postgres/user@host:5432/db/schema/table",
        "deltasql://sqlite//absolute",
        "deltasql://duckdb//absolute",
        "`:${NAME}`",
    ):
        assert form in hint
    assert caught.value.exit_code == 2


def test_a_whole_uri_may_stand_in_one_variable_and_is_then_parsed_as_text() -> None:
    env = {"LAKE": "postgresql://u:${PW}@h%2Ed/db", "PW": "%41@"}
    uri = parse_uri("${LAKE}", environ=env)
    assert uri.host == "h.d"
    assert uri.password == Secret("%41@")


def test_the_environment_is_read_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSTEM_TEST_LAKE_NAME", "first")
    assert parse_uri("sqlite:////${MAINSTEM_TEST_LAKE_NAME}").database == "/first"
    monkeypatch.setenv("MAINSTEM_TEST_LAKE_NAME", "second")
    assert parse_uri("sqlite:////${MAINSTEM_TEST_LAKE_NAME}").database == "/second"
    with pytest.raises(UsageError, match="MAINSTEM_TEST_LAKE_NAME"):
        parse_uri("sqlite:////${MAINSTEM_TEST_LAKE_NAME}", environ={})


CANONICAL = {
    "postgres://u:pw@H/db": "postgresql://u:***@H:5432/db?schema=public",
    "postgresql:///db": "postgresql://localhost:5432/db?schema=public",
    "deltasql://postgres/u:pw@[::1]/db/lake/a.b": "postgresql://u:***@[::1]:5432/db?schema=lake&table=a.b",
    "postgresql://u%40:x@h/d%2Fb?sslmode=a&pool_size=2&application_name=b": (
        "postgresql://u%40:***@h:5432/d%2Fb?schema=public&application_name=b&sslmode=a&pool_size=2"
    ),
    "deltasql://sqlite//abs/a b%3F.db?table=t": "sqlite:////abs/a%20b%3F.db?table=t",
    "duckdb:////abs/lake.duckdb": "duckdb:////abs/lake.duckdb",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_a_place_shows_itself_in_its_canonical_form(text: str) -> None:
    uri = parse_uri(text, environ={})
    assert str(uri) == uri.masked == f"{uri}" == CANONICAL[text]
    assert repr(uri) == f"CatalogUri({CANONICAL[text]!r})"


@pytest.mark.parametrize("text", [*POSTGRES, *(form.format(e="sqlite") for form in FILES)])
def test_the_canonical_form_leads_back_to_the_same_place(text: str) -> None:
    uri = parse_uri(text, environ=ENV)
    again = parse_uri(str(uri), environ={})
    assert dataclasses.replace(again, password=uri.password) == uri
    assert (again.password is None) == (uri.password is None)


def test_a_table_can_be_put_on_and_taken_off() -> None:
    uri = parse_uri("postgresql://u:pw@h/db?sslmode=a&pool_size=2", environ={})
    named = uri.with_table("sales.orders.eu")
    assert named.table == "sales.orders.eu"
    assert named != uri
    assert named.without_table() == uri
    for wrong in ("", "a\0b"):
        with pytest.raises(UsageError, match="table"):
            uri.with_table(wrong)


def test_a_place_is_a_value_that_can_be_hashed_copied_and_pickled_but_not_changed() -> None:
    text = "postgresql://u:pw@h/db?sslmode=a&pool_size=2"
    uri = parse_uri(text, environ={})
    for twin in (parse_uri(text, environ={}), copy.deepcopy(uri), pickle.loads(pickle.dumps(uri))):
        assert twin == uri
        assert hash(twin) == hash(uri)
        assert twin.password is not None
        assert twin.password.reveal() == "pw"
    assert uri != parse_uri(text.replace("pw", "px"), environ={})
    with pytest.raises(dataclasses.FrozenInstanceError):
        uri.host = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        uri.options["sslmode"] = "b"  # type: ignore[index]
    assert "sslrootcert" not in uri.options
    assert repr(uri.options) == "{'sslmode': 'a'}"


def test_a_secret_shows_itself_to_reveal_alone() -> None:
    secret = Secret(SENTINEL)
    assert secret.reveal() == SENTINEL
    assert secret == Secret(SENTINEL) == pickle.loads(pickle.dumps(secret))
    assert secret != Secret("other")
    assert secret != SENTINEL
    assert len({secret, Secret(SENTINEL)}) == 1
    assert SENTINEL not in f"{secret} {secret!r} {secret!s:>30} {[secret]} {secret:^12}"
    assert f"{secret:>5}" == "  ***"
    with pytest.raises(TypeError):
        json.dumps(secret)


passwords = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=30)


@given(passwords)
@example("@:/?#[]%&= ${X}%41")
def test_any_password_comes_through_quoted_and_through_the_environment(password: str) -> None:
    quoted = quote(password, safe="")
    for text in (f"postgresql://u:{quoted}@h/db", f"deltasql://postgres/u:{quoted}@h/db/s"):
        uri = parse_uri(text, environ={})
        assert uri.password == Secret(password)
        assert (uri.user, uri.host, uri.port, uri.database) == ("u", "h", 5432, "db")
    for text in ("postgresql://u:${P}@h/db", "deltasql://postgres/u:${P}@h/db/s"):
        assert parse_uri(text, environ={"P": password}).password == Secret(password)


@given(passwords, passwords)
def test_any_names_survive_the_canonical_form(database: str, table: str) -> None:
    uri = parse_uri(f"postgresql:///{quote(database, safe='')}", environ={}).with_table(table)
    assert (uri.database, uri.table) == (database, table)
    assert parse_uri(str(uri), environ={}) == uri


@given(passwords, passwords)
def test_no_password_shows_in_a_place(before: str, after: str) -> None:
    password = before + SENTINEL + after
    uri = parse_uri("postgresql://u:${P}@h:5433/db?schema=s&sslmode=a", environ={"P": password})
    assert SENTINEL not in everything_shown(uri)
    assert SENTINEL not in shown_uri(f"postgresql://u:{quote(password, safe='')}@h/db")


# `{p}` stands for a password, raw; the damage is elsewhere, or is the password itself.
BROKEN = [
    "postgres:/u:{p}@h/db",
    "postgres:u:{p}@h/db",
    "u:{p}@h/db",
    "u:{p}",
    "{p}",
    "mysql://u:{p}@h/db",
    "jdbc:postgresql://u:{p}@h/db",
    "postgresql://u:{p}",
    "postgresql://u:{p}/db",
    "postgresql://u:{p}@h",
    "postgresql://u:{p}@h:notaport/db",
    "postgresql://u:{p}@[::1/db",
    "postgresql://:{p}@h/db",
    "postgresql://u:{p}@h/db/extra",
    "postgresql://u:{p}@h/db?color=red",
    "postgresql://u:{p}@h/db?pool_size=x",
    "postgresql://u:{p}@h/db?sslmode=a&sslmode=b",
    "postgresql://u:{p}@h/%zz",
    "postgresql://u:{p}@h/db#x",
    "postgresql://u:{p}%zz@h/db",
    "postgresql://u:{p}%FF@h/db",
    "postgresql://u:${{{p}@h/db",
    "postgresql://u:a/{p}@h/db",
    "postgresql://u:a?{p}@h/db",
    "postgresql://u:a?{p}=b@h/db",
    "postgresql://u:a#{p}@h/db",
    "postgresql://u:a@{p}@h/db",
    "postgresql://u:a {p}@h/db",
    "postgresql://u:{p}\n@h/db",
    "deltasql://u:{p}@h/db/s",
    "deltasql:/postgres/u:{p}@h/db/s",
    "deltasql://postgress/u:{p}@h/db/s",
    "deltasql://postgres/u:{p}@h/db",
    "deltasql://postgres/u:a/{p}@h/db/s",
    "deltasql://postgres/u:{p}/w@h/db/s",
    "deltasql://postgres/u:{p}/db/s",
    "deltasql://postgres/u:{p}@h/db/s?schema=t",
    "sqlite://u:{p}@h/db",
    "duckdb:u:{p}@h/db",
]


@pytest.mark.parametrize("broken", BROKEN)
def test_no_password_shows_when_the_uri_is_malformed_around_it(broken: str) -> None:
    text = broken.format(p=SENTINEL)
    with pytest.raises(UsageError) as caught:
        parse_uri(text, environ={})
    assert SENTINEL not in everything_said(caught.value)
    assert SENTINEL not in shown_uri(text)
    with pytest.raises(UsageError) as caught:
        parse_uri("${LAKE}", environ={"LAKE": text})
    assert SENTINEL not in everything_said(caught.value)


# A plain word between punctuation is what a password looks like when it was not quoted.
noise = st.text(st.sampled_from(string.punctuation.replace("$", "") + "ab1 "), max_size=6)


@given(st.sampled_from([form for form in BROKEN if ":{p}@" in form] + ["postgresql://u:{p}@h/db"]), noise, noise)
def test_no_unquoted_password_shows_whatever_surrounds_it(form: str, before: str, after: str) -> None:
    text = form.format(p=before + SENTINEL + after)
    assert SENTINEL not in shown_uri(text)
    said = ""
    try:
        said = everything_shown(parse_uri(text, environ={}))
    except UsageError as error:
        said = everything_said(error)
    assert SENTINEL not in said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:pw@h/db?schema=s", "postgresql://u:***@h/db?schema=s"),
        ("postgresql://u:${PW}@${HOST}:${PORT}/db", "postgresql://u:***@${HOST}:${PORT}/db"),
        ("sqlite:///rel.db", "sqlite:///rel.db"),
        ("${LAKE}", "${LAKE}"),
        ("u:pw@h/db", "***"),
        ("postgresql://u:12 pw@h/db", "***"),
    ],
)
def test_a_uri_is_shown_as_written_with_its_password_masked(text: str, shown: str) -> None:
    assert shown_uri(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot reach postgresql://u:pw@h:5432/db now", "cannot reach postgresql://u:***@h:5432/db now"),
        ("postgres:/u:pw@h/db", "postgres:/u:***@h/db"),
        ("postgres:u:pw@h/db", "postgres:u:***@h/db"),
        ("POSTGRES:u:pw@h/db", "POSTGRES:u:***@h/db"),
        ("postgresql://u:p@w/x@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:pw", "postgresql://u:***"),
        ("postgresql://u:pw sd@h/db", "postgresql://u:***@h/db"),
        ("deltasql://postgres/u:p/w@h/db/s", "deltasql://postgres/u:***@h/db/s"),
        ("deltasql://postgress/u:p/w@h/db/s", "deltasql://postgress/u:***@h/db/s"),
        ("deltasql://postgres/u:pw/db/s", "deltasql://postgres/u:***"),
        ("postgresql://o'b:pw@h/db", "postgresql://o'b:***@h/db"),
        ("a://u:pw@h b://u:qw@h\nc://u:rw@h", "a://u:***@h b://u:***@h\nc://u:***@h"),
        ("password=pw user=u", "password=*** user=u"),
        ("password=a,b;c user=u", "password=*** user=u"),
        ("password='a b\\' c' user=u", "password=*** user=u"),
        ("password='it''s it' user=u", "password=*** user=u"),
        ('{"password": "a b", "x": 1}', '{"password": ***, "x": 1}'),
        ("{'sslpassword': 'a b', 'x': 1}", "{'sslpassword': ***, 'x': 1}"),
        ("PGPASSWORD=pw", "PGPASSWORD=***"),
        ("?user=u&password=pw&x=1", "?user=u&password=***&x=1"),
        ("fs.s3a.secret.key=abc", "fs.s3a.secret.key=***"),
    ],
)
def test_mask_hides_passwords_in_any_text(text: str, shown: str) -> None:
    assert mask(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://localhost:4040/jobs",
        "see http://localhost:4040.",
        "http://[::1]:4040/x",
        "postgresql://u@h:5432/db?schema=lake",
        "postgresql://h:5432/db?schema=a:b",
        "s3://bucket/at=2026-01-01T00:00:00/part-0.parquet",
        "file:/data: No such file",
        '{"location":"s3://bucket","version":3}',
        "uab^-aqEH.-t:S}K{vb[*k^@4",
        "password authentication failed for user u",
    ],
)
def test_mask_leaves_what_is_no_password(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    "piece", [":/a:1/", "postgres:", "/", ":/a:b ", "password='", "postgres:/a", "@", "secret", "://"]
)
def test_mask_takes_no_longer_on_hostile_text_than_on_any_other(piece: str) -> None:
    started = time.perf_counter()
    mask("postgres:" + piece * 20_000)
    assert time.perf_counter() - started < 2
