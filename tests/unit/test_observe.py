from __future__ import annotations

import logging

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from mainstem import observe
from mainstem.errors import UsageError

SENTINEL = "s3ntinel-pw"
URI = f"postgresql://me:{SENTINEL}@db/lake"


@pytest.fixture(scope="module")
def providers() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """OpenTelemetry takes its providers once a process; the module shares them."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracer = TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(tracer)
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    return exporter, reader


@pytest.fixture
def spans(providers: tuple[InMemorySpanExporter, InMemoryMetricReader]) -> InMemorySpanExporter:
    providers[0].clear()
    return providers[0]


def points(reader: InMemoryMetricReader) -> dict[str, list[dict[str, object]]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: [dict(point.attributes) for point in metric.data.data_points]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_a_span_carries_its_attributes(spans: InMemorySpanExporter) -> None:
    with observe.span("snapshot.open", table="sales.orders", version=7, missing=None):
        pass
    (found,) = spans.get_finished_spans()
    assert found.name == "snapshot.open"
    assert dict(found.attributes or {}) == {"table": "sales.orders", "version": 7}


def test_a_failed_span_names_the_error_and_hides_the_password(spans: InMemorySpanExporter) -> None:
    with pytest.raises(UsageError), observe.span("catalog.open", uri=URI):
        raise UsageError(f"cannot open {URI}")
    (found,) = spans.get_finished_spans()
    assert found.status.status_code is StatusCode.ERROR
    assert (found.attributes or {})["error.type"] == "usage"
    assert SENTINEL not in found.to_json()


def test_metrics_are_counted_and_recorded(providers: tuple[InMemorySpanExporter, InMemoryMetricReader]) -> None:
    observe.count("rows_scanned", 3, table="t")
    with observe.timed("metadata_open_latency_ms", uri=URI):
        pass
    found = points(providers[1])
    assert found["rows_scanned"] == [{"table": "t"}]
    assert len(found["metadata_open_latency_ms"]) == 1
    assert SENTINEL not in str(found)


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
