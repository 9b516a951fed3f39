"""A quality gate: expectations on rows that are staged and not committed, or on the statistics of their files alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from mainstem import observe
from mainstem.conflicts.values import json_object
from mainstem.engines.filesql import Kind
from mainstem.errors import GateFailed, UsageError
from mainstem.expectations import load_suite
from mainstem.model import AddFile
from mainstem.pruning import TableColumn, TableColumns, may_match
from mainstem.pruning.comparison import compare
from mainstem.pruning.condition import any_of
from mainstem.pruning.literals import Constant, as_moment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 5
_UNKNOWN = "the table has no such column"


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
    """What a gate has found. It is stored with the commit that passed it. `warnings` refuse nothing."""

    table: str
    suite: str
    started_at: datetime
    finished_at: datetime
    checked: int
    findings: tuple[Finding, ...] = field(default=())
    warnings: tuple[Finding, ...] = field(default=())

    @property
    def success(self) -> bool:
        """Whether everything holds."""
        return not self.findings

    def require(self) -> None:
        """Raise `GateFailed` unless everything holds."""
        observe.event(
            "gate.checked", table=self.table, suite=self.suite, success=self.success, warnings=len(self.warnings)
        )
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
    failed = [each for each in result.results if not each.success]
    findings = tuple(_finding(each) for each in failed if _refuses(each))
    warnings = tuple(_finding(each) for each in failed if not _refuses(each))
    return GateResult(table, known.name, started, datetime.now(UTC), len(result.results), findings, warnings)


def _refuses(result: Any) -> bool:
    """Whether an expectation must hold; one of severity warning or info only ought to, here as in a validation."""
    severity = result.expectation_config.severity
    return getattr(severity, "value", severity) in (None, "critical")


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
    columns: TableColumns,
    *,
    rows: tuple[int | None, int | None] | None = None,
    null_rate: Mapping[str, float] | None = None,
    ranges: Mapping[str, tuple[Any, Any]] | None = None,
) -> GateResult:
    """The same from the statistics of added files, without reading data. What statistics do not say does not hold.

    Rows that a deletion vector marks do not count. Statistics do not say which they are, so as many as can be of those
    that are left are taken for null. Moments are compared to the millisecond, as statistics have them; one without a
    zone is in UTC.
    """
    started = datetime.now(UTC)
    files = [
        _File(json_object(add.partition_values), add.stats, json_object(add.stats), json_object(add.deletion_vector))
        for add in adds
    ]
    findings = [
        *_row_count(files, rows),
        *(found for name, most in (null_rate or {}).items() for found in _nulls(files, columns, name, most)),
        *(found for name, within in (ranges or {}).items() for found in _range(files, columns, name, within)),
    ]
    checked = (rows is not None) + len(null_rate or {}) + len(ranges or {})
    if not checked:
        raise UsageError("nothing is required of the statistics.", hint="Give rows=, null_rate= or ranges=.")
    return GateResult(table, "statistics", started, datetime.now(UTC), checked, tuple(findings))


class _File(NamedTuple):
    """What the log says of a file, as text and parsed."""

    partition_values: Mapping[str, str | None]
    text: str | None
    stats: Mapping[str, Any]
    deletion_vector: Mapping[str, Any]

    @property
    def rows(self) -> int | None:
        """How many rows it has that are not deleted; None if it does not say."""
        records, gone = self.stats.get("numRecords"), self.deletion_vector.get("cardinality", 0)
        return records - gone if type(records) is int and type(gone) is int else None

    def stat(self, section: str, column: TableColumn) -> Any:
        found: Any = self.stats.get(section)
        for name in column.path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


def _row_count(files: Sequence[_File], rows: tuple[int | None, int | None] | None) -> Iterable[Finding]:
    if rows is None:
        return
    counts = [file.rows for file in files if file.rows is not None]
    if len(counts) != len(files):
        yield Finding("row count", None, None, ("a file does not say how many rows it has",))
        return
    count, (low, high) = sum(counts), rows
    if (low is not None and count < low) or (high is not None and count > high):
        yield Finding("row count", None, None, (f"{count} rows, not {low} to {high}",))


def _nulls(files: Sequence[_File], columns: TableColumns, name: str, most: float) -> Iterable[Finding]:
    column = _column(columns, name)
    counts = [None if column is None else file.stat("nullCount", column) for file in files]
    nulls = [
        count if file.rows is None else min(count, file.rows)
        for count, file in zip(counts, files, strict=True)
        if type(count) is int
    ]
    if column is None or len(nulls) != len(files):
        yield Finding("null rate", name, None, (_UNKNOWN if column is None else "a file does not count its nulls",))
        return
    total = sum(file.rows or 0 for file in files)
    rate = sum(nulls) / total if total else 0.0
    if rate > most:
        yield Finding("null rate", name, sum(nulls), (f"{rate:.4f} is above {most:g}",))


def _range(files: Sequence[_File], columns: TableColumns, name: str, within: tuple[Any, Any]) -> Iterable[Finding]:
    column = _column(columns, name)
    if column is None:
        yield Finding("range", name, None, (_UNKNOWN,))
        return
    low, high = within
    below = False if low is None else compare(column, "<", Constant(_naive(low)))
    above = False if high is None else compare(column, ">", Constant(_to_the_end(_naive(high), column)))
    for file in files:
        if may_match(any_of([below, above]), file.partition_values, file.text):
            least, greatest = (file.stat(section, column) for section in ("minValues", "maxValues"))
            said = f"{least} to {greatest} is not surely within {low} to {high}"
            unsaid = not column.partition and (least is None or greatest is None)
            yield Finding(
                "range", name, None, ("a file does not say its smallest and largest value" if unsaid else said,)
            )
            return


def _column(columns: TableColumns, name: str) -> TableColumn | None:
    """The column, by its name in the table or by `a.b` for a field of a struct; None if there is none."""
    for names in ([name], name.split(".")):
        try:
            found = columns.find(names)
        except UsageError:
            continue
        # Statistics have a float as the decimal that its user would write, which as a double compares as it should.
        return replace(found, kind=Kind.DOUBLE) if found.kind is Kind.FLOAT else found
    return None


def _naive(value: Any) -> Any:
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def _to_the_end(value: Any, column: TableColumn) -> Any:
    """A moment to the end of its millisecond, as which statistics have a greatest one."""
    if column.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        return value
    moment = as_moment(value, zoned=column.kind is Kind.TIMESTAMP)
    return value if moment is None else moment.replace(microsecond=moment.microsecond // 1000 * 1000 + 999)
