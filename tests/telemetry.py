"""What the library tells OpenTelemetry, caught in memory. OpenTelemetry takes its providers once a process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


class Telemetry(SpanExporter):
    """Spans and metrics of the tests that ask for them; between those nothing is kept."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        self.listening = False
        self._reader = InMemoryMetricReader()
        tracer = TracerProvider()
        tracer.add_span_processor(SimpleSpanProcessor(self))
        trace.set_tracer_provider(tracer)
        metrics.set_meter_provider(MeterProvider(metric_readers=[self._reader]))

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.listening:
            self.spans += spans
        return SpanExportResult.SUCCESS

    def names(self) -> Counter[str]:
        """How often each span was there."""
        return Counter(span.name for span in self.spans)

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric since the run began, one for each set of attributes."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]

    def counted(self, metric: str, key: str) -> Counter[str]:
        """The sums of a counter since the run began, by one of its attributes."""
        found: Counter[str] = Counter()
        for point in self.points(metric):
            found[str(point.attributes.get(key))] += point.value
        return found
