"""Where a table is: a local folder or an object store, opened by obstore."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from mainstem.errors import UsageError, mask
from mainstem.identity import canonical_path

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
# Hadoop's names for the same stores, so that a location works in Spark and here.
_ALIASES = {"s3a": "s3", "s3n": "s3", "wasbs": "az", "wasb": "az", "abfs": "abfss"}
_REMOTE = frozenset({"s3", "gs", "abfss", "az", "adl", "azure"})
_HADOOP = {"s3": "s3a", "s3n": "s3a", "az": "wasbs"}


@dataclass(frozen=True)
class Location:
    """A table's folder. `uri` is how paths are compared, `local` its place on this machine's disk, if it is there."""

    uri: str
    store: ObjectStore
    local: Path | None

    @property
    def hadoop_uri(self) -> str:
        """The same as a URI for Hadoop: by its own scheme, percent-encoded, and a local one with a single slash."""
        if self.local is not None:
            return f"file:{quote(str(self.local))}"
        scheme, _, rest = self.uri.partition("://")
        return f"{_HADOOP.get(scheme.lower(), scheme)}://{quote(unquote(rest))}"

    @property
    def hadoop_path(self) -> str:
        """The same as Spark's readers and writers want it, who take a percent sign for itself."""
        return f"file:{self.local}" if self.local is not None else unquote(self.hadoop_uri)

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """By which URIs files of the folder may be named: its own, and where a link that leads to it ends."""
        return (self.uri,) if self.local is None else (self.uri, self.local.resolve().as_uri())

    def really(self, folder: str) -> str | None:
        """Where a folder in here is behind all links, as it is called in here; None if a link leads elsewhere."""
        if self.local is None:
            return folder
        if folder not in self._folders:
            root = os.path.realpath(self.local)
            real = os.path.relpath(os.path.realpath(os.path.join(root, folder)), root)
            self._folders[folder] = None if real.split(os.sep)[0] == os.pardir else "" if real == os.curdir else real
        return self._folders[folder]

    @cached_property
    def _folders(self) -> dict[str, str | None]:
        return {}


def place_of(location: str) -> str:
    """The one URI that all spellings of a table's location share: schemes of one store, links, a slash at the end."""
    scheme = _SCHEME.match(location)
    if scheme is None or scheme[1].lower() == "file":
        path = location if scheme is None else unquote(urlsplit(location).path)
        return Path(path).resolve().as_uri()
    return _spelled(location, location)


def below(path: str, folder: str) -> str | None:
    """An absolute path as its file is called below a folder, both given as URIs; None if it is elsewhere.

    The schemes of one store are one here, unlike in the log: what may be the same file must not be deleted.
    """
    root = _spelled(folder, folder).rstrip("/") + "/"
    known = _spelled(path, folder)
    return known.removeprefix(root) if known.startswith(root) else None


def _spelled(path: str, folder: str) -> str:
    scheme, _, rest = canonical_path(path, folder).partition("://")
    return f"{_ALIASES.get(scheme, scheme)}://{unquote(rest)}"


def open_location(location: str) -> Location:
    """Open a table's folder: a path, `file:`, `s3://`, `gs://` or `abfss://`. Nothing is created.

    Credentials of object stores come from the environment or the machine's role, as the store's own tools take them.
    """
    scheme = _SCHEME.match(location)
    if scheme is None or scheme[1].lower() == "file":
        return _open_local(location)
    name = _ALIASES.get(scheme[1].lower(), scheme[1].lower())
    if name not in _REMOTE:
        raise UsageError(
            f"Tables at {scheme[1]}: are not supported.",
            hint="Use a local path, or a URI that starts with file:, s3://, gs:// or abfss://.",
            location=mask(location),
        )
    url = name + location[len(scheme[1]) :]
    try:
        store = from_url(url.rstrip("/"))
    except (BaseError, ValueError) as error:
        raise UsageError(f"The location {mask(location)} cannot be opened: {error}", location=mask(location)) from error
    return Location(location.rstrip("/"), store, None)


def _open_local(location: str) -> Location:
    text = location
    if text.lower().startswith("file:"):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise UsageError(
                f"A file: location names no host, and {parts.netloc!r} is one.", hint="Write file:///path."
            )
        if parts.query or parts.fragment:
            raise UsageError(
                "A file: location has no '?' and no '#'.",
                hint="Write them as %3F and %23, or give a plain path.",
                location=location,
            )
        text = unquote(parts.path)
    if not text or "\0" in text:
        raise UsageError("The location of a table is empty or contains U+0000.")
    folder = Path(text).absolute()
    if ".." in folder.parts:
        folder = folder.resolve()  # only the disk knows where `..` leads behind a symbolic link
    if not folder.is_dir():
        raise UsageError(
            f"There is no folder {folder}.", hint="Give the folder that holds _delta_log.", location=location
        )
    return Location(folder.as_uri(), LocalStore(folder), folder)
