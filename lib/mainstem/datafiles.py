"""The files in a table's folder beside its log: listed, looked for, deleted. Never outside of the folder."""

from __future__ import annotations

import base64
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote
from uuid import UUID

import obstore
import orjson
from obstore.exceptions import BaseError, NotFoundError

from mainstem.deltalog.files import LOG
from mainstem.deltalog.location import Location, below
from mainstem.errors import CorruptCatalog, UsageError, mask
from mainstem.identity import canonical_path, collapsed, is_absolute
from mainstem.store import Row

if TYPE_CHECKING:
    from obstore import ObjectMeta

_AT_ONCE = 16
_CHANGES = "_change_data"
_DV_UUID_LENGTH = 20
# Delta writes Z85, whose alphabet is another one than Python's.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_PYTHON = str.maketrans(_Z85, _B85)


class DataFile(NamedTuple):
    """A file by its path inside of the table's folder, as it is on disk."""

    path: str
    size_bytes: int
    modified_ms: int


def on_disk(path: str) -> str:
    """A relative path of the log as the file is called on disk, the same for all spellings that Delta takes for one.

    The log has it percent-encoded, and what is decoded may be a `..` again: Hadoop decodes first, too.
    """
    return collapsed(unquote(canonical_path(path, "")))


class Placed(NamedTuple):
    """How a file is called where a listing of the table's folder shows it, and its size if only a link leads there."""

    name: str | None
    size_bytes: int | None


def inside(path: str, location: Location) -> Iterator[str]:
    """A path of the log as the file is called inside of the table's folder; none if it is elsewhere.

    If a folder on the way is a link to another one in here, then by both names.
    """
    if not is_absolute(path):
        yield from _both_names(on_disk(path), location)
        return
    found = _by_links(path, location) or next(filter(None, (below(path, root) for root in location.roots)), None)
    if found:
        yield from _both_names(collapsed(found), location)


def placed(path: str, location: Location) -> Placed:
    """Where the file of a path is to be looked for. A listing follows no links, and a table's folder may hold some."""
    names = list(inside(path, location))
    if not names or location.really(os.path.dirname(names[0])) is not None:
        return Placed(names[-1] if names else None, None)
    try:
        return Placed(names[0], os.stat(os.path.join(location.local or "", names[0])).st_size)
    except OSError:
        return Placed(names[0], None)


def _both_names(name: str, location: Location) -> Iterator[str]:
    yield name
    folder, _, file = name.rpartition("/")
    real = location.really(folder) if folder else folder
    if real is not None and real != folder:
        yield f"{real}/{file}" if real else file


def _by_links(path: str, location: Location) -> str | None:
    """The same for a file on this machine's disk, by where it really is: any link may lead into the folder."""
    if location.local is None:
        return None
    scheme, _, rest = canonical_path(path, location.uri).partition("://")
    if scheme != "file":
        return None
    root = unquote(location.roots[-1].removeprefix("file://")).rstrip("/") + "/"
    try:
        real = os.path.realpath(unquote(rest[rest.find("/") :]))
    except ValueError:
        return None  # U+0000 is in no file's name
    return real.removeprefix(root) if real.startswith(root) else None


def vector_files(text: str, location: Location) -> Iterator[str]:
    """The file inside of the table's folder that holds a deletion vector; none for one in the log itself.

    Raises `CorruptCatalog` if the text is no deletion vector.
    """
    try:
        vector = orjson.loads(text)
        kind, name = vector["storageType"], vector["pathOrInlineDv"]
        if kind == "u":
            prefix, encoded = name[:-_DV_UUID_LENGTH], name[-_DV_UUID_LENGTH:]
            file = f"deletion_vector_{UUID(bytes=base64.b85decode(encoded.translate(_TO_PYTHON)))}.bin"
            name = f"{prefix}/{file}" if prefix else file
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptCatalog(
            f"a deletion vector in the catalog is none of Delta's: {text[:200]!r}.",
            hint="Restore the row from a backup, or import the table again: mainstem import --force",
        ) from error
    if kind == "u":
        yield from _both_names(collapsed(name), location)  # its folder stands there as it is called, not encoded
    elif kind == "p":
        yield from inside(name, location)


def files_named(row: Row, location: Location) -> Iterator[str]:
    """The files inside of the table's folder that a row of `path` and `deletion_vector` names."""
    yield from inside(row["path"], location)
    if row["deletion_vector"]:
        yield from vector_files(row["deletion_vector"], location)


