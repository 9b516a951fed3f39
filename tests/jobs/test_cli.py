"""The command as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mainstem import Catalog, migrations, open_catalog


def mainstem(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from mainstem.cli import run; run()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


def test_help_lists_the_commands_in_the_order_of_the_work() -> None:
    done = mainstem("--help")
    assert done.returncode == 0
    assert done.stdout.index("migrate") < done.stdout.index("tables") < done.stdout.index("doctor")


def test_a_catalog_is_migrated_listed_and_examined(catalog_uri: str) -> None:
    first = mainstem("migrate", "--catalog", catalog_uri, "--json")
    assert first.returncode == 0, first.stderr
    report = json.loads(first.stdout)
    steps = len(migrations.known(open_catalog(catalog_uri).engine))
    assert (report["version"], len(report["applied"])) == (steps, steps)
    assert mainstem("tables", "--catalog", catalog_uri).returncode == 0
    assert json.loads(mainstem("tables", "--json", MAINSTEM_CATALOG=catalog_uri).stdout) == []
    checks = json.loads(mainstem("doctor", "--catalog", catalog_uri, "--json").stdout)["checks"]
    assert {check["name"]: check["exit_code"] for check in checks if check["name"] != "java"} == {
        "spark": 0,
        "catalog": 0,
        "schema": 0,
        "tables": 0,
        "publishing": 0,
        "logs": 0,
    }


def test_flags_may_stand_before_or_after_the_command(catalog: Catalog) -> None:
    uri = catalog.settings.catalog
    assert (
        mainstem("--catalog", uri, "--json", "tables").stdout == mainstem("tables", "--catalog", uri, "--json").stdout
    )


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "mainstem.ini").write_text(
        f"[mainstem]\ncatalog = sqlite:///{tmp_path}/by-file.db\npool_size = 2\n"
    )
    conf = str(tmp_path / "conf" / "mainstem.ini")
    by_environment, by_flag = f"sqlite:///{tmp_path}/by-env.db", f"sqlite:///{tmp_path}/by-flag.db"

    def sources(*arguments: str, **environment: str) -> dict[str, tuple[str, str]]:
        done = mainstem("doctor", "--json", *arguments, MAINSTEM_CONF=conf, **environment)
        return {name: (shown, source) for name, shown, source in json.loads(done.stdout)["settings"]}

    assert sources()["catalog"][0].endswith("by-file.db")
    assert sources(MAINSTEM_CATALOG=by_environment)["catalog"][1] == "MAINSTEM_CATALOG"
    found = sources("--catalog", by_flag, MAINSTEM_CATALOG=by_environment)
    assert found["catalog"][1] == "flag"
    assert found["pool_size"][0] == "2"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("tables",), 2, "MAINSTEM_CATALOG"),
        (("tables", "--catalog", "mysql://x"), 2, "postgresql://"),
        (("tables", "--nonsense"), 2, "--help"),
        (("nonsense",), 2, "--help"),
        (("migrate", "--to", "many"), 2, "--help"),
        (("bench", "--scale", "huge"), 2, "small and full"),
        (("bench", "nonsense"), 2, "cold_open"),
        (("tables", "--catalog", "sqlite:////no/such/folder/x.db"), 2, "does not exist"),
        (("tables", "--catalog", "sqlite:///{tmp}/new.db"), 6, "mainstem migrate"),
        (("migrate", "--to", "99", "--catalog", "sqlite:///{tmp}/new.db"), 2, "no migration 99"),
    ],
)
def test_an_error_is_a_sentence_a_next_step_and_an_exit_code(
    arguments: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    done = mainstem(*(argument.replace("{tmp}", str(tmp_path)) for argument in arguments))
    assert done.returncode == code
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_error_in_json_is_data_on_standard_output(tmp_path: Path) -> None:
    done = mainstem("tables", "--catalog", f"sqlite:///{tmp_path}/new.db", "--json")
    assert done.returncode == 6
    assert json.loads(done.stdout)["error"]["code"] == "schema_drift"
    assert done.stderr == ""


def test_a_server_that_is_down_ends_with_try_again() -> None:
    uri = "postgresql://me:s3ntinel@127.0.0.1:1/db"
    done = mainstem("tables", "--catalog", uri, MAINSTEM_RECONNECT_ATTEMPTS="1", MAINSTEM_LOG_LEVEL="DEBUG")
    assert done.returncode == 75
    assert "s3ntinel" not in done.stdout + done.stderr


def test_progress_in_a_pipe_is_plain_lines_on_standard_error(tmp_path: Path) -> None:
    done = mainstem("migrate", "--catalog", f"sqlite:///{tmp_path}/lake.db")
    assert done.stderr.splitlines()[0] == "migrate: applied 0001_ledger"
    assert "\x1b" not in done.stdout + done.stderr


def test_no_command_here_starts_a_jvm_or_loads_spark(tmp_path: Path) -> None:
    script = (
        "import sys; from mainstem.cli import main; uri = sys.argv[1]\n"
        "for command in (['migrate'], ['tables'], ['publish', '--all'], ['doctor']):\n"
        "    main([*command, '--catalog', uri, '--json'])\n"
        "assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules, 'Spark was loaded'\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, f"sqlite:///{tmp_path}/lake.db"], check=True, capture_output=True, timeout=60
    )
