"""Repair: what has one right answer is done, everything else is named with the command that decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mainstem import images, observe
from mainstem.deltalog.names import commit_name
from mainstem.errors import MainstemError
from mainstem.publish import publish
from mainstem.repair.decisions import COMMITS, Decision, decide
from mainstem.repair.logfiles import LogFiles
from mainstem.repair.spans import WrongSpan, put_right, wrong_keys, wrong_spans
from mainstem.store import Row, Store
from mainstem.validate import Finding, Report, validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Kind = Literal["spans", "images", "commit", "publish", "checkpoint"]
_CHECKPOINTS = "checkpoint_"
# Findings that say nothing against the rows from which a checkpoint is made: about other things, or what Delta sees
# where a commit or a checkpoint is not what it should be.
_BESIDE_THE_ROWS = frozenset(
    {"spans_equal_replay", "data_file_missing", "data_file_size", "statistics", "foreign_commit", "orphans_counted",
     "expectations", "snapshots_equal_delta"}
)  # fmt: skip
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was put right, or with `dry_run` would be."""

    kind: Kind
    message: str
    version: int | None = None
    outcome: Literal["planned", "done", "failed"] = "planned"
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did, what is left to decide, and what a validation says after it."""

    name: str
    dry_run: bool
    steps: Sequence[Step]
    decisions: Sequence[Decision]
    report: Report

    @property
    def success(self) -> bool:
        """Whether everything that was tried came off, and catalog and log agree."""
        return self.report.success and all(step.outcome != "failed" for step in self.steps)

    def as_dict(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "name": self.name,
            "success": self.success,
            "dry_run": self.dry_run,
            "steps": list(self.steps),
            "decisions": list(self.decisions),
            "report": {"success": self.report.success, **self.report.as_dict()},
        }


def repair(store: Store, name: str, *, session: Callable[[], SparkSession], dry_run: bool = False) -> Repaired:
    """Put right what has one right answer, and say of everything else which command decides it.

    That is: wrong spans (and images made of them), commit files that are gone from the log of a table that the catalog
    leads, versions that wait for publishing, and checkpoints that are missing, unreadable or contradict their version.
    Nothing that is there is overwritten but a checkpoint. Repeated, it finds nothing to do. With `dry_run`
    nothing at all is changed, nor is it recorded that the table was validated.
    """
    with observe.span("repair", table=name):
        report = validate(store, name, session=session, record=not dry_run)
        run = _Run(store, name, session, dry_run, report)
        run.rows()
        if run.changed:
            # A checkpoint that was written from wrong spans shows only now.
            run.report = validate(store, name, session=session)
            run.changed = False
        run.log()
        if run.changed:
            run.report = validate(store, name, session=session)
        decisions = tuple(run.decisions())
        done = Repaired(name, dry_run, tuple(run.steps), decisions, run.report)
    observe.event("repair.done", table=name, steps=len(done.steps), left=len(decisions), dry_run=dry_run)
    return done


class _Run:
    """One repair on its way."""

    def __init__(
        self, store: Store, name: str, session: Callable[[], SparkSession], dry_run: bool, report: Report
    ) -> None:
        self.store, self.name, self.session, self.dry_run, self.report = store, name, session, dry_run, report
        self.steps: list[Step] = []
        self.changed = False
        self._planned: set[tuple[str, int | None]] = set()  # checks and versions that a planned step answers
        self._spans_wrong = False

    @property
    def table(self) -> Row:
        return self.store.table(self.name)

    def rows(self) -> None:
        """What is wrong within the catalog."""
        table = self.table
        keys = wrong_keys(self.store, table, session=self.session)
        found = wrong_spans(self.store, table, keys)
        self._spans_wrong = bool(found)
        if found and self._rows_are_doubtful(self._files()):
            return  # replay of rows that are not what was committed would only spread the damage
        if found:
            self._step(Step("spans", _told(found)), partial(put_right, self.store, table, keys))
            return  # the images go with them
        if spoilt := images.spoilt(self.store, table["table_id"]):
            step = Step("images", "drop the images of the live files, which are not what the rows say", spoilt[-1])
            self._step(step, partial(images.forget, self.store, table["table_id"]))

    def log(self) -> None:
        """What the log lacks or cannot use, if it is ours to write."""
        files = self._files()
        if files is None or files.lost or files.table["authority"] != "catalog":
            return
        restored = [version for version in files.missing_commits() if files.rows_hold(version)]
        for version in restored:
            step = Step("commit", f"write {commit_name(version)} again, as it was committed", version)
            self._step(step, partial(files.put_back, version), ("missing_in_log", version))
        self._publish(files)
        self._checkpoints(restored)

    def _checkpoints(self, restored: Sequence[int]) -> None:
        files = self._files()
        if files is None or (self._spans_wrong and self.dry_run):
            return  # what a checkpoint must say shows when the spans are right
        unusable = sorted({int(found.version or 0) for found in self.report.findings if _unusable(found, files)})
        wanted = sorted({*unusable, *files.missing_checkpoints(unusable, restored)})
        if not wanted or self._rows_are_doubtful(files):
            return
        for version in wanted:
            what = "which is not what its version says" if version in unusable else "which is missing"
            step = Step("checkpoint", f"write the checkpoint of version {version}, {what}", version)
            self._step(step, partial(files.write_checkpoint, version), (_CHECKPOINTS, version))

    def _publish(self, files: LogFiles) -> None:
        first, last = files.published + 1, int(files.table["current_version"])
        if first > last or any(found.check == "foreign_commit" for found in self.report.findings):
            return
        versions = f"version {last}" if first == last else f"versions {first} to {last}"
        answered = [("published_in_time", version) for version in range(first, last + 1)]
        self._step(Step("publish", f"publish {versions}", last), partial(publish, self.store, self.name), *answered)

    def decisions(self) -> Iterator[Decision]:
        """What is left of the last report: all errors, and warnings that a command answers."""
        files = self._files()
        for finding in self.report.findings:
            if not self._answered(finding) and (finding.severity == "error" or "mainstem " in finding.message):
                yield decide(finding, self.table, files)

    def _answered(self, finding: Finding) -> bool:
        if not self.dry_run:
            return False  # then the report is that of afterwards
        if self._spans_wrong and (finding.check == "spans_equal_replay" or finding.check.startswith(_CHECKPOINTS)):
            return True
        check = _CHECKPOINTS if finding.check.startswith(_CHECKPOINTS) else finding.check
        return (check, finding.version) in self._planned

    def _rows_are_doubtful(self, files: LogFiles | None) -> bool:
        """Whether a finding says that the rows may not be what was committed: nothing is made of such rows."""
        return any(
            found.severity == "error"
            and found.check not in _BESIDE_THE_ROWS
            and not found.check.startswith(_CHECKPOINTS)
            and not (found.check in COMMITS and files is not None and _vouched_for(found, files))
            for found in self.report.findings
        )

    def _files(self) -> LogFiles | None:
        try:
            return LogFiles.of(self.store, self.table)
        except MainstemError:
            return None  # the validation says why

    def _step(self, step: Step, do: Callable[[], object], *answers: tuple[str, int | None]) -> None:
        self._planned.update(answers)
        if not self.dry_run:
            try:
                do()
                step = replace(step, outcome="done")
                self.changed = True
            except MainstemError as error:
                step = replace(step, outcome="failed", error=str(error))
        self.steps.append(step)


def _unusable(finding: Finding, files: LogFiles) -> bool:
    return (
        finding.check.startswith(_CHECKPOINTS)
        and finding.version is not None
        and files.floor <= finding.version <= files.published
    )


def _vouched_for(found: Finding, files: LogFiles) -> bool:
    """Whether the rows of a commit are what was committed, or the log no longer goes back as far: nothing says not."""
    if found.version is None:
        return False
    return (found.check == "missing_in_log" and found.version < files.oldest) or files.rows_hold(found.version)


def _told(found: Sequence[WrongSpan]) -> str:
    named = ", ".join(
        f"{span.named} of version {span.version} ends at {_end(span.ended)}, not at {_end(span.was)}"
        for span in found[:_SHOWN]
    )
    return f"rebuild {len(found)} spans by replay: {named}{' …' if found[_SHOWN:] else ''}"


def _end(version: int | None) -> str:
    return "no version" if version is None else str(version)
