"""Contenders in turns: measured interleaved, so that what else the machine does meets all of them alike."""

from __future__ import annotations

import cProfile
import gc
import pstats
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from mainstem.errors import MainstemError

# What is entered and left is not measured; the call that it gives is. The call answers with the amount of its work.
Turn = Callable[[], AbstractContextManager[Callable[[], int]]]


class UnequalWork(MainstemError):
    """Two contenders did not do the same: their times say nothing of each other."""

    code = "unequal_work"


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody who can do a scenario's work. `rounds` is how often at most: slow ones have fewer turns."""

    name: str
    turn: Turn
    rounds: int | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """The times of one contender, in milliseconds, in the order in which they were measured, and its work each time."""

    name: str
    amount: int
    times_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        return median(self.times_ms)

    @property
    def p95_ms(self) -> float:
        """The time that 95 of 100 turns keep; of few turns, the longest."""
        if len(self.times_ms) < 20:
            return max(self.times_ms)
        return quantiles(self.times_ms, n=20, method="inclusive")[-1]

    @property
    def per_second(self) -> float:
        """How much of its work is done in a second."""
        return self.amount / self.median_ms * 1000


def race(
    contenders: Sequence[Contender], *, rounds: int, report: Callable[[str], None] = lambda line: None
) -> list[Samples]:
    """Let every contender have its turns, one after the other in each round.

    One turn each comes before and is not counted: code is loaded and compiled, files are in the system's cache. Every
    round begins with another contender. All must answer with the same amount of work, or it raises UnequalWork.
    """
    amounts: dict[str, int] = {}
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for contender in contenders:
        report(f"{contender.name}, to warm up")
        amounts[contender.name], _ = _measured(contender)
    if len(set(amounts.values())) > 1:
        raise UnequalWork(f"the contenders of one scenario did unequal work: {amounts}.", hint="Please report this.")
    for number in range(rounds):
        report(f"round {number + 1} of {rounds}")
        first = number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            if not _has_a_turn(contender, number, rounds):
                continue
            amount, seconds = _measured(contender)
            if amount != amounts[contender.name]:
                raise UnequalWork(
                    f"{contender.name} did {amount} where it had done {amounts[contender.name]} before.",
                    hint="Please report this.",
                )
            times[contender.name].append(seconds * 1000)
    return [Samples(name, amounts[name], tuple(found)) for name, found in times.items()]


def _has_a_turn(contender: Contender, number: int, rounds: int) -> bool:
    """Whether this is one of the contender's rounds, which are spread evenly over all."""
    wanted = min(contender.rounds or rounds, rounds)
    return number * wanted // rounds != (number - 1) * wanted // rounds


def _measured(contender: Contender) -> tuple[int, float]:
    with contender.turn() as call:
        gc.collect()  # the last one's garbage is not this one's
        start = time.perf_counter()
        amount = call()
        return amount, time.perf_counter() - start


def where_time_goes(contender: Contender, *, most: int = 6) -> list[tuple[str, float]]:
    """The functions in which one more turn spends its time, the longest first, each with its own milliseconds.

    What runs elsewhere, in a database or a JVM, shows as the call that waits for it.
    """
    profile = cProfile.Profile()
    with contender.turn() as call:
        gc.collect()
        profile.runcall(call)
    found = [
        (_function(*function), own * 1000)
        for function, (_, _, own, _, _) in pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    ]
    return sorted(found, key=lambda each: -each[1])[:most]


def _function(file: str, line: int, name: str) -> str:
    return name.strip("<>") if file == "~" else f"{name} ({Path(file).name}:{line})"
