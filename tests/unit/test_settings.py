"""Which place wins, what each value may be, and that every value knows where it came from."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.errors import UsageError
from mainstem.settings import BOOL, SETTINGS, Setting, Settings, load_settings
from mainstem.uri import parse_uri

ROOT = Path(__file__).parents[2]
SENTINEL = "hunter2xyzzy"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the repository's own conf/, nor a variable of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("MAINSTEM_")]:
        monkeypatch.delenv(name)


def ini(text: str, path: Path = Path("conf/mainstem.ini")) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def said(error: UsageError) -> str:
    context = repr(error.__cause__) + repr(error.__context__)
    return f"{error} {error!r} {error.__dict__} {json.dumps(error.as_dict())} {context}"


def test_without_any_place_every_setting_has_its_default() -> None:
    settings = load_settings(environ={})
    assert {row.name: settings[row.name] for row in settings.explain()} == {
        "catalog": "",
        "connect_timeout": 10,
        "pool_size": 4,
        "busy_timeout": 30.0,
        "reconnect_attempts": 5,
        "reconnect_max_wait": 5.0,
        "fetch_size": 10_000,
        "jdbc_slices": 0,
        "driver_files": 1_000_000,
        "image_files": 10_000,
        "import_bytes": 2**29,
        "mount_files": 10_000,
        "mount": "viewfs",
        "publish_on_commit": True,
        "publish_attempts": 3,
        "publish_backoff": 600.0,
        "max_unpublished": 1000,
        "mirror_lag": 300.0,
        "checkpoint_files": 5_000_000,
        "validate_files": 100_000,
        "commit_info": "",
        "log_level": "WARNING",
        "scratch": None,
    }
    assert {settings.source(name) for name in SETTINGS} == {"default"}


def test_each_place_wins_over_the_next_and_is_named() -> None:
    ini("[mainstem]\npool_size = 15\n")
    spark = {"spark.mainstem.pool_size": "14"}
    env = {"MAINSTEM_POOL_SIZE": "13"}
    flags = {"pool_size": 12}
    uri = parse_uri("sqlite:////l.db?pool_size=11", environ={})
    seen = []
    for settings in (
        load_settings(flags=flags, environ=env, spark_conf=spark).for_uri(uri),
        load_settings(flags=flags, environ=env, spark_conf=spark),
        load_settings(flags={"pool_size": None}, environ=env, spark_conf=spark),
        load_settings(environ={"MAINSTEM_POOL_SIZE": ""}, spark_conf=spark),
        load_settings(environ={}, spark_conf={"spark.mainstem.pool_size": ""}),
    ):
        assert settings["pool_size"] == settings.pool_size
        seen.append((settings.pool_size, settings.source("pool_size")))
    assert seen == [
        (11, "uri"),
        (12, "flag"),
        (13, "MAINSTEM_POOL_SIZE"),
        (14, "spark.mainstem.pool_size"),
        (15, "conf/mainstem.ini"),
    ]
    ini("[mainstem]\npool_size =\n")
    assert load_settings(environ={}).source("pool_size") == "default"


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_given_in_every_place(name: str) -> None:
    kept = {"log_level": "ERROR", "catalog": "sqlite:///l.db", "mount": "absolute", "commit_info": '{"team": "x"}'}
    texts = {**kept, "scratch": "/s", "publish_on_commit": "false"}
    values = {**kept, "scratch": Path("/s"), "publish_on_commit": False}
    text, value = texts.get(name, "7"), values.get(name, 7)
    conf = ini(f"[mainstem]\n{name} = {text}\n", Path("other.ini"))
    for places, source in (
        ({"flags": {name: text}}, "flag"),
        ({"flags": {name: value}}, "flag"),
        ({"environ": {f"MAINSTEM_{name.upper()}": text}}, f"MAINSTEM_{name.upper()}"),
        ({"spark_conf": {f"spark.mainstem.{name}": text}}, f"spark.mainstem.{name}"),
        ({"spark_conf": {f"spark.mainstem.{name}": text}.get}, f"spark.mainstem.{name}"),
        ({"conf_path": conf}, "other.ini"),
        ({"environ": {"MAINSTEM_CONF": "other.ini"}}, "other.ini"),
    ):
        settings = load_settings(**{"environ": {}, **places})  # type: ignore[arg-type]
        assert (settings[name], settings.source(name)) == (value, source)
        assert type(settings[name]) in {type(value), type(SETTINGS[name].default)}
        assert {settings.source(other) for other in SETTINGS if other != name} == {"default"}


def test_the_environment_is_read_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSTEM_POOL_SIZE", "9")
    assert load_settings().pool_size == 9
    monkeypatch.setenv("MAINSTEM_POOL_SIZE", "8")
    assert load_settings().pool_size == 8
    assert load_settings(environ={}).pool_size == 4


def test_nothing_reads_the_environment_at_import() -> None:
    code = (
        "import os, sys\n"
        "class Forbidden(dict):\n"
        "    def get(self, *a): sys.exit(f'read {a}')\n"
        "    def __getitem__(self, key): sys.exit(f'read {key}')\n"
        "    def __contains__(self, key): sys.exit(f'read {key}')\n"
        "import ast, collections, configparser, dataclasses, difflib, inspect, ipaddress, pathlib, re, typing\n"
        "import importlib, types, unicodedata, urllib.parse\n"
        "package = sys.modules['mainstem'] = types.ModuleType('mainstem')\n"
        "package.__path__ = [f'{sys.argv[1]}/mainstem']\n"
        "os.environ = Forbidden()\n"
        "for name in ('errors', 'uri', 'settings'):\n"
        "    importlib.import_module(f'mainstem.{name}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ROOT / "lib")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("pool_size", "1", 1),
        ("pool_size", " 8 ", 8),
        ("reconnect_attempts", "0", 0),
        ("busy_timeout", "0", 0.0),
        ("busy_timeout", "2.5", 2.5),
        ("busy_timeout", "1e-05", 1e-05),
        ("log_level", "debug", "DEBUG"),
        ("scratch", "rel/dir", Path("rel/dir")),
        ("scratch", "s3://lake/scratch/", "s3://lake/scratch"),
    ],
)
def test_a_value_is_read_as_its_kind(name: str, text: str, value: object) -> None:
    found = load_settings(environ={SETTINGS[name].variable: text})[name]
    assert found == value
    assert type(found) is type(value) or isinstance(value, Path)


@pytest.mark.parametrize(
    ("name", "given", "form"),
    [
        ("pool_size", "0", "a whole number from 1"),
        ("pool_size", "-1", "a whole number from 1"),
        ("pool_size", "four", "a whole number from 1"),
        ("pool_size", "4.0", "a whole number from 1"),
        ("pool_size", "٣", "a whole number from 1"),
        ("pool_size", "9" * 5000, "a whole number from 1"),
        ("pool_size", True, "a whole number from 1"),
        ("pool_size", [4], "a whole number from 1"),
        ("connect_timeout", "1.5", "a whole number from 1"),
        ("reconnect_attempts", "-1", "a whole number from 0"),
        ("busy_timeout", "-1", "a number of seconds"),
        ("busy_timeout", "nan", "a number of seconds"),
        ("busy_timeout", float("inf"), "a number of seconds"),
        ("busy_timeout", "1e9", "a number of seconds"),
        ("log_level", "LOUD", "one of DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        ("mount", "nfs", "viewfs or absolute"),
        ("scratch", "a\0b", "a path, a URI of an object store, or empty"),
        ("scratch", ["a"], "a path, a URI of an object store, or empty"),
        ("catalog", parse_uri("postgresql://u:pw@h/db", environ={}), "a text"),
    ],
)
def test_a_bad_value_is_named_with_its_source_and_the_allowed_form(name: str, given: object, form: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(flags={name: given}, environ={})
    message = caught.value.message
    assert f"setting {name} is " in message
    assert "from flag" in message
    assert form in message
    assert len(message) < 300
    if name != "catalog":
        assert repr(str(given)[:60]) in message
    if isinstance(given, str):
        with pytest.raises(UsageError, match=re.escape(f"from {SETTINGS[name].variable}")):
            load_settings(environ={SETTINGS[name].variable: given})


def test_only_the_value_that_wins_is_checked() -> None:
    assert load_settings(flags={"pool_size": 2}, environ={"MAINSTEM_POOL_SIZE": "x"}).pool_size == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("YES", True),
        ("on", True),
        ("1", True),
        ("False", False),
        ("no", False),
        ("off", False),
        ("0", False),
    ],
)
def test_a_switch_is_read_from_its_usual_words(text: str, value: bool) -> None:
    assert Setting("quiet", BOOL, False, "say less").read(text, "flag") is value
    assert Setting("quiet", BOOL, False, "say less").read(value, "flag") is value


def test_a_switch_refuses_other_words() -> None:
    with pytest.raises(UsageError, match="true or false"):
        Setting("quiet", BOOL, False, "say less").read("maybe", "flag")


def test_an_unknown_variable_of_the_shared_environment_is_left_alone() -> None:
    env = {"MAINSTEM_POOLSIZE": "x", "MAINSTEM_TEST_POSTGRES": "x", "MAINSTEM_CORPUS": "x", "MAINSTEM_CONF": ""}
    assert load_settings(environ=env) == load_settings(environ={})


def test_an_unknown_flag_or_name_is_an_error_with_the_nearest_one() -> None:
    for attempt in (
        lambda: load_settings(flags={"poolsize": 3}, environ={}),
        lambda: load_settings(environ={})["poolsize"],
        lambda: load_settings(environ={}).source("poolsize"),
    ):
        with pytest.raises(UsageError, match=r"poolsize.*Did you mean pool_size"):
            attempt()
    with pytest.raises(UsageError, match="The settings are catalog, connect_timeout"):
        load_settings(flags={"zzz": 3}, environ={})
    with pytest.raises(AttributeError):
        load_settings(environ={}).poolsize  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mainstem]\npool_siez = 3\n", ["pool_siez", "Did you mean pool_size?"]),
        ("pool_size = 3\n", ["line 1", "before any section"]),
        ("[mainstem]\npool_size = 3\nnonsense\n", ["line 3", "not `name = value`"]),
        ("[mainstem]\npool_size = 3\npool_size = 4\n", ["line 3", "repeats"]),
        ("[mainstem]\n[mainstem]\n", ["line 2", "repeats"]),
        ("[other]\npool_size = 3\n", ["no section [mainstem]"]),
        ("[mainstem]\npool_size = x\n", ["pool_size", "'x'", "from conf/mainstem.ini", "a whole number from 1"]),
        ("[mainstem]\npool_size = 4 # four\n", ["pool_size", "'4 # four'"]),
    ],
)
def test_a_broken_file_is_an_error_with_file_and_line(text: str, words: list[str]) -> None:
    ini(text)
    with pytest.raises(UsageError) as caught:
        load_settings(environ={})
    for word in ["conf/mainstem.ini", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"catalog = postgresql://u:{SENTINEL}@h/db\n",
        f"catalog = u:{SENTINEL}@h/db\n",
        f"[mainstem]\ncatalog postgresql://u:{SENTINEL}@h/db\n",
        f"[mainstem]\ncatalog u:{SENTINEL}@h/db\n",
        f"[mainstem]\ncatalog = x\ncatalog = postgresql://u:{SENTINEL}@h/db\n",
        f"[mainstem]\npool_size = postgresql://u:{SENTINEL}@h/db\n",
        f"[mainstem]\npool_size = password={SENTINEL}\n",
    ],
)
def test_a_broken_file_does_not_give_its_password_away(text: str) -> None:
    ini(text)
    with pytest.raises(UsageError) as caught:
        load_settings(environ={})
    assert SENTINEL not in said(caught.value)


def test_a_bad_value_of_a_secret_setting_is_not_shown_at_all() -> None:
    with pytest.raises(UsageError, match=r"catalog is \*\*\* \(from flag\)") as caught:
        load_settings(flags={"catalog": [SENTINEL]}, environ={})
    assert SENTINEL not in said(caught.value)


def test_a_named_file_must_be_there_and_readable() -> None:
    for path in (Path("missing.ini"), Path(".")):
        with pytest.raises(UsageError, match="cannot be read"):
            load_settings(environ={}, conf_path=path)
        with pytest.raises(UsageError, match="cannot be read"):
            load_settings(environ={"MAINSTEM_CONF": str(path)})
    Path("latin.ini").write_bytes(b"[mainstem]\nscratch = /\xe9\n")
    with pytest.raises(UsageError, match=r"latin\.ini cannot be read: it is not UTF-8"):
        load_settings(environ={}, conf_path=Path("latin.ini"))


def test_the_named_file_is_read_instead_of_the_usual_one_and_the_flag_before_the_variable() -> None:
    ini("[mainstem]\npool_size = 21\nfetch_size = 5\n")
    ini("[mainstem]\npool_size = 22\n", Path("b.ini"))
    ini("[mainstem]\npool_size = 23\n", Path("c.ini"))
    env = {"MAINSTEM_CONF": "b.ini"}
    assert load_settings(environ={}).pool_size == 21
    assert (load_settings(environ=env).pool_size, load_settings(environ=env).fetch_size) == (22, 10_000)
    assert load_settings(environ=env, conf_path=Path("c.ini")).pool_size == 23


def test_a_file_takes_values_literally_and_leaves_other_sections_alone() -> None:
    uri = "postgresql://u:${PW}@h/d%25b?schema=a;b"
    ini(f"\ufeff[DEFAULT]\npool_size = 99\n[logging]\nanything = 1\n[mainstem]\ncatalog = {uri}\n")
    settings = load_settings(environ={})
    assert (settings.catalog, settings.pool_size) == (uri, 4)


def test_a_uri_sets_only_what_it_names_and_leaves_the_settings_as_they_were() -> None:
    before = load_settings(environ={"MAINSTEM_CATALOG": "sqlite:///l.db", "MAINSTEM_FETCH_SIZE": "7"})
    after = before.for_uri(parse_uri("sqlite:////l.db?busy_timeout=2&connect_timeout=3", environ={}))
    assert (after.busy_timeout, after.source("busy_timeout")) == (2.0, "uri")
    assert (after.connect_timeout, after.source("connect_timeout")) == (3, "uri")
    assert (after.fetch_size, after.source("fetch_size")) == (7, "MAINSTEM_FETCH_SIZE")
    assert (after.pool_size, after.source("pool_size")) == (4, "default")
    assert (before.busy_timeout, before.source("busy_timeout")) == (30.0, "default")
    plain = parse_uri("postgresql://h/db?sslmode=require", environ={})
    assert before.for_uri(plain) == before


def test_settings_are_a_value_that_does_not_change() -> None:
    settings = load_settings(environ={"MAINSTEM_SCRATCH": "/s"})
    twin = pickle.loads(pickle.dumps(settings))
    assert twin == settings
    assert hash(twin) == hash(settings)
    assert settings != load_settings(environ={})
    with pytest.raises(AttributeError, match="pool_size"):
        settings.pool_size = 3
    with pytest.raises(AttributeError):
        settings.other = 3  # type: ignore[attr-defined]


def test_explain_has_a_row_for_every_setting_with_value_source_and_help() -> None:
    settings = load_settings(environ={"MAINSTEM_CATALOG": "postgresql://u:pw@h/db"}, flags={"pool_size": 9})
    rows = settings.explain()
    assert [row.name for row in rows] == list(SETTINGS)
    by_name = {row.name: row for row in rows}
    assert by_name["catalog"][1:3] == ("postgresql://u:***@h/db", "MAINSTEM_CATALOG")
    assert by_name["pool_size"][1:3] == ("9", "flag")
    assert by_name["scratch"][1:3] == ("(not set)", "default")
    assert all(row.help for row in rows)


@given(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
    st.sampled_from(["postgresql://u:{}@h/db", "u:{}", "{}"]),
)
def test_a_catalogs_password_never_shows(noise: str, form: str) -> None:
    settings = load_settings(flags={"catalog": form.format(noise + SENTINEL + noise)}, environ={})
    assert SENTINEL in settings.catalog
    assert SENTINEL not in f"{settings} {settings!r} {settings.explain()}"


def test_the_example_file_names_every_setting_with_its_default() -> None:
    text = (ROOT / "conf/mainstem.ini").read_text(encoding="utf-8")
    assert load_settings(environ={}, conf_path=ROOT / "conf/mainstem.ini") == load_settings(environ={})
    uncommented = ini(re.sub(r"(?m)^# (?=[a-z_]+ =)", "", text), Path("all.ini"))
    settings = load_settings(environ={}, conf_path=uncommented)
    shown = set(re.findall(r"(?m)^# ([a-z_]+) =", text))
    assert shown == set(SETTINGS)
    defaults = load_settings(environ={})
    assert {name: settings[name] for name in SETTINGS if name != "catalog"} == {
        name: defaults[name] for name in SETTINGS if name != "catalog"
    }
    assert parse_uri(settings.catalog, environ={"PGPASSWORD": "x"}).engine == "postgres"


@pytest.mark.parametrize("engine", ["postgres", "sqlite", "duckdb"])
def test_the_example_of_each_engine_leads_to_it(engine: str) -> None:
    path = ROOT / f"conf/examples/{engine}.ini"
    settings = load_settings(environ={}, conf_path=path)
    uri = parse_uri(settings.catalog, environ={"PGPASSWORD": "p@/ss"})
    assert uri.engine == engine
    assert settings.for_uri(uri).source("catalog") == str(path)


def test_a_setting_is_reached_by_attribute_under_its_own_name() -> None:
    for name, setting in SETTINGS.items():
        assert getattr(Settings, name) is setting
