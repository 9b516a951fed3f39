"""The rows that the corpus says a table has, read through a mount: equal as multisets at every version that it lists.

The expected rows are read by pyarrow, which has no part in reading the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _pytest.mark import ParameterSet
from corpus import ABSENT, CorpusTable, corpus_tables
from pyspark.sql import SparkSession

from mainstem import Catalog, open_catalog

# It has no expected rows, but specifications of a benchmark; it is managed by another catalog, and refused (see
# test_corpus.py).
NO_ROWS = {"delta-bench/basic_catalog_managed/delta"}


def expected_rows() -> list[ParameterSet]:
    """Every version of which the corpus says the rows: `latest` and `v<N>` in DAT, the newest in the golden tables."""
    found = []
    for table in corpus_tables():
        if table.expected is None or table.name in NO_ROWS:
            continue
        folders = sorted(table.expected.glob("*/table_content")) or [table.expected]
        for folder in folders:
            named = folder.parent.name
            version = int(named[1:]) if folder.name == "table_content" and named != "latest" else None
            found.append(
                pytest.param(table, version, folder, id=f"{table.name}@{'latest' if version is None else version}")
            )
    return found or [pytest.param(None, None, None, id="absent", marks=pytest.mark.skip(reason=ABSENT))]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Catalog]:
    """One catalog for all tables. With a session, an import is compared with Delta, whatever its files are called."""
    with open_catalog(f"sqlite:///{tmp_path_factory.mktemp('expected')}/lake.db", spark=spark) as opened:
        opened.migrate()
        yield opened


@pytest.mark.spark
@pytest.mark.parametrize(("table", "version", "folder"), expected_rows())
def test_a_table_has_the_rows_that_the_corpus_expects(
    table: CorpusTable, version: int | None, folder: Path, lake: Catalog
) -> None:
    if table.name not in {info.name for info in lake.tables()}:
        lake.import_table(str(table.root), name=table.name)
    expected = pa.concat_tables(
        (pq.read_table(file) for file in sorted(folder.glob("*.parquet"))), promote_options="permissive"
    )
    found = lake.table(table.name).read(version=version).toArrow()
    assert sorted(found.column_names) == sorted(expected.column_names)
    assert multiset(found) == multiset(expected)


def multiset(rows: pa.Table) -> Counter[str]:
    names = sorted(rows.column_names)
    return Counter(repr([plain(row[name]) for name in names]) for row in rows.select(names).to_pylist())


def plain(value: Any) -> Any:
    """A value without what the two readers spell differently: the order of a map's keys, and the name of UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        pairs = value and all(isinstance(each, tuple) for each in value)
        return sorted(map(plain, value), key=repr) if pairs else [plain(each) for each in value]
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value
