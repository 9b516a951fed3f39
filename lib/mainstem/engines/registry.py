"""From a URI to its engine; a driver is imported only when its database is used."""

from __future__ import annotations

from importlib import import_module

from mainstem.engines.base import Engine
from mainstem.settings import Settings
from mainstem.uri import CatalogUri

ENGINES = {"postgres": "PostgresEngine", "sqlite": "SqliteEngine", "duckdb": "DuckdbEngine"}


def open_engine(uri: CatalogUri, settings: Settings) -> Engine:
    """The engine for a catalog; nothing is connected yet."""
    engine: type[Engine] = getattr(import_module(f"mainstem.engines.{uri.engine}"), ENGINES[uri.engine])
    return engine(uri, settings.for_uri(uri))
