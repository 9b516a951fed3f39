"""Folders of scratch, on a disk or in an object store."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self

import obstore
from obstore.exceptions import BaseError, NotFoundError

from mainstem.deltalog.location import Location, open_location

# obstore's messages repeat themselves as Rust prints them; the first paragraph says it all.
_DEBUG = "\n\nDebug source:"


class Folder:
    """A path, or a URI of an object store, where a folder is what its files' names begin with.

    What fails raises an OSError in either case.
    """

    def __init__(self, place: Path | str) -> None:
        self._place = place

    def __str__(self) -> str:
        return str(self._place)

    def __truediv__(self, name: str) -> Self:
        place = self._place
        return type(self)(place / name if isinstance(place, Path) else f"{place}/{name}")

    @property
    def local(self) -> Path | None:
        """Its place on this machine's disk, if it is there."""
        return self._place if isinstance(self._place, Path) else None

    @property
    def location(self) -> Location:
        """The same for those who read and write logs. On a disk it must be there."""
        return open_location(str(self._place))

    def make(self) -> Self:
        """Let it be there."""
        if self.local is not None:
            self.local.mkdir(parents=True, exist_ok=True)
        return self

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        if self.local is not None:
            (self.local / name).write_text(text)
            return
        try:
            obstore.put(self.location.store, name, text.encode())
        except BaseError as error:
            raise _failed(error) from error

    def read(self, name: str) -> str:
        """What a file says."""
        if self.local is not None:
            return (self.local / name).read_text()
        try:
            return bytes(obstore.get(self.location.store, name).bytes()).decode()
        except BaseError as error:
            raise _failed(error) from error

    def folders(self) -> list[str]:
        """The names of the folders in it; none if it is not there."""
        if self.local is not None:
            return [entry.name for entry in self.local.iterdir()] if self.local.is_dir() else []
        try:
            return [path.rstrip("/") for path in obstore.list_with_delimiter(self.location.store)["common_prefixes"]]
        except BaseError as error:
            raise _failed(error) from error

    def drop(self) -> None:
        """Remove it with all that is in it; what is gone already is gone."""
        if self.local is not None:
            shutil.rmtree(self.local, ignore_errors=True)
            return
        try:
            store = self.location.store
            for page in obstore.list(store, chunk_size=1000):
                obstore.delete(store, [item["path"] for item in page])
        except NotFoundError:
            return
        except BaseError as error:
            raise _failed(error) from error

    def drop_if_empty(self) -> None:
        """Remove it unless there is something in it. In an object store there is nothing to be removed then."""
        if self.local is not None:
            try:
                self.local.rmdir()
            except OSError:
                return


def _failed(error: BaseError) -> OSError:
    kind = FileNotFoundError if isinstance(error, NotFoundError) else OSError
    return kind(str(error).split(_DEBUG)[0])
