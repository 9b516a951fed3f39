"""A new table, made by Delta's own CREATE TABLE, so that every feature is set up as Delta sets it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mainstem.conflicts import Reads
from mainstem.mount import new_place
from mainstem.operations.changes import DataTransaction
from mainstem.operations.ddl import ddl
from mainstem.operations.sqltexts import literal, quoted
from mainstem.proposal import TableState

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_DEFAULTS = {"delta.enableInCommitTimestamps": "true"}


def create(
    transaction: DataTransaction,
    state: TableState,
    *,
    schema: StructType | str,
    partition_by: Sequence[str],
    properties: Mapping[str, Any],
    cluster_by: Sequence[str] = (),
) -> None:
    """Stage the first version of a table: schema as StructType or DDL, with all that DDL can say."""
    spark = transaction.session()
    mount = new_place(spark=spark, settings=transaction.store.engine.settings)
    try:
        columns = schema if isinstance(schema, str) else ddl(schema)
        given = {**_DEFAULTS, **{key: str(value) for key, value in properties.items()}}
        text = f"CREATE TABLE {mount.sql_name} ({columns}) USING delta"
        if partition_by:
            text += f" PARTITIONED BY ({', '.join(map(quoted, partition_by))})"
        if cluster_by:
            text += f" CLUSTER BY ({', '.join(map(quoted, cluster_by))})"
        pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in given.items())
        spark.sql(f"{text} TBLPROPERTIES ({pairs})").collect()
        table = transaction.create(state)
        for _, actions in mount.staged(table_root=state.root):
            table.take(actions, Reads())
    finally:
        mount.close()
