"""Mainstem: a Spark-native SQL catalog for Delta Lake."""

from mainstem.catalog import Catalog, TableInfo, open_catalog
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
    "TableInfo",
    "TableNotFound",
    "UnsupportedFeature",
    "UsageError",
    "ValidationFailed",
    "VersionNotFound",
    "build_session",
    "open_catalog",
]
