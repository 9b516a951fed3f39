"""What has no one right answer: each finding with the command that decides it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mainstem.deltalog.files import LOG
from mainstem.deltalog.names import commit_name
from mainstem.repair.logfiles import LogFiles
from mainstem.store import Row
from mainstem.validate import Finding

# Findings about a commit that is in both places, and not the same.
COMMITS = frozenset({"unreadable_commit", "commit_bytes", "differs", "missing_in_log", "missing_in_catalog"})


@dataclass(frozen=True, slots=True)
class Decision:
    """A finding that somebody has to decide on, and how."""

    check: str
    message: str
    version: int | None
    path: str | None
    command: str


def decide(finding: Finding, table: Row, files: LogFiles | None) -> Decision:
    """How a finding is decided that cannot be repaired. `files` is the table's log, if its folder can be opened."""
    if files is None:
        command = f"make {table['location']} reachable, then: mainstem validate {table['name']}"
    elif files.lost:
        command = f"mainstem rebuild-log {table['name']}"
    elif finding.check in COMMITS and finding.version is not None:
        command = _of_commit(finding, table, files)
    else:
        command = _BY_CHECK.get(finding.check, _import)(finding, table)
    return Decision(finding.check, finding.message, finding.version, finding.path, command)


def _of_commit(finding: Finding, table: Row, files: LogFiles) -> str:
    """Which side still has what was committed, its sha256 tells; a commit that only the catalog has can be put back."""
    version = finding.version
    assert version is not None
    damaged = files.listing.commit(version) is not None and not files.log_holds(version)
    if table["authority"] == "catalog" and damaged and files.rows_hold(version):
        # The one kind of file that nobody may overwrite: out of the way first.
        name = commit_name(version)
        return f"move {name} out of the table's {LOG}, then: mainstem validate {table['name']} --repair"
    return _import(finding, table)


def _import(finding: Finding, table: Row) -> str:
    """The log as it is becomes the catalog's; a table that the catalog led is then cut over again."""
    name = table["name"]
    again = f"; then: mainstem cutover {name}" if table["authority"] == "catalog" else ""
    return f"mainstem import {table['location']} --name {name} --force{again}"


def _resolve(finding: Finding, table: Row) -> str:
    return f"mainstem resolve {table['name']}"


def _follow(finding: Finding, table: Row) -> str:
    return f"mainstem follow {table['name']}"


def _publish(finding: Finding, table: Row) -> str:
    return f"mainstem publish {table['name']}"


def _vacuum(finding: Finding, table: Row) -> str:
    return f"mainstem vacuum {table['name']} --dry-run"


def _data(finding: Finding, table: Row) -> str:
    return "bring the file back from a backup of the table's folder; neither catalog nor log has its rows"


def _statistics(finding: Finding, table: Row) -> str:
    return f"write the file anew, for example by catalog.table({table['name']!r}).optimize()"


def _expectations(finding: Finding, table: Row) -> str:
    return "mend the rows, or the expectations; neither catalog nor log can tell which of them is right"


def _checkpoint(finding: Finding, table: Row) -> str:
    if table["authority"] == "log":
        return "let the engine that leads make a checkpoint again"
    return f"decide on the other findings first, then: mainstem validate {table['name']} --repair"


_BY_CHECK: Mapping[str, Callable[[Finding, Row], str]] = {
    "foreign_commit": _resolve,
    "log_ends_with_the_catalog": _follow,
    "published_in_time": _publish,
    "data_file_missing": _data,
    "data_file_size": _data,
    "statistics": _statistics,
    "orphans_counted": _vacuum,
    "expectations": _expectations,
    "checkpoint_unreadable": _checkpoint,
    "checkpoint_lacks_file": _checkpoint,
    "checkpoint_has_more": _checkpoint,
    "checkpoint_differs": _checkpoint,
    "snapshots_equal_delta": _checkpoint,
}
