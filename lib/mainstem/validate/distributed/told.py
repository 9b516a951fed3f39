"""From rows of findings to findings: bounded, however much is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mainstem.validate.report import Finding, Severity
from mainstem.validate.subject import Subject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 1000


def told(
    subject: Subject, found: DataFrame, check: str, finding: Callable[[Any], Iterator[Finding]], *, by: tuple[str, ...]
) -> Iterator[Finding]:
    """The first rows, in the order of `by`, each as findings; if there are more of them, how many."""
    rows = subject.collect(found.orderBy(*by).limit(MOST))
    severity: Severity = "error"
    for row in rows:
        for each in finding(row):
            severity = each.severity
            yield each
    if len(rows) == MOST:
        subject.store.engine.close()
        more = found.count() - MOST
        if more > 0:
            yield Finding(check, severity, f"and {more} more, of which nothing is told here", log=more)
