"""The medians as bars, an SVG written by hand: no plotting library is needed for rectangles, on any machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from mainstem.bench.race import Samples
from mainstem.bench.scenario import Result

_WIDTH, _LEFT, _RIGHT = 960, 330, 110
_BAR, _GAP, _TITLE = 16, 6, 34
_COLOURS = {"Mainstem": "#2f6f9f", "delta-rs": "#b0722b", "Delta Spark": "#8a8f98"}


def bars(results: Sequence[Result]) -> str:
    """One group of bars a scenario, on one logarithmic scale of milliseconds; shorter is better."""
    parts = list(_parts(results))
    height = parts.pop()
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
            *map(str, parts),
            "</svg>\n",
        ]
    )


def _parts(results: Sequence[Result]) -> Iterator[str | int]:
    """The elements from top to bottom, and last the height that they need."""
    times = [each.median_ms for result in results for each in result.samples]
    low, high = (math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))) if times else (0, 1)
    decades = max(1, high - low)

    def length(milliseconds: float) -> float:
        return (math.log10(milliseconds) - low) / decades * (_WIDTH - _LEFT - _RIGHT)

    yield _text(10, 20, "Medians in milliseconds, logarithmic: shorter is better", weight="bold")
    top = _TITLE
    for result in results:
        top += _TITLE - 10
        yield _text(10, top, result.scenario.title, weight="bold")
        top += _GAP
        for each in result.samples:
            yield from _bar(each, top, length(each.median_ms))
            top += _BAR + _GAP
    for decade in range(low, high + 1):
        x = _LEFT + length(10.0**decade)
        yield f'<line x1="{x:.1f}" y1="{_TITLE}" x2="{x:.1f}" y2="{top}" stroke="#00000018"/>'
        yield _text(x, top + 14, f"{10.0**decade:g}", anchor="middle")
    yield top + 30


def _bar(samples: Samples, top: float, width: float) -> Iterator[str]:
    colour = next((value for key, value in _COLOURS.items() if samples.name.startswith(key)), "#555555")
    yield _text(_LEFT - 8, top + _BAR - 4, samples.name, anchor="end")
    yield f'<rect x="{_LEFT}" y="{top}" width="{max(1.0, width):.1f}" height="{_BAR}" fill="{colour}"/>'
    yield _text(_LEFT + max(1.0, width) + 6, top + _BAR - 4, f"{samples.median_ms:,.4g}")


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
