"""Every command of the runbook runs, in its order, on the three databases."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from catalogs import change
from deltalake import write_deltalake

from mainstem import Table, open_catalog
from mainstem.cli import main
from mainstem.engines.postgres_server import _binaries

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
_PIECE = re.compile(r"^<!-- scene: (?P<scene>.+?) -->$|^```bash *(?P<engine>\w*)\n(?P<commands>.*?)^```$", re.M | re.S)
_CODE = re.compile(r"\s+# exits with (\d+)(?:: (\w+))?$")


class Command(NamedTuple):
    text: str
    code: int
    says: str


def script(engine: str) -> Iterator[Command | str]:
    """The commands for one database, and the scenes that come before them, by name.

    Scenes are comments of the page: what a reader has before his eyes when he comes to it.
    """
    for found in _PIECE.finditer(RUNBOOK.read_text()):
        if found["scene"]:
            yield found["scene"]
        elif found["engine"] in ("", engine):
            for line in found["commands"].splitlines():
                code = _CODE.search(line)
                yield Command(_CODE.sub("", line), int(code[1]) if code else 0, (code and code[2]) or "")


class Stage:
    """Two Delta tables and an empty database, and what happens to them between the commands."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.uri, self.engine = uri, uri.partition(":")[0].removesuffix("ql")
        self.lake, self.backup = folder / "lake", folder / "backup"
        self.backup.mkdir()
        self.file = folder / f"lake.{self.engine}"
        for start in (0, 10):
            write_deltalake(self.lake / "orders", pa.table({"id": list(range(start, start + 10))}), mode="append")
        write_deltalake(self.lake / "items", pa.table({"sku": ["pen"]}))
        self.environment = {
            **os.environ, "MAINSTEM_CATALOG": uri, "LAKE": str(self.lake), "BACKUP": str(self.backup),
            "CATALOG_FILE": str(self.file), "DATABASE": uri.partition("?")[0], "SCHEMA": uri.rpartition("=")[2],
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(_binaries()), os.environ["PATH"]]),
        }  # fmt: skip

    def run(self, command: Command) -> int:
        """In this process where it can be: a new one takes a second to start."""
        words = shlex.split(re.sub(r"\$(\w+)", lambda found: self.environment[found[1]], command.text))
        if words[0] == "mainstem" and ">" not in words:
            return main([*words[1:], "--json"])
        return subprocess.run(["bash", "-euc", command.text], env=self.environment).returncode

    def commit(self, name: str, *, publish: bool = True) -> None:
        with open_catalog(self.uri, publish_on_commit=publish) as catalog:
            table = catalog.table("sales.orders")
            table.commit([self.data(table, name)], operation="WRITE")

    def data(self, table: Table, name: str) -> dict[str, object]:
        """A data file that is really there, and the action that adds it."""
        path = Path(table.location) / f"{name}.parquet"
        pq.write_table(pa.table({"id": [1]}), path)
        return {"add": {"path": path.name, "partitionValues": {}, "size": path.stat().st_size,
                        "modificationTime": int(time.time() * 1000), "dataChange": True,
                        "stats": '{"numRecords":1}'}}  # fmt: skip

    def log(self, version: int) -> Path:
        return self.lake / "orders" / "_delta_log" / f"{version:020d}.json"

    def lose_the_database(self) -> None:
        if self.engine == "postgres":
            with psycopg.connect(self.environment["DATABASE"], autocommit=True) as connection:
                connection.execute(f'DROP SCHEMA "{self.environment["SCHEMA"]}" CASCADE')
        else:
            for file in self.file.parent.glob(f"{self.file.name}*"):
                file.unlink()

    def play(self, scene: str) -> None:
        getattr(self, "scene_" + re.sub(r"\W+", "_", scene))()

    def scene_the_engine_that_led_so_far_appends(self) -> None:
        write_deltalake(self.lake / "orders", pa.table({"id": [20]}), mode="append")

    def scene_two_commits_after_the_backup_then_the_database_is_lost(self) -> None:
        self.commit("a")
        self.commit("b")
        self.lose_the_database()

    def scene_an_outside_engine_commits_while_one_of_ours_waits(self) -> None:
        self.commit("ours", publish=False)
        with open_catalog(self.uri) as catalog:
            table = catalog.table("sales.orders")
            now = int(time.time() * 1000)
            info = {"commitInfo": {"inCommitTimestamp": now, "timestamp": now, "operation": "WRITE",
                                   "isBlindAppend": True}}  # fmt: skip
            lines = [info, self.data(table, "theirs")]
            self.log(table.version).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def scene_a_span_is_wrong_a_commit_file_and_a_checkpoint_are_lost_a_version_was_never_published(self) -> None:
        while self._version() < 10:
            self.commit(f"f{self._version()}")
        [checkpoint] = self.log(10).parent.glob(f"{10:020d}.checkpoint*")
        checkpoint.unlink()
        self.log(7).unlink()
        self.commit("late", publish=False)
        with open_catalog(self.uri) as catalog:
            change(catalog, "UPDATE dl_add_files SET removed_version = 9 WHERE version = 6")

    def scene_the_commit_file_of_version_5_is_damaged(self) -> None:
        self.log(5).write_bytes(self.log(5).read_bytes()[:50])

    def scene_a_row_of_the_catalog_is_lost(self) -> None:
        with open_catalog(self.uri) as catalog:
            change(catalog, "DELETE FROM dl_add_files WHERE version = 6")

    def scene_the_log_is_lost(self) -> None:
        shutil.rmtree(self.lake / "orders" / "_delta_log")

    def scene_the_database_is_lost_and_no_backup_can_be_read(self) -> None:
        self.lose_the_database()

    def _version(self) -> int:
        with open_catalog(self.uri) as catalog:
            return catalog.table("sales.orders").version


def test_every_command_runs_in_its_order(
    catalog_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(catalog_uri, tmp_path)
    monkeypatch.setenv("MAINSTEM_CATALOG", catalog_uri)
    monkeypatch.setenv("MAINSTEM_PUBLISH_ATTEMPTS", "1")
    commands = 0
    for piece in script(stage.engine):
        if isinstance(piece, str):
            stage.play(piece)
        else:
            assert stage.run(piece) == piece.code, piece.text
            assert piece.says in capsys.readouterr().out, piece.text
            commands += 1
    assert commands > 35
    with open_catalog(catalog_uri) as catalog:
        assert {table.name: table.authority for table in catalog.tables()} == {
            "sales.items": "log", "sales.orders": "catalog",
        }  # fmt: skip


def test_no_command_hides_outside_of_the_blocks_that_are_run() -> None:
    text = RUNBOOK.read_text()
    fences = re.findall(r"^```(\S*)", text, re.M)
    assert set(fences) == {"bash", ""}
    assert len(fences) == 2 * len(re.findall(r"^```bash", text, re.M))
