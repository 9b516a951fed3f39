"""The commands that bring logs in and look at tables: what they print, what they return, how they fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from catalogs import paths, row_counts
from logs import Log, add, domain, info, metadata, protocol, remove, stats, txn

from mainstem import Catalog
from mainstem.cli import logs as log_commands
from mainstem.cli import main


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Mainstem = Callable[..., Done]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log.begin(
        tmp_path / "orders",
        add("a", partitionValues={"part": "x"}, stats=stats(3, minValues={"id": 1}, maxValues={"id": 3})),
        add("b", partitionValues={"part": "y"}, size=7),
        table=metadata(partitionColumns=["part"], configuration={"k": "v"}),
    )
    log.commit(info(operation="MERGE", userName="ann"), add("c", partitionValues={"part": "x"}), txn("app", 5))
    log.commit(remove("a"), domain("d", "1"))
    return log


@pytest.fixture
def mainstem(catalog: Catalog, capfd: pytest.CaptureFixture[str]) -> Mainstem:
    """Run a command on the test's catalog, in this process."""

    def run(*arguments: str, **given: Any) -> Done:
        code = main([*arguments, "--catalog", catalog.settings.catalog], **given)
        return Done(code, *capfd.readouterr())

    return run


def test_a_table_is_imported_shown_listed_and_followed(mainstem: Mainstem, log: Log) -> None:
    done = mainstem("import", log.location, "--name", "sales.orders", "--up-to-version", "1")
    assert (done.code, done.out) == (0, "sales.orders: versions 0 to 1, 8 actions, 3 live files.\n")
    done = mainstem("follow", "sales.orders")
    assert (done.code, done.out) == (0, "sales.orders: at version 2, 1 new.\n")
    assert mainstem("follow", "sales.orders").out == "sales.orders: at version 2, 0 new.\n"
    heading, row = mainstem("tables").out.splitlines()
    assert heading.split() == ["name", "version", "published", "authority", "location"]
    assert row.split() == ["sales.orders", "2", "2", "log", log.location]
    shown = mainstem("show", "sales.orders").out
    for line in ("version 2", "files 2", "size bytes 8", "records not known", "partition columns part",
                 "properties k=v", "domains d", "app transactions app=5", "id long True"):  # fmt: skip
        assert line in " ".join(shown.split()), line
    assert [line.split()[0] for line in mainstem("files", "sales.orders").out.splitlines()] == ["path", "b", "c"]
    history = mainstem("history", "sales.orders").out.splitlines()
    assert [line.split()[0] for line in history] == ["version", "2", "1", "0"]
    assert "MERGE" in history[2]
    assert "ann" in history[2]


def test_with_json_a_command_prints_one_document_and_nothing_else(mainstem: Mainstem, log: Log) -> None:
    done = mainstem("import", log.location, "--name", "t", "--json")
    assert done.err == ""
    assert {key: done.data[key] for key in ("name", "first_version", "version", "actions", "files", "dry_run")} == {
        "name": "t", "first_version": 0, "version": 2, "actions": 11, "files": 2, "dry_run": False,
    }  # fmt: skip
    [table] = mainstem("tables", "--json").data
    assert (table["name"], table["version"], table["authority"]) == ("t", 2, "log")
    shown = mainstem("show", "t", "--json").data
    assert (shown["version"], shown["head"], shown["files"], shown["size_bytes"]) == (2, 2, 2, 8)
    assert (shown["properties"], shown["app_transactions"], shown["domains"]) == ({"k": "v"}, {"app": 5}, ["d"])
    assert [field["name"] for field in json.loads(shown["schema_json"])["fields"]] == ["id", "part"]
    files = mainstem("files", "t", "--json").data
    assert [(row["path"], row["size_bytes"], row["version"]) for row in files] == [("b", 7, 0), ("c", 1, 1)]
    assert [entry["version"] for entry in mainstem("history", "t", "--json").data] == [2, 1, 0]
    assert mainstem("follow", "t", "--json").data == {"name": "t", "from_version": 2, "version": 2}


def test_a_table_is_shown_as_it_was(mainstem: Mainstem, log: Log) -> None:
    mainstem("import", log.location, "--name", "t")
    first = mainstem("show", "t", "--version", "0", "--json").data
    assert (first["version"], first["head"], first["files"], first["app_transactions"]) == (0, 2, 2, {})
    assert first["records"] is None
    by_time = mainstem("show", "t", "--timestamp", first["committed_at"], "--json").data
    assert by_time["version"] == 0
    assert [row["path"] for row in mainstem("files", "t", "--version", "1", "--json").data] == ["a", "b", "c"]
    assert [row["path"] for row in mainstem("files", "t", "--version", "0", "--where", "id = 2", "--json").data] == [
        "a",
        "b",
    ]
    assert [row["path"] for row in mainstem("files", "t", "--where", "part = 'x'", "--json").data] == ["c"]
    assert len(mainstem("files", "t", "--limit", "1", "--json").data) == 1
    assert [entry["version"] for entry in mainstem("history", "t", "--limit", "2", "--json").data] == [2, 1]


