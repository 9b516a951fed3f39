"""A quality gate: expectations on rows that are staged and not committed, or on the statistics of their files alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson

from mainstem import observe
from mainstem.errors import GateFailed, UsageError
from mainstem.expectations import load_suite
from mainstem.model import AddFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One expectation that does not hold: what, on which column, how often, and the first values that say so."""

    expectation: str
    column: str | None
    unexpected: int | None
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" of {self.column}" if self.column else ""
        count = f": {self.unexpected} unexpected" if self.unexpected is not None else ""
        shown = f", such as {', '.join(self.examples)}" if self.examples else ""
        return f"{self.expectation}{where}{count}{shown}"


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate has found. It is stored with the commit that passed it."""

    table: str
    suite: str
    started_at: datetime
    finished_at: datetime
    checked: int
    findings: tuple[Finding, ...] = field(default=())

    @property
    def success(self) -> bool:
        """Whether everything holds."""
        return not self.findings

    def require(self) -> None:
        """Raise `GateFailed` unless everything holds."""
        observe.event("gate.checked", table=self.table, suite=self.suite, success=self.success)
        if self.findings:
            told = "; ".join(map(str, self.findings[:_SHOWN]))
            raise GateFailed(
                f"the gate {self.suite} refused the change of {self.table}: {len(self.findings)} of {self.checked} "
                f"expectations do not hold: {told}.",
                hint="Nothing was committed. What is staged can be looked at inside of the transaction.",
                table=self.table,
                suite=self.suite,
                findings=[str(finding) for finding in self.findings],
            )


def check_rows(table: str, rows: DataFrame, suite: Any) -> GateResult:
    """Run a suite of Great Expectations on rows: a suite, a list of expectations, or the name of one in a file."""
    import great_expectations as gx

    known = load_suite(suite)
    started = datetime.now(UTC)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    source = context.data_sources.add_spark(name="staged")
    batches = source.add_dataframe_asset(name="rows").add_batch_definition_whole_dataframe("all")
    result = batches.get_batch(batch_parameters={"dataframe": rows}).validate(known)
    findings = tuple(_finding(each) for each in result.results if not each.success)
    return GateResult(table, known.name, started, datetime.now(UTC), len(result.results), findings)


def _finding(result: Any) -> Finding:
    found, config = result.result or {}, result.expectation_config
    error = (result.exception_info or {}).get("exception_message")
    examples = [str(value)[:80] for value in found.get("partial_unexpected_list", [])[:_SHOWN]]
    if not examples and "observed_value" in found:
        examples = [f"observed {found['observed_value']}"[:120]]
    if error:
        examples = [" ".join(str(error).split())[:200]]
    return Finding(config.type, config.kwargs.get("column"), found.get("unexpected_count"), tuple(examples))


def check_stats(
    table: str,
    adds: Iterable[AddFile],
    *,
    rows: tuple[int | None, int | None] | None = None,
    null_rate: Mapping[str, float] | None = None,
    ranges: Mapping[str, tuple[Any, Any]] | None = None,
) -> GateResult:
    """The same from the statistics of added files, without reading data. What statistics do not say does not hold."""
    started = datetime.now(UTC)
    files = list(adds)
    stats = [orjson.loads(add.stats) if add.stats else {} for add in files]
    findings = [
        *_row_count(stats, rows),
        *(found for column, most in (null_rate or {}).items() for found in _nulls(stats, column, most)),
        *(found for column, (low, high) in (ranges or {}).items() for found in _range(stats, column, low, high)),
    ]
    checked = (rows is not None) + len(null_rate or {}) + len(ranges or {})
    if not checked:
        raise UsageError("nothing is required of the statistics.", hint="Give rows=, null_rate= or ranges=.")
    return GateResult(table, "statistics", started, datetime.now(UTC), checked, tuple(findings))


def _row_count(stats: Sequence[Mapping[str, Any]], rows: tuple[int | None, int | None] | None) -> Iterable[Finding]:
    if rows is None:
        return
    if any("numRecords" not in each for each in stats):
        yield Finding("row count", None, None, ("a file does not say how many rows it has",))
        return
    count, (low, high) = sum(each["numRecords"] for each in stats), rows
    if (low is not None and count < low) or (high is not None and count > high):
        yield Finding("row count", None, None, (f"{count} rows, not {low} to {high}",))


def _nulls(stats: Sequence[Mapping[str, Any]], column: str, most: float) -> Iterable[Finding]:
    nulls = [each.get("nullCount", {}).get(column) for each in stats]
    if any(count is None for count in nulls):
        yield Finding("null rate", column, None, ("a file does not count its nulls",))
        return
    total = sum(each.get("numRecords", 0) for each in stats)
    rate = sum(nulls) / total if total else 0.0
    if rate > most:
        yield Finding("null rate", column, sum(nulls), (f"{rate:.4f} is above {most:g}",))


def _range(stats: Sequence[Mapping[str, Any]], column: str, low: Any, high: Any) -> Iterable[Finding]:
    for each in stats:
        if each.get("numRecords") == each.get("nullCount", {}).get(column, -1):
            continue  # nothing but nulls: there is no value to be out of range
        least, greatest = each.get("minValues", {}).get(column), each.get("maxValues", {}).get(column)
        if least is None or greatest is None:
            yield Finding("range", column, None, ("a file does not say its smallest and largest value",))
            return
        if (low is not None and _less(least, low)) or (high is not None and _less(high, greatest)):
            yield Finding("range", column, None, (f"{least} to {greatest} is not within {low} to {high}",))
            return


def _less(left: Any, right: Any) -> bool:
    """Whether one value is below another; statistics have dates and decimals as texts and numbers."""
    numbers = (int, float, Decimal)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return Decimal(str(left)) < Decimal(str(right))
    return str(left) < str(right)
