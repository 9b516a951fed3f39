"""What a validation has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from mainstem.console import to_json
from mainstem.errors import ValidationFailed

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
class Report:
    """All that one validation has looked at. `success` is whether nothing of severity error was found."""

    table: str
    version: int
    started_at: datetime
    finished_at: datetime
    checks: Sequence[str]
    findings: Sequence[Finding] = field(default=())

    @property
    def success(self) -> bool:
        """Whether catalog and log agree."""
        return not any(finding.severity == "error" for finding in self.findings)

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
            "checks": list(self.checks),
            "findings": list(self.findings),
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