def test_a_dry_run_says_what_it_would_do_and_force_replaces(mainstem: Mainstem, log: Log, catalog: Catalog) -> None:
    before = row_counts(catalog)
    done = mainstem("import", log.location, "--name", "t", "--dry-run")
    assert done.out == "t: versions 0 to 2, 11 actions, 2 live files; nothing was written.\n"
    assert row_counts(catalog) == before
    assert mainstem("import", log.location, "--name", "t", "--up-to-version", "0").code == 0
    assert mainstem("import", log.location, "--name", "t", "--force").code == 0
    assert paths(catalog.table("t").snapshot()) == {"b", "c"}


def test_a_follower_goes_on_until_it_is_interrupted(
    mainstem: Mainstem, log: Log, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt
        if len(waits) == 1:
            log.commit(add("d"))

    mainstem("import", log.location, "--name", "t")
    monkeypatch.setattr(log_commands, "time", SimpleNamespace(sleep=wait))
    done = mainstem("follow", "t", "--continuous", "--interval", "2.5")
    assert (done.code, waits) == (130, [2.5, 2.5, 2.5])
    assert done.out == "t: at version 3, 1 new.\n"
    assert "interrupted" in done.err
    assert catalog.table("t").version == 3


def test_every_table_whose_log_leads_is_followed_and_one_that_fails_holds_up_none(
    mainstem: Mainstem, log: Log, tmp_path: Path
) -> None:
    other, torn = Log.begin(tmp_path / "other", add("x")), Log.begin(tmp_path / "torn", add("y"))
    for name, each in (("a.torn", torn), ("b.other", other), ("c.orders", log)):
        mainstem("import", each.location, "--name", name)
    assert mainstem("cutover", "c.orders").code == 0
    other.commit(add("z"))
    torn.write(b'{"add":')
    done = mainstem("follow", "--all", "--json")
    assert done.code == 8
    found = [(each["name"], each["version"], each["versions"], each["exit_code"]) for each in done.data]
    assert found == [("a.torn", 0, 0, 8), ("b.other", 1, 1, 0)]
    assert "00000000000000000001.json, line 1" in done.data[0]["error"]


def broken(log: Log) -> None:
    log.write(b'{"add":')


def newer(log: Log) -> None:
    log.commit(protocol("timeTravelV9"))


def anew(log: Log) -> None:
    for file in log.folder.iterdir():
        file.unlink()
    Log.begin(log.root, add("x"))


def nothing(log: Log) -> None:
    pass


@pytest.mark.parametrize(
    ("arguments", "spoil", "code", "kind", "words"),
    [
        (("import", "{log}", "--name", "t"), nothing, 2, "usage", "already has a table t"),
        (("import", "{log}", "--name", "a\nb"), nothing, 2, "usage", "cannot be called"),
        (("import", "{log}/nowhere", "--name", "u"), nothing, 2, "usage", "There is no folder"),
        (("import", "{log}/..", "--name", "u"), nothing, 2, "usage", "not a Delta table"),
        (("import", "hdfs://x/y", "--name", "u"), nothing, 2, "usage", "hdfs"),
        (("import", "{log}", "--name", "u", "--up-to-version", "9"), nothing, 5, "version_not_found", "from 0 to 2"),
        (("import", "{log}", "--name", "u"), broken, 8, "corrupt_log", "00000000000000000003.json, line 1"),
        (("import", "{log}", "--name", "u"), newer, 7, "unsupported_feature", "timeTravelV9"),
        (("follow", "t"), broken, 8, "corrupt_log", "00000000000000000003.json, line 1"),
        (("follow", "t"), newer, 7, "unsupported_feature", "timeTravelV9"),
        (("follow", "t"), anew, 3, "foreign_commit", "no longer has version 2"),
        (("follow", "nobody"), nothing, 5, "table_not_found", "no table nobody"),
        (("follow",), nothing, 2, "usage", "or --all"),
        (("follow", "t", "--all"), nothing, 2, "usage", "or --all"),
        (("follow", "t", "--interval", "0"), nothing, 2, "usage", "--interval"),
        (("show", "nobody"), nothing, 5, "table_not_found", "no table nobody"),
        (("show", "t", "--version", "9"), nothing, 5, "version_not_found", "no version 9"),
        (("show", "t", "--version", "99999999999999999999"), nothing, 5, "version_not_found", "no version 9999"),
        (("show", "t", "--timestamp", "2001-01-01"), nothing, 5, "version_not_found", "current at 2001-01-01"),
        (("show", "t", "--timestamp", "noon"), nothing, 2, "usage", "'noon' is no timestamp"),
        (("show", "t", "--tag", "x"), nothing, 5, "version_not_found", "the tag 'x'"),
        (("show", "t", "--tag", "x", "--version", "1"), nothing, 2, "usage", "exclude each other"),
        (("files", "t", "--where", "id ="), nothing, 2, "usage", "cannot be read"),
        (("files", "t", "--where", "nothing = 1"), nothing, 2, "usage", "has no 'nothing'"),
        (("files", "t", "--limit", "0"), nothing, 2, "usage", "--limit"),
        (("files", "t", "--limit", "1", "--output", "x"), nothing, 2, "usage", "exclude each other"),
        (("files", "t", "--engine", "magic"), nothing, 2, "usage", "--engine"),
        (("files", "t", "--limit", "99999999999999999999"), nothing, 2, "usage", "--limit"),
        (("history", "t", "--limit", "99999999999999999999"), nothing, 2, "usage", "--limit"),
        (("follow", "t", "--interval", "nan"), nothing, 2, "usage", "--interval"),
        (("vacuum", "t", "--retention-hours", "1e12"), nothing, 2, "usage", "--retention-hours"),
        (("vacuum", "t", "--retention-hours", "nan"), nothing, 2, "usage", "--retention-hours"),
        (("maintain", "t", "--expire-days", "1e9"), nothing, 2, "usage", "--expire-days"),
        (("rebuild-log", "t", "--to", "{log}/_delta_log/00000000000000000000.json"), nothing, 1, "error", "refused"),
        (("history", "nobody"), nothing, 5, "table_not_found", "no table nobody"),
        (("history",), nothing, 2, "usage", "NAME"),
    ],
)
def test_an_error_is_a_sentence_a_next_step_and_an_exit_code(
    mainstem: Mainstem,
    log: Log,
    arguments: tuple[str, ...],
    spoil: Callable[[Log], None],
    code: int,
    kind: str,
    words: str,
) -> None:
    mainstem("import", log.location, "--name", "t")
    spoil(log)
    given = [argument.replace("{log}", log.location) for argument in arguments]
    done = mainstem(*given)
    assert (done.code, done.out) == (code, ""), done
    assert done.err.startswith("error: ")
    assert words in done.err
    assert "\nnext: " in done.err
    assert "Traceback" not in done.err
    as_json = mainstem(*given, "--json")
    assert (as_json.code, as_json.err) == (code, "")
    error = as_json.data["error"]
    assert (error["code"], bool(error["hint"])) == (kind, True)
    assert words in error["message"] + error["hint"]


def test_odd_texts_of_a_log_are_shown_and_never_obeyed(mainstem: Mainstem, tmp_path: Path) -> None:
    """Markup and escapes for a terminal are texts like any other; JSON says everything."""
    odd = "[bold red]x[/] \x1b[31m \u202e 'q'"
    log = Log.begin(tmp_path / "odd", add("[link=x]p%20q", tags={odd: odd}))
    log.write(
        b'{"commitInfo":{"operation":' + json.dumps(odd).encode() + b',"operationParameters":'
        b'{"half":"\\ud800","huge":1e400,"digits":' + b"9" * 40 + b"}}}\n"
    )
    assert mainstem("import", log.location, "--name", "[b]t[/b]").out.startswith("[b]t[/b]: versions 0 to 1")
    assert "[link=x]p%20q" in mainstem("files", "[b]t[/b]").out
    shown = mainstem("history", "[b]t[/b]").out
    assert r"[bold red]x[/] \x1b[31m \u202e 'q'" in shown
    newest = mainstem("history", "[b]t[/b]", "--json").data[0]
    assert newest["operation"] == odd
    assert newest["operation_params"] == {"half": "\ud800", "huge": "1e400", "digits": "9" * 40}


def test_reading_commands_start_no_jvm_and_load_no_spark(log: Log, tmp_path: Path) -> None:
    script = (
        "import sys; from mainstem.cli import main; uri, location, *_ = sys.argv[1:]\n"
        "for command in ('migrate', f'import {location} --name t --up-to-version 1', 'follow t', 'tables', 'show t',\n"
        "                'show t --version 1', 'files t', 'files t --limit 1', 'history t'):\n"
        "    assert main([*command.split(), '--catalog', uri]) == 0, command\n"
        "assert main(['files', 't', '--where', 'id = 1', '--catalog', uri]) == 0\n"
        "assert not {'pyspark', 'py4j', 'delta'} & set(sys.modules), 'Spark was loaded'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, f"sqlite:///{tmp_path}/lake.db", log.location],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
