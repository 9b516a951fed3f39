from __future__ import annotations

import logging

import pytest
from opentelemetry.trace import StatusCode
from telemetry import Telemetry

from mainstem import observe
from mainstem.errors import UsageError

SENTINEL = "s3ntinel-pw"
URI = f"postgresql://me:{SENTINEL}@db/lake"


def test_a_span_carries_its_attributes(telemetry: Telemetry) -> None:
    with observe.span("snapshot.open", table="sales.orders", version=7, missing=None):
        pass
    (found,) = telemetry.spans
    assert found.name == "snapshot.open"
    assert dict(found.attributes or {}) == {"table": "sales.orders", "version": 7}


def test_a_failed_span_names_the_error_and_hides_the_password(telemetry: Telemetry) -> None:
    with pytest.raises(UsageError), observe.span("catalog.open", uri=URI):
        raise UsageError(f"cannot open {URI}")
    (found,) = telemetry.spans
    assert found.status.status_code is StatusCode.ERROR
    assert (found.attributes or {})["error.type"] == "usage"
    assert SENTINEL not in found.to_json()


def test_metrics_are_counted_and_recorded(telemetry: Telemetry) -> None:
    observe.count("test_rows", 3, table="t")
    observe.count("test_rows", 4, table="t")
    with observe.timed("test_latency_ms", uri=URI):
        pass
    assert telemetry.counted("test_rows", "table") == {"t": 7}
    [latency] = telemetry.points("test_latency_ms")
    assert latency.count == 1
    assert SENTINEL not in str(latency.attributes)


def test_an_event_is_one_line_of_noun_verb_and_fields(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="mainstem"):
        observe.event("commit.ratified", table="sales.orders", version=7, note='two words\nand "quotes"', uri=URI)
    (line,) = caplog.messages
    assert line.startswith("commit.ratified table=sales.orders version=7 note=")
    assert "\n" not in line
    assert SENTINEL not in line


def test_an_event_below_the_level_costs_no_formatting(caplog: pytest.LogCaptureFixture) -> None:
    class Loud:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    with caplog.at_level(logging.WARNING, logger="mainstem"):
        observe.event("commit.ratified", table=Loud())
    assert not caplog.messages
