"""A scenario: one piece of work, those who can do it, and what must be reached. And what came out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mainstem.bench.lab import Lab
from mainstem.bench.race import Contender, Samples, race, where_time_goes
from mainstem.bench.scale import Scale
from mainstem.bench.target import Target, Verdict


@dataclass(frozen=True)
class Scenario:
    """One piece of work. `contenders` makes in the lab what they need; `rounds` says how many turns a scale has."""

    name: str
    title: str
    contenders: Callable[[Lab], Sequence[Contender]]
    targets: Callable[[Scale], Sequence[Target]]
    rounds: Callable[[Scale], int] = field(default=lambda scale: scale.rounds)

    def run(self, lab: Lab, *, report: Callable[[str], None] = lambda line: None) -> Result:
        """Measure. What is missed is looked into: where the time of the one who missed it goes."""
        report("preparing")
        contenders = self.contenders(lab)
        samples = race(contenders, rounds=self.rounds(lab.scale), report=report)
        by_name = {each.name: each for each in samples}
        verdicts = [target.verdict(by_name) for target in self.targets(lab.scale)]
        missed = {verdict.target.who for verdict in verdicts if not verdict.met}
        spent = {each.name: where_time_goes(each) for each in contenders if each.name in missed}
        return Result(self, samples, verdicts, spent)


@dataclass(frozen=True)
class Result:
    """The samples of all contenders, the verdicts on the targets, and where the time of those who missed one went."""

    scenario: Scenario
    samples: Sequence[Samples]
    verdicts: Sequence[Verdict]
    spent: Mapping[str, Sequence[tuple[str, float]]]
