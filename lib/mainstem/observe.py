"""What an operator sees: spans and metrics by the OpenTelemetry API, events by logging.

Silent and nearly free unless the user configures an exporter or a log level. Values pass through `mask`,
so that a password can reach neither a log line nor a span.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from opentelemetry import metrics, trace
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from mainstem.errors import MainstemError, mask

SCOPE = "mainstem"
Value = str | int | float | bool
_UNITS = {"_ms": "ms", "_seconds": "s"}
_log = logging.getLogger(SCOPE)


def _shown(value: object) -> Value:
    return value if isinstance(value, bool | int | float) else mask(str(value))


@cache
def _tracer() -> Tracer:
    """The user's tracer, also if it is configured later: until then OpenTelemetry gives a proxy for it."""
    return trace.get_tracer(SCOPE)


@contextmanager
def span(name: str, **attributes: object) -> Iterator[Span]:
    """One piece of work in the trace; an exception is recorded on it and goes on, with its message masked."""
    with _tracer().start_as_current_span(name, record_exception=False, set_status_on_exception=False) as current:
        if current.is_recording():  # masking costs more than all the rest, and mostly nobody looks
            for key, value in attributes.items():
                if value is not None:
                    current.set_attribute(key, _shown(value))
        try:
            yield current
        except Exception as error:
            code = error.code if isinstance(error, MainstemError) else type(error).__name__
            current.set_attribute("error.type", code)
            current.set_status(Status(StatusCode.ERROR, mask(str(error))))
            raise


@cache
def _histogram(name: str) -> Histogram:
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "1")
    return metrics.get_meter(SCOPE).create_histogram(name, unit=unit)


@cache
def _counter(name: str) -> Counter:
    return metrics.get_meter(SCOPE).create_counter(name)


def record(name: str, value: float, **attributes: object) -> None:
    """One measurement of a distribution, such as `metadata_open_latency_ms`."""
    _histogram(name).record(value, {key: _shown(item) for key, item in attributes.items()})


def count(name: str, amount: int = 1, **attributes: object) -> None:
    """Add to a counter, such as `rows_scanned`."""
    _counter(name).add(amount, {key: _shown(item) for key, item in attributes.items()})


@contextmanager
def timed(metric: str, **attributes: object) -> Iterator[None]:
    """Record how many milliseconds the block took, also when it failed."""
    start = time.perf_counter()
    try:
        yield
    finally:
        record(metric, (time.perf_counter() - start) * 1000, **attributes)


def event(name: str, *, level: int = logging.INFO, **fields: object) -> None:
    """One log line, `noun.verb key=value …`; values with spaces or quotes are quoted."""
    if _log.isEnabledFor(level):
        _log.log(level, "%s", " ".join([name, *(f"{key}={_quoted(value)}" for key, value in fields.items())]))


def _quoted(value: object) -> str:
    text = str(_shown(value))
    plain = text and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if plain else '"' + text.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
