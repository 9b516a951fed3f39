"""One Delta Spark for all oracle tests, and at the end what was compared, by feature."""

from __future__ import annotations

import pytest
from delta_oracle import DeltaSpark
from pyspark.sql import SparkSession
from report import FeatureReport, text_of


@pytest.fixture(scope="session")
def delta(spark: SparkSession) -> DeltaSpark:
    """Delta Spark's own word."""
    return DeltaSpark(spark)


@pytest.fixture
def feature_report(request: pytest.FixtureRequest) -> FeatureReport:
    """What a corpus test says about its table; shown at the end of the run, by feature."""
    return FeatureReport(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Carried by the tests' own reports, because the tests may have run in another process than this.
    passed = terminalreporter.stats.get("passed", [])
    found = [value for report in passed for name, value in report.user_properties if name == FeatureReport.NAME]
    if found:
        terminalreporter.section("conformance corpus by feature")
        terminalreporter.write_line(text_of(found))
