"""Which suites a validation runs, on what, and what their failures mean for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mainstem import observe
from mainstem.errors import MainstemError, UnsupportedFeature
from mainstem.expectations import suites_of, suites_on_frames
from mainstem.session import is_spark_error
from mainstem.validate.report import Finding, SuiteRun
from mainstem.validate.subject import Subject
from mainstem.validate.suites import DATA, Suites

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class Ran:
    """The suites that ran, the findings that they add, and the page of their docs."""

    suites: list[SuiteRun] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    docs: str | None = None


def run_all(
    subject: Subject,
    *,
    form: Literal["driver", "spark"],
    rows: Callable[[], DataFrame] | None,
    suites: Sequence[Any],
    docs: Path | None,
) -> Ran:
    """Every suite that applies: in the Spark form ours on the frames, and with a session the table's own on its data.

    What ours find is told by the checks already, with version and path; a suite of the data adds a finding for each
    expectation that does not hold.
    """
    ran = Ran()
    wanted = [*suites_of(subject.name, subject.snapshot.properties), *suites]
    on_frames = form == "spark"
    if (wanted or docs is not None) and find_spec("great_expectations") is None:
        raise UnsupportedFeature(
            "expectations need great-expectations, which is not installed.", hint="pip install mainstem[quality]"
        )
    if wanted and (rows is None or not subject.has_session):
        ran.findings.append(
            Finding(
                "expectations", "warning", f"its suites {', '.join(map(str, wanted))} need Spark, and there is no "
                f"session; run them by: mainstem validate {subject.name} --engine spark",
            )
        )  # fmt: skip
        wanted = []
    if not wanted and (not on_frames or find_spec("great_expectations") is None):
        return ran
    with observe.span("validate.suites", table=subject.name):
        runner = Suites(subject.name, docs=docs)
        if on_frames:
            by_frame: dict[str, list[str]] = {}
            for suite, frame in suites_on_frames():
                by_frame.setdefault(frame, []).append(suite)
            for frame, names in by_frame.items():
                if frame in subject.frames:
                    subject.store.engine.close()
                    ran.suites += runner.run(frame, subject.frames[frame], names)
        if wanted:
            assert rows is not None
            ran.findings += _on_data(subject, runner, rows, wanted, ran)
        ran.docs = runner.docs()
    return ran


def _on_data(
    subject: Subject, runner: Suites, rows: Callable[[], DataFrame], wanted: Sequence[Any], ran: Ran
) -> Iterator[Finding]:
    try:
        frame = rows()
        subject.store.engine.close()
        found = list(runner.run(DATA, frame, wanted))
    except MainstemError as error:
        yield Finding("expectations", "error", f"they could not be checked: {error}")
        return
    except Exception as error:
        if not is_spark_error(error):
            raise
        yield Finding("expectations", "error", f"the data cannot be read: {' '.join(str(error).split())[:300]}")
        return
    ran.suites += found
    for run in found:
        for each in run.failed:
            yield Finding(
                "expectations", each.severity, f"{run.suite}: {each}", version=subject.snapshot.version,
                column=each.column, log=each.unexpected,
            )  # fmt: skip
