"""An operation on a mount that holds only the files which it can touch stages what it would on a full one.

And one on a mount of absolute paths stages what it would on one by viewfs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from mainstem import Catalog, Table, open_catalog
from mainstem.checkpoint import ALL_FILES, Choice
from mainstem.deltalog import serialize_commit
from mainstem.mount import Mount
from mainstem.operations import DataTable

FILES = 6  # two in each of three partitions
_EXPRESSION_ID = re.compile(r"#\d+L?")  # Spark numbers columns anew in every statement
PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Catalog]:
    """A catalog in which every merge asks its source for bounds."""
    folder = tmp_path_factory.mktemp("pruned")
    with open_catalog(f"sqlite:///{folder}/lake.db", spark=spark, mount_files=0) as opened:
        opened.migrate()
        yield opened


@pytest.fixture(scope="module")
def table(lake: Catalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two files in each of three partitions, with ids of their own; one of them has a deletion vector."""
    found = lake.create_table(
        "sales.orders",
        location=str(tmp_path_factory.mktemp("orders")),
        schema="id BIGINT, p STRING, v DOUBLE",
        partition_by=["p"],
        properties=PROPERTIES,
    )
    for first in (0, 100):
        found.append(
            spark.range(first, first + 30, 1, 1).selectExpr(
                "id", "element_at(array('a', 'b', 'c'), int(id % 3) + 1) AS p", "double(id) AS v"
            )
        )
    found.delete("id IN (0, 4)")
    return found


Operation = Callable[[DataTable, SparkSession], object]


def rows(spark: SparkSession, *values: str) -> DataFrame:
    return spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(values)} AS x(id, p, v)")


def merge_within(table: DataTable, spark: SparkSession, on: str) -> object:
    source = rows(spark, "(3L, 'a', -3D)", "(6L, 'a', -6D)", "(50L, 'a', 500D)")
    merging = table.merge(source, on=on).when_matched_delete(condition="s.id = 6").when_matched_update_all()
    return merging.when_not_matched_insert_all().execute()


# Each with the number of files that its mount has.
OPERATIONS: dict[str, tuple[int, Operation]] = {
    "append": (0, lambda t, spark: t.append(rows(spark, "(900L, 'a', 1D)", "(901L, 'z', 2D)"))),
    "DELETE by partition": (2, lambda t, spark: t.delete("p = 'b'")),
    "DELETE by statistics": (3, lambda t, spark: t.delete("id < 20 AND v > 5")),
    "DELETE on a deletion vector": (1, lambda t, spark: t.delete("p = 'a' AND id = 3")),
    "UPDATE": (1, lambda t, spark: t.update(set={"v": "v + 1"}, where="p = 'c' AND id > 100")),
    "OPTIMIZE WHERE": (2, lambda t, spark: t.optimize(where="p = 'a'")),
    "replaceWhere": (2, lambda t, spark: t.overwrite(rows(spark, "(7L, 'b', 7D)"), replace_where="p = 'b'")),
    "replaceWhere on data": (
        1,
        lambda t, spark: t.overwrite(rows(spark, "(1L, 'b', 7D)"), replace_where="p = 'b' AND id < 10"),
    ),
    "dynamic overwrite": (
        4,
        lambda t, spark: t.overwrite(rows(spark, "(7L, 'b', 7D)", "(8L, 'c', 8D)"), partitions="dynamic"),
    ),
    "MERGE bounded by a literal": (2, lambda t, spark: merge_within(t, spark, "t.v = s.v * -1 AND t.p = 'a'")),
    "MERGE bounded by its source": (1, lambda t, spark: merge_within(t, spark, "t.id = s.id AND t.p = s.p")),
}


@pytest.fixture(scope="module")
def pruned_by_viewfs(lake: Catalog, table: Table, spark: SparkSession) -> Callable[[str], tuple[int, list[Any]]]:
    """What an operation stages as users run it, found out once."""
    return cache(lambda name: staged(lake, table, OPERATIONS[name][1], spark))


@pytest.mark.spark
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_a_pruned_mount_stages_what_it_does_on_a_full_one(
    name: str,
    lake: Catalog,
    table: Table,
    spark: SparkSession,
    pruned_by_viewfs: Callable[[str], tuple[int, list[Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, operate = OPERATIONS[name]
    pruned = pruned_by_viewfs(name)
    mounted = DataTable.mounted

    def everything(self: DataTable, choice: Choice) -> Mount:
        return mounted(self, ALL_FILES)

    monkeypatch.setattr(DataTable, "mounted", everything)
    full = staged(lake, table, operate, spark)

    assert full[0] == FILES
    assert pruned[0] == files
    assert pruned[1] == full[1]
    assert table.version == 3  # nothing of it was committed


@pytest.mark.spark
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_absolute_paths_stages_what_it_does_on_viewfs(
    name: str,
    lake: Catalog,
    table: Table,
    spark: SparkSession,
    pruned_by_viewfs: Callable[[str], tuple[int, list[Any]]],
) -> None:
    _, operate = OPERATIONS[name]
    with open_catalog(str(lake.uri), spark=spark, mount_files=0, mount="absolute") as other:
        assert staged(other, table, operate, spark) == pruned_by_viewfs(name)
    assert table.version == 3


def staged(lake: Catalog, table: Table, operate: Operation, spark: SparkSession) -> tuple[int, list[Any]]:
    """How many files the mount had, and what was staged, without the names of new files."""
    with lake.transaction() as transaction:
        changed = transaction.table(table.name)
        operate(changed, spark)
        assert changed._mount is not None
        assert changed._mount.place.local is not None
        checkpoint = next(changed._mount.place.local.glob("_delta_log/*.checkpoint.parquet"))
        paths = pq.ParquetFile(checkpoint).read(columns=["add.path"])["add"].to_pylist()
        files = sum(path is not None for path in paths)
        known = set(table.snapshot().to_arrow()["path"].to_pylist())
        (commit,) = changed.commits
        lines = serialize_commit(commit.actions).decode().splitlines()
        transaction.rollback()
    return files, sorted(
        (described(json.loads(line), known, table.location) for line in lines), key=lambda each: json.dumps(each)
    )


def described(action: dict[str, Any], known: set[str], location: str) -> Any:
    ((kind, body),) = action.items()
    if kind == "commitInfo":
        kept = ("operation", "operationParameters", "isBlindAppend", "readVersion", "isolationLevel")
        return kind, json.loads(_EXPRESSION_ID.sub("", json.dumps({key: body.get(key) for key in kept})))
    if kind not in ("add", "remove", "cdc"):
        return kind, body
    told = {key: body.get(key) for key in ("partitionValues", "dataChange", "baseRowId", "defaultRowCommitVersion")}
    told["vector"] = (body.get("deletionVector") or {}).get("cardinality")
    told["stats"] = json.loads(body.get("stats") or "{}")
    if body["path"] in known:
        told["path"] = body["path"]
    else:  # a new file: what is in it, with the ids of its rows
        content = pq.ParquetFile(f"{location}/{unquote(body['path'])}").read().to_pylist()
        told["rows"] = sorted(map(repr, content))
    return kind, told
