"""What a validation has found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from mainstem.console import to_json
from mainstem.errors import MainstemError, ValidationFailed

Severity = Literal["error", "warning"]
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be: where, and what the catalog and the log say of it."""

    check: str
    severity: Severity
    message: str
    version: int | None = None
    path: str | None = None
    column: str | None = None
    catalog: Any = None
    log: Any = None


@dataclass(frozen=True, slots=True)
class Expected:
    """One expectation of a suite, and what came of it."""

    expectation: str
    column: str | None
    severity: Severity
    success: bool
    unexpected: int | None = None
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" of {self.column}" if self.column else ""
        count = f": {self.unexpected} unexpected" if self.unexpected is not None else ""
        shown = f", such as {', '.join(self.examples)}" if self.examples else ""
        return f"{self.expectation}{where}{count}{shown}"


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A suite of expectations, run `on` the table's data or on a frame of the validation."""

    suite: str
    on: str
    started_at: datetime
    finished_at: datetime
    expectations: Sequence[Expected]

    @property
    def failed(self) -> list[Expected]:
        """The expectations that do not hold, whatever their severity."""
        return [each for each in self.expectations if not each.success]

    @property
    def success(self) -> bool:
        """Whether everything of severity error holds."""
        return not any(each.severity == "error" for each in self.failed)


@dataclass(frozen=True, slots=True)
class Report:
    """All that one validation has looked at, and how long each check took.

    `success` is whether nothing of severity error was found.
    """

    table: str
    version: int
    started_at: datetime
    finished_at: datetime
    checks: Sequence[str]
    findings: Sequence[Finding] = field(default=())
    engine: Literal["driver", "spark"] = "driver"
    suites: Sequence[SuiteRun] = field(default=())
    docs: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Whether catalog and log agree."""
        return not any(finding.severity == "error" for finding in self.findings)

    @classmethod
    def of_failure(cls, table: str, version: int, check: str, error: MainstemError) -> Report:
        """The report of a table that could not be looked at: that is what was found."""
        now = datetime.now(UTC)
        return cls(table, version, now, now, [check], [Finding(check, "error", f"it could not be checked: {error}")])

    def to_json(self) -> str:
        """The report as one JSON document."""
        return to_json({"success": self.success, **self.as_dict()})

    def as_dict(self) -> dict[str, Any]:
        """The report as data."""
        return {
            "table": self.table,
            "version": self.version,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "engine": self.engine,
            "checks": list(self.checks),
            "findings": list(self.findings),
            "suites": [{"success": each.success, **suite_as_dict(each)} for each in self.suites],
            "docs": self.docs,
            "seconds": {name: round(taken, 3) for name, taken in self.seconds.items()},
        }

    def require(self) -> None:
        """Raise `ValidationFailed` unless catalog and log agree."""
        errors = [finding for finding in self.findings if finding.severity == "error"]
        if errors:
            told = "; ".join(f"{finding.check}: {finding.message}" for finding in errors[:_SHOWN])
            raise ValidationFailed(
                f"{self.table}: {len(errors)} differences between the catalog and what it describes: {told}",
                hint=f"See them all: mainstem validate {self.table} --json",
                table=self.table,
                findings=len(errors),
            )


def suite_as_dict(run: SuiteRun) -> dict[str, Any]:
    """A run of a suite as data."""
    return {
        "suite": run.suite,
        "on": run.on,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "expectations": list(run.expectations),
    }