def list_files(location: Location, *, folder: str = "") -> Iterator[DataFile]:
    """Every file that may be the table's: hidden ones and folders that begin with `_` or `.` are not, as for Delta.

    With `folder`, those below it.
    """
    if location.local is not None:
        try:
            yield from _walk(str(location.local), folder)
        except OSError as error:
            raise _failed(location, "listed", error) from error
        return
    for path, item in _objects(location, folder):
        if all(map(_visible, path)):
            yield _object(item)


def own_files(location: Location, others: Collection[str]) -> list[DataFile]:
    """The same without what may be another table's: below these folders, and below all that have a log of their own."""
    if location.local is not None:
        return list(_walk(str(location.local), "", others))
    nested = {tuple(folder.split("/")) for folder in others}
    found = []
    for path, item in _objects(location, ""):
        if LOG in path[1:]:
            nested.add(tuple(path[: path.index(LOG, 1)]))
        elif all(map(_visible, path)):
            found.append((path, _object(item)))
    return [file for path, file in found if not any(tuple(path[:depth]) in nested for depth in range(1, len(path)))]


def _objects(location: Location, folder: str) -> Iterator[tuple[list[str], ObjectMeta]]:
    try:
        for page in obstore.list(location.store, prefix=folder or None, chunk_size=1000):
            for item in page:
                yield item["path"].split("/"), item
    except (BaseError, OSError) as error:
        raise _failed(location, "listed", error) from error


def _object(item: ObjectMeta) -> DataFile:
    return DataFile(item["path"], item["size"], int(item["last_modified"].timestamp() * 1000))


def list_top(location: Location) -> tuple[list[DataFile], list[str]]:
    """What stands in the table's folder itself: its files, and the folders that may hold more of them."""
    if location.local is not None:
        with os.scandir(location.local) as entries:
            seen = [entry for entry in entries if _visible(entry.name) and not entry.is_symlink()]
        folders = [entry.name for entry in seen if entry.is_dir()]
        stats = [(entry.name, entry.stat()) for entry in seen if not entry.is_dir()]
        return [DataFile(name, found.st_size, found.st_mtime_ns // 1_000_000) for name, found in stats], folders
    try:
        found = obstore.list_with_delimiter(location.store)
    except (BaseError, OSError) as error:
        raise _failed(location, "listed", error) from error
    files = [_object(item) for item in found["objects"] if _visible(item["path"])]
    return files, [prefix.rstrip("/") for prefix in found["common_prefixes"] if _visible(prefix.rstrip("/"))]


def _walk(root: str, folder: str, others: Collection[str] | None = None) -> Iterator[DataFile]:
    with os.scandir(os.path.join(root, folder)) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not _visible(entry.name) or entry.is_symlink():
                continue
            if entry.is_dir():
                if others is None or not (path in others or os.path.lexists(os.path.join(entry.path, LOG))):
                    yield from _walk(root, path, others)
            else:
                try:
                    found = entry.stat()
                except FileNotFoundError:
                    continue  # somebody has deleted it since the folder was opened
                yield DataFile(path, found.st_size, found.st_mtime_ns // 1_000_000)


def _visible(name: str) -> bool:
    # A partition column may be called `_day`: its folders hold data.
    return not name.startswith((".", "_")) or name == _CHANGES or ("=" in name and not name.startswith("."))


def missing(location: Location, names: Iterable[str]) -> list[str]:
    """Which of these files, as they are called inside of the table's folder, are not there."""

    def is_gone(name: str) -> bool:
        if location.local is not None:
            return not (location.local / name).is_file()
        try:
            obstore.head(location.store, name)
        except (NotFoundError, FileNotFoundError):
            return True
        except (BaseError, OSError) as error:
            raise _failed(location, "read", error) from error
        return False

    wanted = list(names)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [name for name, gone in zip(wanted, pool.map(is_gone, wanted), strict=True) if gone]


def delete_files(location: Location, files: Iterable[DataFile]) -> int:
    """Delete files that `list_files` has shown; how many. One that is gone already is no error."""

    def is_deleted(file: DataFile) -> bool:
        try:
            if location.local is not None:
                (location.local / file.path).unlink()
            else:
                obstore.delete(location.store, file.path)
        except (NotFoundError, FileNotFoundError):
            return False
        except (BaseError, OSError) as error:
            raise _failed(location, "deleted", error) from error
        return True

    if location.local is not None:
        return sum(map(is_deleted, files))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return sum(pool.map(is_deleted, files))


def _failed(location: Location, what: str, error: Exception) -> UsageError:
    return UsageError(
        f"files of {location.uri} cannot be {what}: {mask(str(error).splitlines()[0])}",
        hint="Check the permissions and the credentials of the store.",
    )
