"""Mainstem: a Spark-native SQL catalog for Delta Lake."""

from mainstem.catalog import Catalog, open_catalog
from mainstem.errors import (
    CommitUnknown,
    ConflictError,
    CorruptCatalog,
    CorruptLog,
    EngineBusy,
    ForeignCommit,
    GateFailed,
    MainstemError,
    SchemaDrift,
    TableNotFound,
    UnsupportedFeature,
    UsageError,
    ValidationFailed,
    VersionNotFound,
)
from mainstem.session import build_session
from mainstem.snapshot import Snapshot
from mainstem.table import Table, TableInfo

__all__ = [
    "Catalog",
    "CommitUnknown",
    "ConflictError",
    "CorruptCatalog",
    "CorruptLog",
    "EngineBusy",
    "ForeignCommit",
    "GateFailed",
    "MainstemError",
    "SchemaDrift",
    "Snapshot",
    "Table",
    "TableInfo",
    "TableNotFound",
    "UnsupportedFeature",
    "UsageError",
    "ValidationFailed",
    "VersionNotFound",
    "build_session",
    "open_catalog",
]
