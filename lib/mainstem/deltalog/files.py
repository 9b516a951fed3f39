"""The files of a table's `_delta_log`, read through obstore: what is there, and its bytes."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import obstore
import orjson
from obstore.exceptions import BaseError, NotFoundError

from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import Listing, LogFile, classify, commit_name
from mainstem.errors import CorruptLog, MainstemError, UsageError, VersionNotFound, mask
from mainstem.observe import event

if TYPE_CHECKING:
    from obstore import ObjectMeta, ReadableFile

LOG = "_delta_log"
SIDECARS = "_sidecars"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MAX_HINT_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 8 * 1024 * 1024


class LogDirectory:
    """A table's log in its store. Reading never changes it, and trusts nothing but the listing.

    On a local disk a `_delta_log` that is a symbolic link is refused: what it points at may change under the reader,
    and a publisher would write somewhere else than the table says.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        refuse_links(location)

    @classmethod
    def open(cls, location: str) -> LogDirectory:
        """The log of the table at a path or URI. Whether there is one shows when it is listed."""
        return cls(open_location(location))

    @property
    def root(self) -> str:
        """The table's location as a URI, for the comparison of paths."""
        return self._location.uri

    @property
    def location(self) -> Location:
        """Where the log is, with the store that reads it."""
        return self._location

    def list(self, *, from_version: int | None = None) -> Listing:
        """Commits and complete checkpoints, from a version on if one is given: there may be none.

        Of all versions there must be one: raises `UsageError` if there is no log, `CorruptLog` if it is empty.
        """
        found = [file for file in self.files(from_version=from_version) if "/" not in file.name]
        listing = classify(found)
        if from_version is None and not listing.commits and not listing.checkpoints:
            raise self._no_log(bool(found))
        return listing

    def files(self, *, from_version: int | None = None) -> Sequence[LogFile]:
        """Every file of the log from a version on, whatever it is; those of folders have their names with them."""
        offset = f"{LOG}/{from_version:020d}" if from_version else None
        try:
            pages = obstore.list(self._location.store, prefix=LOG, offset=offset, chunk_size=1000)
            return [log_file(item["path"].removeprefix(f"{LOG}/"), item) for page in pages for item in page]
        except (BaseError, OSError) as error:
            raise self._failed(LOG, error) from error

    def read(self, version: int) -> bytes:
        """The whole commit file of a version."""
        return self.read_file(commit_name(version))

    def stream(self, version: int) -> Iterator[bytes]:
        """The commit file of a version in chunks, for one that may be large."""
        return self.stream_file(commit_name(version))

    def read_file(self, name: str) -> bytes:
        """The whole of one file, named relative to `_delta_log`."""
        return b"".join(self.stream_file(name))

    def stream_file(self, name: str) -> Iterator[bytes]:
        """One file in chunks, named relative to `_delta_log`."""
        try:
            if self._location.local is not None:
                # A log is thousands of small files; obstore hands each over from a thread of its own, 0.3 ms a file.
                with (self._location.local / LOG / name).open("rb") as file:
                    while chunk := file.read(_CHUNK_BYTES):
                        yield chunk
                return
            for chunk in obstore.get(self._location.store, f"{LOG}/{name}").stream(min_chunk_size=_CHUNK_BYTES):
                yield bytes(chunk)
        except (BaseError, OSError) as error:
            raise self._failed(name, error) from error

    def open_file(self, name: str) -> Any:
        """One file as a seekable binary file, named relative to `_delta_log`; ranges are fetched as they are read."""
        try:
            if self._location.local is not None:
                return (self._location.local / LOG / name).open("rb")
            return _Ranges(obstore.open_reader(self._location.store, f"{LOG}/{name}"))
        except (BaseError, OSError) as error:
            raise self._failed(name, error) from error

    def last_checkpoint_hint(self, listing: Listing) -> int | None:
        """The version that `_last_checkpoint` names, if the listing has it. It is a hint: nothing depends on it.

        A file that is broken, or that names a version which is not there, is ignored with a warning.
        """
        try:
            size = obstore.head(self._location.store, f"{LOG}/_last_checkpoint")["size"]
            hint = orjson.loads(self.read_file("_last_checkpoint")) if size <= _MAX_HINT_BYTES else None
        except (NotFoundError, FileNotFoundError):
            return None
        except (MainstemError, BaseError, OSError, orjson.JSONDecodeError) as error:
            self._ignore_hint(str(error))
            return None
        version = hint.get("version") if isinstance(hint, dict) else None
        if type(version) is not int:
            self._ignore_hint("it names no version")
            return None
        if not any(checkpoint.version == version for checkpoint in listing.checkpoints):
            self._ignore_hint(f"there is no complete checkpoint of version {version}")
            return None
        return version

    def _ignore_hint(self, reason: str) -> None:
        event("last_checkpoint.ignored", level=logging.WARNING, table=self.root, reason=reason)

    def _no_log(self, has_files: bool) -> MainstemError:
        local = self._location.local
        if has_files or (local is not None and (local / LOG).is_dir()):
            return CorruptLog(
                f"{self.root}/{LOG} contains no commit and no complete checkpoint.",
                hint="Nothing was imported.",
                file=LOG,
                line=None,
            )
        return UsageError(
            f"{self.root} is not a Delta table: it has no {LOG}.",
            hint="Give the folder that holds _delta_log.",
            location=self.root,
        )

    def _failed(self, name: str, error: Exception) -> MainstemError:
        if isinstance(error, NotFoundError | FileNotFoundError):
            return VersionNotFound(
                f"{self.root}/{LOG}/{name} is not there.",
                hint="A log cleanup may have removed it meanwhile: list the log again.",
                file=name,
            )
        return UsageError(
            f"{self.root}/{LOG}/{name} cannot be read: {mask(str(error))}",
            hint="Check the permissions and the credentials of the store.",
            file=name,
        )


class _Ranges(io.RawIOBase):
    """A file of an object store as Python has files. obstore's own lacks what pyarrow asks of one, such as `closed`."""

    def __init__(self, reader: ReadableFile) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view) and (chunk := bytes(self._reader.read(len(view) - filled))):
            view[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
        return filled

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._reader.seek(offset, whence)

    def tell(self) -> int:
        return self._reader.tell()


def log_file(name: str, found: ObjectMeta) -> LogFile:
    """A file as the store describes it."""
    return LogFile(name, found["size"], (found["last_modified"] - _EPOCH) // _MILLISECOND)


def refuse_links(location: Location) -> None:
    """Raise `UsageError` if the log of a table on a local disk, or its folder of sidecars, is a symbolic link."""
    for name in (LOG, f"{LOG}/{SIDECARS}"):
        if location.local is not None and (location.local / name).is_symlink():
            raise UsageError(
                f"{name} of {location.uri} is a symbolic link, which is not followed.",
                hint="Give the folder of the table that really holds the log.",
                location=location.uri,
            )


def has_log(location: Location) -> bool:
    """Whether there is anything in the table's `_delta_log`, or a folder of that name on a local disk."""
    if location.local is not None:
        return (location.local / LOG).exists()
    try:
        return any(page for page in obstore.list(location.store, prefix=LOG, chunk_size=1))
    except (BaseError, OSError) as error:
        raise UsageError(
            f"{location.uri} cannot be listed: {mask(str(error))}", hint="Check the credentials of the store."
        ) from error
