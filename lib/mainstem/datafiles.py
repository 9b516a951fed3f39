"""The files in a table's folder beside its log: listed, looked for, deleted. Never outside of the folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import unquote

import obstore
from obstore.exceptions import BaseError, NotFoundError

from mainstem.deltalog.location import Location
from mainstem.errors import UsageError, mask

_AT_ONCE = 16
_CHANGES = "_change_data"


class DataFile(NamedTuple):
    """A file by its path inside of the table's folder, as it is on disk."""

    path: str
    size_bytes: int
    modified_ms: int


def on_disk(path: str) -> str:
    """A relative path of the log as the file is called on disk: the log has it percent-encoded."""
    return unquote(path)


def list_files(location: Location) -> Iterator[DataFile]:
    """Every file that may be the table's: hidden ones and folders that begin with `_` or `.` are not, as for Delta."""
    if location.local is not None:
        yield from _walk(str(location.local), "")
        return
    try:
        for page in obstore.list(location.store, chunk_size=1000):
            for item in page:
                if all(map(_visible, item["path"].split("/"))):
                    modified = int(item["last_modified"].timestamp() * 1000)
                    yield DataFile(item["path"], item["size"], modified)
    except (BaseError, OSError) as error:
        raise _failed(location, "listed", error) from error


def _walk(root: str, folder: str) -> Iterator[DataFile]:
    with os.scandir(os.path.join(root, folder)) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not _visible(entry.name) or entry.is_symlink():
                continue
            if entry.is_dir():
                yield from _walk(root, path)
            else:
                found = entry.stat()
                yield DataFile(path, found.st_size, found.st_mtime_ns // 1_000_000)


def _visible(name: str) -> bool:
    # A partition column may be called `_day`: its folders hold data.
    return not name.startswith((".", "_")) or name == _CHANGES or ("=" in name and not name.startswith("."))


def missing(location: Location, paths: Iterable[str]) -> list[str]:
    """Which of these relative paths, as the log has them, are not there."""

    def is_gone(path: str) -> bool:
        if location.local is not None:
            return not (location.local / on_disk(path)).is_file()
        try:
            obstore.head(location.store, on_disk(path))
        except (NotFoundError, FileNotFoundError):
            return True
        except (BaseError, OSError) as error:
            raise _failed(location, "read", error) from error
        return False

    wanted = list(paths)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [path for path, gone in zip(wanted, pool.map(is_gone, wanted), strict=True) if gone]


def delete_files(location: Location, files: Iterable[DataFile]) -> int:
    """Delete files that `list_files` has shown; how many. One that is gone already is no error."""
    deleted = 0
    for file in files:
        try:
            if location.local is not None:
                (location.local / file.path).unlink()
            else:
                obstore.delete(location.store, file.path)
            deleted += 1
        except (NotFoundError, FileNotFoundError):
            continue
        except (BaseError, OSError) as error:
            raise _failed(location, "deleted", error) from error
    return deleted


def _failed(location: Location, what: str, error: Exception) -> UsageError:
    return UsageError(
        f"files of {location.uri} cannot be {what}: {mask(str(error).splitlines()[0])}",
        hint="Check the permissions and the credentials of the store.",
    )
