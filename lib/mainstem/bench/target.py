"""What a scenario must reach, and whether it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mainstem.bench.race import Samples

Measured = Mapping[str, Samples]


@dataclass(frozen=True, slots=True)
class Target:
    """A limit on a number that the samples give. `who` is the contender whose time decides."""

    who: str
    what: str
    value: Callable[[Measured], float]
    limit: float
    unit: str
    at_least: bool

    def verdict(self, samples: Measured) -> Verdict:
        """The number, and whether it keeps the limit."""
        value = self.value(samples)
        met = value >= self.limit if self.at_least else value <= self.limit
        return Verdict(self, value, met=met)

    @property
    def wanted(self) -> str:
        """The limit for people."""
        return f"{'≥' if self.at_least else '≤'} {shown(self.limit, self.unit)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was measured."""

    target: Target
    value: float
    met: bool

    @property
    def measured(self) -> str:
        """The number for people."""
        return shown(self.value, self.target.unit)


def shown(value: float, unit: str) -> str:
    """A number with its unit, to about three digits."""
    number = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{number}{unit}" if unit == "×" else f"{number} {unit}"


def times_as_fast(who: str, times: float, *, as_whom: str | Sequence[str]) -> Target:
    """`who` is so many times as fast as another one; of several, as the fastest of them."""
    others = [as_whom] if isinstance(as_whom, str) else list(as_whom)
    label = others[0] if len(others) == 1 else f"the fastest of {', '.join(others)}"

    def value(samples: Measured) -> float:
        return min(samples[other].median_ms for other in others) / samples[who].median_ms

    return Target(who, f"{who}: times as fast as {label}", value, times, "×", at_least=True)


def times_as_long(who: str, times: float, *, as_whom: str) -> Target:
    """`who` takes at most so many times as long as another one."""

    def value(samples: Measured) -> float:
        return samples[who].median_ms / samples[as_whom].median_ms

    return Target(who, f"{who}: times as long as {as_whom}", value, times, "×", at_least=False)


def p95_below(who: str, milliseconds: float) -> Target:
    """95 of 100 turns of `who` take less."""
    return Target(who, f"{who}: p95", lambda samples: samples[who].p95_ms, milliseconds, "ms", at_least=False)


def rate(who: str, per_second: float, *, unit: str) -> Target:
    """`who` does so much in a second."""
    return Target(who, f"{who}: {unit}", lambda samples: samples[who].per_second, per_second, "/s", at_least=True)
