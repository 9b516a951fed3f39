"""One Delta Spark for all oracle tests, and at the end what was compared, by feature."""

from __future__ import annotations

import pytest
from delta_oracle import DeltaSpark
from pyspark.sql import SparkSession
from report import FeatureReport


@pytest.fixture(scope="session")
def delta(spark: SparkSession) -> DeltaSpark:
    """Delta Spark's own word."""
    return DeltaSpark(spark)


@pytest.fixture(scope="session")
def feature_report(request: pytest.FixtureRequest) -> FeatureReport:
    """What the corpus tests say about each table; shown at the end of the run."""
    report = FeatureReport()
    request.config.stash[_REPORT] = report
    return report


_REPORT = pytest.StashKey[FeatureReport]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    report = config.stash.get(_REPORT, None)
    if report is not None and report.outcomes:
        terminalreporter.section("conformance corpus by feature")
        terminalreporter.write_line(report.text())
