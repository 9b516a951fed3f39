"""Jobs are commands: one implementation, under two names."""

from __future__ import annotations

import re
from pathlib import Path

from mainstem.cli.frame import app

JOBS = Path(__file__).parents[2] / "jobs"
PROMISED = {"migrate", "import_table", "follow", "snapshot", "append", "publish", "validate", "maintain", "benchmark"}


def test_every_job_that_is_promised_runs_a_command_that_there_is() -> None:
    commands = {each.name or each.callback.__name__ for each in app.registered_commands if each.callback}
    jobs = {file.stem: re.findall(r'run\("(.+)"\)', file.read_text()) for file in JOBS.glob("*.py")}
    assert jobs.keys() >= PROMISED
    for name, ran in jobs.items():
        assert len(ran) == 1, name
        assert ran[0] in commands, name
