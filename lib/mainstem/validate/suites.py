"""Suites of Great Expectations on the frames of a validation and on the table's data, with their Data Docs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainstem.expectations import load_suite
from mainstem.validate.report import Expected, SuiteRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DATA = "data"
_SHOWN = 5
_SITE = "mainstem"


class Suites:
    """Runs suites, each by a validation definition and a checkpoint of Great Expectations; with a folder, into docs."""

    def __init__(self, table: str, *, docs: Path | None = None) -> None:
        import great_expectations as gx

        self._table, self._gx = table, gx
        self._context = gx.get_context(mode="ephemeral")
        self._context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
        self._source = self._context.data_sources.add_spark(name=table)
        self._docs = docs
        if docs is not None:
            docs.mkdir(parents=True, exist_ok=True)
            store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs.absolute())}
            index = {"class_name": "DefaultSiteIndexBuilder"}
            site = {"class_name": "SiteBuilder", "store_backend": store, "site_index_builder": index}
            self._context.add_data_docs_site(site_name=_SITE, site_config=site)  # type: ignore[arg-type]

    def run(self, on: str, rows: DataFrame, suites: Sequence[Any]) -> Iterable[SuiteRun]:
        """What came of suites on the same rows."""
        gx = self._gx
        known = [self._context.suites.add(load_suite(suite)) for suite in suites]
        batch = self._source.add_dataframe_asset(name=on).add_batch_definition_whole_dataframe("all")
        definitions = [
            self._context.validation_definitions.add(
                gx.ValidationDefinition(name=f"{on} {each.name}", data=batch, suite=each)
            )
            for each in known
        ]
        actions = [gx.checkpoint.UpdateDataDocsAction(name="docs", site_names=[_SITE])] if self._docs else []
        checkpoint = gx.Checkpoint(
            name=f"{self._table} {on}", validation_definitions=definitions, actions=actions, result_format="SUMMARY"
        )
        started = datetime.now(UTC)
        result = self._context.checkpoints.add(checkpoint).run(batch_parameters={"dataframe": rows})
        finished = datetime.now(UTC)
        for suite, found in zip(known, result.run_results.values(), strict=True):
            yield SuiteRun(suite.name, on, started, finished, [_expected(each) for each in found.results])

    def docs(self) -> str | None:
        """The page to begin with; None if no docs were asked for."""
        if self._docs is None:
            return None
        self._context.build_data_docs(site_names=[_SITE])
        return str(self._docs / "index.html")


def _expected(result: Any) -> Expected:
    found, config = result.result or {}, result.expectation_config
    severity = getattr(config.severity, "value", config.severity)
    examples = [str(value)[:80] for value in found.get("partial_unexpected_list", [])[:_SHOWN]]
    if not result.success and not examples and "observed_value" in found:
        examples = [f"observed {found['observed_value']}"[:120]]
    error = _error_of(result.exception_info)
    if error:
        examples = [" ".join(error.split())[:200]]
    kwargs = config.kwargs
    column = (
        kwargs.get("column") or " and ".join(filter(None, (kwargs.get("column_A"), kwargs.get("column_B")))) or None
    )
    return Expected(
        config.type, column, "error" if severity in (None, "critical") else "warning", bool(result.success),
        found.get("unexpected_count"), tuple(examples),
    )  # fmt: skip


def _error_of(info: Any) -> str | None:
    """What was raised instead of an answer. It stands in the dict itself, or one level below, by metric."""
    for found in (info, *(info or {}).values()):
        if isinstance(found, dict) and found.get("raised_exception"):
            return str(found.get("exception_message"))
    return None
