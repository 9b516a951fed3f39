"""Where a catalog is: every spelling of a catalog URI, read into one value that never shows its password."""

from mainstem.uri.parsing import parse_uri, shown_uri
from mainstem.uri.place import CatalogUri, Engine, Secret

__all__ = ["CatalogUri", "Engine", "Secret", "parse_uri", "shown_uri"]
