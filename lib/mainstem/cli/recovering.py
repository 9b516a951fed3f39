"""Commands that bring things back: validate --repair, rebuild-log, rebuild-catalog."""

from __future__ import annotations

import typer

from mainstem.cli.frame import Frame
from mainstem.errors import ValidationFailed


def repair_tables(frame: Frame, name: str | None, *, dry_run: bool) -> None:
    """Repair one table, or all of them: what `mainstem validate --repair` does."""
    with frame.catalog() as opened:
        names = [table.name for table in opened.tables()] if name is None else [name]
        found = [opened.table(each).repair(dry_run=dry_run) for each in names]
    for done in found:
        steps = [(step.outcome, step.kind, step.version, step.message, step.error) for step in done.steps]
        if steps:
            frame.output.table(("", "repair", "version", "what", "error"), steps)
        left = [(each.check, each.version, each.path, each.message, each.command) for each in done.decisions]
        if left:
            frame.output.table(("check", "version", "path", "found", "decide by"), left, title="To be decided")
        failed = sum(step.outcome == "failed" for step in done.steps)
        would = f"{len(steps)} repairs would be made" if dry_run else f"{len(steps) - failed} repairs were made"
        frame.output.say(f"{done.name}: {would}, {failed} failed, {len(left)} findings are left to decide.")
    frame.output.report([done.as_dict() for done in found])
    if not all(done.success for done in found):
        raise typer.Exit(ValidationFailed.exit_code)
