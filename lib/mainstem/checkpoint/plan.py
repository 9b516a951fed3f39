"""Which kind of checkpoint a table gets, and with which columns. Values in, values out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from mainstem.checkpoint import properties as said
from mainstem.checkpoint import shape
from mainstem.checkpoint.parsedtypes import PARTITION, STATS, partition_type, stats_type
from mainstem.checkpoint.state import State
from mainstem.deltalog.protocol import reader_features

V2_FEATURE = "v2Checkpoint"
VECTORS_FEATURE = "deletionVectors"

Kind = Literal["classic", "v2"]
TopFormat = Literal["json", "parquet"]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a checkpoint's files, and how the files are compressed."""

    add: pa.StructType
    codec: str

    @property
    def typed(self) -> bool:
        """Whether statistics or partition values stand there as columns of their types."""
        return any(field.name in (PARTITION, STATS) for field in self.add)

    @property
    def classic(self) -> pa.Schema:
        """Of a classic checkpoint."""
        return shape.classic_schema(self.add)

    @property
    def sidecar(self) -> pa.Schema:
        """Of a sidecar."""
        return shape.sidecar_schema(self.add)


def kind_of(state: State) -> Kind:
    """Classic, unless the table asks for v2 checkpoints and its protocol, as it is written, has the feature."""
    return "v2" if said.wants_v2(state.properties) and V2_FEATURE in reader_features(state.protocol) else "classic"


def columns_of(state: State, *, typed: bool = True) -> Columns:
    """The columns that the table's properties ask for; without those of typed values unless `typed`."""
    properties = state.properties
    parsed = _parsed(state) if typed and said.stats_as_struct(properties) else []
    return Columns(
        shape.add_type(with_stats=said.stats_as_json(properties), parsed=parsed),
        said.codec(properties),
    )


def _parsed(state: State) -> list[pa.Field]:
    snapshot = state.snapshot
    described = (snapshot.schema_json, snapshot.partition_columns, state.properties)
    partition = partition_type(*described)
    vectors = VECTORS_FEATURE in reader_features(state.protocol)
    fields = [pa.field(PARTITION, partition)] if partition is not None else []
    return [*fields, pa.field(STATS, stats_type(*described, vectors=vectors))]
