"""All checks of one table, cheap ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson

from mainstem import observe
from mainstem.errors import MainstemError, ValidationFailed
from mainstem.snapshot import open_snapshot
from mainstem.store import Store
from mainstem.validate.commits import checkpoints_equal, commits_equal, log_ends_with_the_catalog
from mainstem.validate.data import data_files_present, statistics_sane
from mainstem.validate.report import Finding, Report
from mainstem.validate.rows import head_is_newest, published_in_time, spans_equal_replay, versions_contiguous
from mainstem.validate.subject import Subject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[[Subject], Iterator[Finding]]

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
    store: Store, name: str, *, session: Callable[[], SparkSession], further: tuple[Check, ...] = ()
) -> Report:
    """Compare the catalog with the table's log and files. Changes nothing; the result is kept in `dl_validation_runs`.

    A check that cannot be made is a finding, and does not stop the next one.
    """
    started = datetime.now(UTC)
    with observe.span("validate", table=name):
        subject = _subject(store, name, session)
        checks = CHECKS + further
        findings = [finding for check in checks for finding in _made(check, subject)]
    report = Report(
        name, subject.snapshot.version, started, datetime.now(UTC), [check.__name__ for check in checks], findings
    )
    _keep(store, subject, report)
    observe.event("validate.done", table=name, success=report.success, findings=len(findings))
    return report


def require_agreement(store: Store, name: str) -> None:
    """Raise `ValidationFailed` unless the catalog says of a table what its log says, and ends where it ends."""
    with observe.span("agreement", table=name):
        subject = _subject(store, name, _no_session)
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


def _subject(store: Store, name: str, session: Callable[[], SparkSession]) -> Subject:
    table = store.table(name)
    bounds = {"table_id": table["table_id"], "first": table["min_readable_version"], "last": 2**62}
    snapshot = open_snapshot(store, name, table["table_id"], session=session)
    return Subject(store, table, snapshot, store.rows("versions_between", **bounds))


def _made(check: Check, subject: Subject) -> Iterator[Finding]:
    with observe.span(f"validate.{check.__name__}", table=subject.name):
        try:
            yield from check(subject)
        except MainstemError as error:
            yield Finding(check.__name__, "error", f"it could not be checked: {error}")


def _keep(store: Store, subject: Subject, report: Report) -> None:
    told = [{"check": found.check, "severity": found.severity, "message": found.message, "version": found.version,
             "path": found.path} for found in report.findings[:_MOST_STORED]]  # fmt: skip
    with store.writing() as queries:
        queries.change(
            "validation_run_insert", run_id=str(uuid4()), table_id=subject.table_id, version=report.version,
            group_id=None, suite="catalog against log", started_at=report.started_at, finished_at=report.finished_at,
            success=report.success, findings=orjson.dumps(told).decode(),
        )  # fmt: skip
