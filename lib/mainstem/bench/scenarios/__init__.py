"""The scenarios, in the order in which they run. A new one is a module of its own and one line here."""

from mainstem.bench.scenario import Scenario
from mainstem.bench.scenarios import (
    append,
    bulk,
    cold_open,
    commits,
    deleting,
    head,
    history,
    importing,
    large,
    many_commits,
    predicate,
    reopen,
    selective,
)

SCENARIOS: tuple[Scenario, ...] = (
    cold_open.SCENARIO,
    many_commits.SCENARIO,
    history.SCENARIO,
    head.SCENARIO,
    reopen.SCENARIO,
    predicate.SCENARIO,
    importing.SCENARIO,
    *commits.SCENARIOS,
    bulk.SCENARIO,
    large.SCENARIO,  # late: from here on disk and JVM are full
    selective.SCENARIO,
    append.SCENARIO,  # these two change their tables
    deleting.SCENARIO,
)
