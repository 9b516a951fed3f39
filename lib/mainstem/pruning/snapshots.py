"""Predicates on a snapshot's files, for queries that bind their values and for those that cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mainstem.pruning.condition import Condition
from mainstem.pruning.kinds import table_columns
from mainstem.pruning.partitiontexts import names_partition, narrowed
from mainstem.pruning.predicate import parse
from mainstem.pruning.sql import Bound, condition_sql, inliner

if TYPE_CHECKING:
    from mainstem.engines import Engine
    from mainstem.engines.filesql import Bind


class Described(Protocol):
    """What pruning wants to know of a snapshot."""

    @property
    def schema_json(self) -> str: ...
    @property
    def partition_columns(self) -> Sequence[str]: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def in_utc(self) -> bool: ...
    @property
    def partition_texts(self) -> Sequence[str] | None: ...


def condition_of(where: str, snapshot: Described) -> Condition:
    """What a file of the snapshot must show so that some of its rows may make `where` true."""
    columns = table_columns(snapshot.schema_json, snapshot.partition_columns, snapshot.properties)
    return parse(where, columns, in_utc=snapshot.in_utc)


def bound_condition(where: str, snapshot: Described, engine: Engine) -> tuple[str, dict[str, object]]:
    """A condition over `dl_add_files` that keeps every file which may match, and the values for its `:names`."""
    bind = Bound()
    return _sql(where, snapshot, engine, bind), bind.values


def inlined_condition(where: str, snapshot: Described, engine: Engine) -> str:
    """The same without values beside it, for JDBC, which cannot bind."""
    return _sql(where, snapshot, engine, inliner(engine))


def _sql(where: str, snapshot: Described, engine: Engine, bind: Bind) -> str:
    condition = condition_of(where, snapshot)
    text = condition_sql(condition, engine.file_sql, bind)
    if engine.file_sql.partition_prefix is None or not names_partition(condition) or not snapshot.partition_texts:
        return text
    kept = narrowed(condition, snapshot.partition_texts)
    if kept is None:
        return text
    if not kept:
        return "(1 = 0)"
    # By an index: the condition itself would have to look into the values of every live file.
    listed = ", ".join(map(bind, kept))
    return f"({engine.file_sql.partition_prefix} IN ({listed}) AND partition_values <> '{{}}' AND {text})"
