"""Where a catalog is: every spelling of a catalog URI, read into one value that never shows its password."""

from mainstem.uri.parsing import holds_password, parse_uri, shown_uri
from mainstem.uri.place import CatalogUri, Engine, Secret

__all__ = ["CatalogUri", "Engine", "Secret", "holds_password", "parse_uri", "shown_uri"]
