"""All checks of one table, cheap ones first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from mainstem import observe
from mainstem.console import to_json
from mainstem.errors import MainstemError, UsageError, ValidationFailed, mask
from mainstem.session import is_spark_error
from mainstem.snapshot import open_snapshot
from mainstem.store import Store
from mainstem.validate import distributed
from mainstem.validate.commits import checkpoints_equal, commits_equal, log_ends_with_the_catalog
from mainstem.validate.data import data_files_present, orphans_counted, statistics_sane
from mainstem.validate.report import Finding, Report
from mainstem.validate.rows import head_is_newest, published_in_time, spans_equal_replay, versions_contiguous
from mainstem.validate.subject import Check, Listed, Subject
from mainstem.validate.suiteruns import run_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Form = Literal["auto", "driver", "spark"]

CHECKS: tuple[Check, ...] = (
    versions_contiguous,
    head_is_newest,
    published_in_time,
    spans_equal_replay,
    log_ends_with_the_catalog,
    commits_equal,
    checkpoints_equal,
    data_files_present,
    statistics_sane,
    orphans_counted,
)
# What must be so before the catalog may lead. The data is the same whoever leads, so it is not looked at.
AGREEMENT: tuple[Check, ...] = (
    versions_contiguous,
    head_is_newest,
    spans_equal_replay,
    log_ends_with_the_catalog,
    commits_equal,
    checkpoints_equal,
)
_MOST_STORED = 1000
_MOST_TOLD = 3


def validate(
    store: Store,
    name: str,
    *,
    session: Callable[[], SparkSession],
    engine: Form = "auto",
    snapshots: Literal["sample", "all"] = "sample",
    rows: Callable[[], DataFrame] | None = None,
    suites: Sequence[Any] = (),
    docs: Path | None = None,
    record: bool = True,
) -> Report:
    """Compare the catalog with the table's log and files. Changes nothing; the result is kept in `dl_validation_runs`,
    unless `record` says otherwise.

    `driver` looks at everything in this process, `spark` in DataFrames; `auto` takes Spark beyond the setting
    `validate_files`, if there is a session. With Spark, Delta's own reconstruction of the log is compared too, at a few
    versions or at all, and suites of expectations run: ours on what was compared, and on the table's `rows` those that
    its properties name, `conf/expectations/` has under its name, or `suites` gives. `docs` and all `snapshots` need
    Spark: `auto` takes it then, whatever the table's size. A check that cannot be made is a finding, and does not stop
    the next one; a table whose rows are too damaged to be opened is one, too.
    """
    started = datetime.now(UTC)
    require_form(engine, snapshots)
    with observe.span("validate", table=name):
        listed = _listed(store, name)
        try:
            subject = _opened(listed, session, every_version=snapshots == "all")
        except MainstemError as error:
            report = _unopened(listed, started, error)
            if record:
                _keep(listed, report)
            return report
        form = _form(subject, engine, needs_spark=docs is not None or snapshots == "all")
        checks = distributed.CHECKS if form == "spark" else CHECKS
        try:
            findings: list[Finding] = []
            seconds: dict[str, float] = {}
            for check in checks:
                began = time.monotonic()
                findings += _made(check, subject)
                seconds[check.__name__] = time.monotonic() - began
            began = time.monotonic()
            ran = run_all(subject, form=form, rows=rows, suites=suites, docs=docs)
            seconds["suites"] = time.monotonic() - began
        finally:
            subject.release()
    report = Report(
        name, subject.snapshot.version, started, datetime.now(UTC), [check.__name__ for check in checks],
        [*findings, *ran.findings], engine=form, suites=ran.suites, docs=ran.docs,
        seconds=seconds,
    )  # fmt: skip
    if record:
        _keep(subject, report)
    observe.event("validate.done", table=name, success=report.success, findings=len(report.findings), engine=form)
    return report


def require_form(engine: str, snapshots: str) -> None:
    """Raise `UsageError` where a validation of this form cannot do what is asked for."""
    if engine not in ("auto", "driver", "spark"):
        raise UsageError(f"{engine!r} is no engine for validate().", hint="Give auto, driver or spark.")
    if snapshots not in ("sample", "all"):
        raise UsageError(f"{snapshots!r} are no snapshots for validate().", hint="Give sample or all.")
    if engine == "driver" and snapshots == "all":
        raise UsageError(
            "all snapshots are compared with Delta's own, which needs Spark, and the engine is to be the driver.",
            hint="Nothing was checked. Give the engine spark or auto, or leave the snapshots out.",
        )


def _form(subject: Subject, engine: Form, *, needs_spark: bool) -> Literal["driver", "spark"]:
    if engine == "spark" or (engine == "auto" and needs_spark):
        subject.spark  # noqa: B018  without a session it raises, with the next step
        return "spark"
    if engine == "driver" or not subject.has_session:
        return "driver"
    return "spark" if subject.snapshot.has_more_files_than(subject.store.engine.settings.validate_files) else "driver"


def require_agreement(store: Store, name: str) -> None:
    """Raise `ValidationFailed` unless the catalog says of a table what its log says, and ends where it ends."""
    with observe.span("agreement", table=name):
        subject = _opened(_listed(store, name), _no_session)
        findings = [finding for check in AGREEMENT for finding in _made(check, subject)]
    if findings:
        told = "; ".join(f"{found.check}{_at(found)}: {found.message}" for found in findings[:_MOST_TOLD])
        more = f"; and {len(findings) - _MOST_TOLD} more" if findings[_MOST_TOLD:] else ""
        raise ValidationFailed(
            f"the catalog and the log of {name} do not say the same: {told}{more}.",
            hint=f"Nothing was changed. See: mainstem validate {name}",
            table=name,
            findings=findings[:_MOST_STORED],
        )


def _at(finding: Finding) -> str:
    return "" if finding.version is None else f" at version {finding.version}"


def _no_session() -> SparkSession:
    raise AssertionError("no check of agreement needs Spark")


def _listed(store: Store, name: str) -> Listed:
    table = store.table(name)
    bounds = {"table_id": table["table_id"], "first": table["min_readable_version"], "last": 2**62}
    return Listed(store, table, store.rows("versions_known", **bounds))


def _opened(listed: Listed, session: Callable[[], SparkSession], *, every_version: bool = False) -> Subject:
    snapshot = open_snapshot(listed.store, listed.name, listed.table_id, session=session)
    return Subject(listed.store, listed.table, listed.versions, snapshot, every_version)


def _unopened(listed: Listed, started: datetime, error: MainstemError) -> Report:
    """What can be said of a table whose head cannot be opened: what its own rows lack, and why."""
    findings = [*versions_contiguous(listed), *head_is_newest(listed)]
    findings.append(Finding("head_opens", "error", f"it cannot be opened: {error}", version=listed.head))
    observe.event("validate.done", table=listed.name, success=False, findings=len(findings))
    checks = ["versions_contiguous", "head_is_newest", "head_opens"]
    return Report(listed.name, listed.head, started, datetime.now(UTC), checks, findings)


def _made(check: Check, subject: Subject) -> Iterator[Finding]:
    with observe.span(f"validate.{check.__name__}", table=subject.name):
        try:
            yield from check(subject)
        except MainstemError as error:
            yield Finding(check.__name__, "error", f"it could not be checked: {error}")
        except Exception as error:
            # What a task raises comes back as Spark's error, with ours in its text.
            if not subject.has_session or not is_spark_error(error):
                raise
            yield Finding(check.__name__, "error", f"it could not be checked: {_told(error)}")


def _told(error: Exception) -> str:
    """What a task of ours has said, or the first line of what Spark says."""
    lines = [line.strip() for line in mask(str(error)).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("mainstem.errors.")), lines[0] if lines else repr(error))


def _keep(subject: Listed, report: Report) -> None:
    """The run itself, and each suite as a run of its own."""
    at = {"table_id": subject.table_id, "version": report.version, "group_id": None}
    runs: list[tuple[str, datetime, datetime, bool, Sequence[Any]]]
    runs = [("catalog against log", report.started_at, report.finished_at, report.success, report.findings)]
    runs += [(each.suite, each.started_at, each.finished_at, each.success, each.failed) for each in report.suites]
    with subject.store.writing() as queries:
        for suite, started_at, finished_at, success, told in runs:
            queries.change(
                "validation_run_insert", run_id=str(uuid4()), **at, suite=suite, started_at=started_at,
                finished_at=finished_at, success=success, findings=to_json(list(told[:_MOST_STORED])),
            )  # fmt: skip
