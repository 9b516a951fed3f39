"""Files into a table's `_delta_log`: written whole or not at all, and a commit never twice."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from mainstem.deltalog.files import LOG, SIDECARS, log_file, refuse_links
from mainstem.deltalog.location import Location, open_location
from mainstem.deltalog.names import LogFile
from mainstem.errors import LogNotWritten, MainstemError, UsageError, mask

HINT = "_last_checkpoint"
SCRATCH = ".mainstem-"  # how the names of our own folders in a log begin; no reader looks into them
# What stands in a log, or in its folder of sidecars: nothing hidden, nothing that leads elsewhere.
_NAME = re.compile(rf"(?:{SIDECARS}/)?[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SCRATCH_FOLDER = re.compile(rf"{re.escape(SCRATCH)}[0-9a-f-]{{36}}")
_SCRATCH_FILE = re.compile(rf"{re.escape(SCRATCH)}[0-9a-f-]{{36}}/[A-Za-z0-9_][A-Za-z0-9_.-]*")
# obstore's messages repeat themselves as Rust prints them; the first paragraph says it all.
_DEBUG = "\n\nDebug source:"


class LogWriter:
    """Writes the log of one table. Names are relative to `_delta_log`, which is created with its first file.

    Every file appears with all of its bytes or not at all, also when the process is killed meanwhile. What a kill may
    leave on a local disk is a file `<name>#<number>`, which neither Delta nor our own listing takes for anything.
    """

    def __init__(self, location: Location) -> None:
        refuse_links(location)
        self._location = location

    @classmethod
    def open(cls, location: str) -> LogWriter:
        """The log of the table at a path or URI. The table's folder must be there."""
        return cls(open_location(location))

    @property
    def location(self) -> Location:
        """Where the table is whose log is written."""
        return self._location

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet: True. False if one of that name was there: it stays as it was.

        Of any number of processes that write one name at once, exactly one gets True. After a lost connection an object
        store may answer False to the very writer whose bytes are there: who gets False compares the bytes.
        """
        self._check(name)
        self._forget_checksum(name)
        try:
            # On a local disk obstore links the finished file to its name: the only way that never lets two win.
            obstore.put(self._location.store, f"{LOG}/{name}", data, mode="create")
        except (AlreadyExistsError, FileExistsError):
            return False
        except (BaseError, OSError) as error:
            raise self._failed(name, error) from error
        return True

    def replace(self, name: str, data: bytes) -> None:
        """Write `_last_checkpoint`, the one file of a log that is replaced: readers see the old one or the new one."""
        self._check(name)
        if name != HINT:
            raise UsageError(f"{name} of a log is never replaced, only {HINT} is.", hint="Nothing was written.")
        self._put(name, data)

    def upload(self, name: str, source: Path | IO[bytes]) -> None:
        """Write a part of a checkpoint from a local file, in bounded memory.

        One of that name is replaced: the name of a checkpoint says of which version it is the state, so any two are
        equal to a reader. A commit is refused.
        """
        self._check_part(name)
        self._put(name, source)

    def adopt(self, source: str, name: str) -> None:
        """Give a part of a checkpoint its name: a file of a scratch folder in the log, which Spark wrote there."""
        self._check_part(name)
        if not _SCRATCH_FILE.fullmatch(source):
            raise UsageError(f"{source[:200]!r} is no file of a scratch folder.", hint="Nothing was written.")
        self._forget_checksum(name)
        try:
            obstore.rename(self._location.store, f"{LOG}/{source}", f"{LOG}/{name}", overwrite=True)
        except (BaseError, OSError) as error:
            raise self._failed(name, error) from error

    def scratch_files(self, folder: str) -> list[str]:
        """The names of the files in a scratch folder of the log."""
        try:
            pages = obstore.list(self._location.store, prefix=f"{LOG}/{self._scratch(folder)}")
            names = [item["path"].removeprefix(f"{LOG}/{folder}/") for page in pages for item in page]
        except (BaseError, OSError) as error:
            raise self._failed(folder, error, "listed") from error
        return sorted(name for name in names if "/" not in name)

    def scratch_write(self, name: str, data: bytes) -> None:
        """Write a file into a scratch folder of the log."""
        self._scratch(name.partition("/")[0])
        self._put(name, data)

    def discard(self, folder: str) -> None:
        """Delete a scratch folder of the log with all that is in it."""
        self._scratch(folder)
        if self._location.local is not None:
            shutil.rmtree(self._location.local / LOG / folder, ignore_errors=True)
            return
        try:
            for page in obstore.list(self._location.store, prefix=f"{LOG}/{folder}"):
                obstore.delete(self._location.store, [item["path"] for item in page])
        except (BaseError, OSError) as error:
            raise self._failed(folder, error, "deleted") from error

    def _scratch(self, folder: str) -> str:
        if not _SCRATCH_FOLDER.fullmatch(folder):
            raise UsageError(f"{folder[:200]!r} is no scratch folder.", hint="Nothing was written.")
        return folder

    def find(self, name: str) -> LogFile:
        """A file that was written, as the store has it now."""
        self._check(name)
        try:
            return log_file(name, obstore.head(self._location.store, f"{LOG}/{name}"))
        except (BaseError, OSError) as error:
            raise self._failed(name, error, "found") from error

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; one that is not there any more is no error."""
        paths = []
        for name in names:
            self._check(name)
            self._forget_checksum(name)
            paths.append(f"{LOG}/{name}")
        if not paths:
            return
        try:
            obstore.delete(self._location.store, paths)
        except (NotFoundError, FileNotFoundError):
            self._delete_each(paths)
        except (BaseError, OSError) as error:
            raise self._failed(paths[0].removeprefix(f"{LOG}/"), error, "deleted") from error

    def _delete_each(self, paths: list[str]) -> None:
        for path in paths:
            try:
                obstore.delete(self._location.store, path)
            except (NotFoundError, FileNotFoundError):
                continue
            except (BaseError, OSError) as error:
                raise self._failed(path.removeprefix(f"{LOG}/"), error, "deleted") from error

    def _put(self, name: str, data: bytes | Path | IO[bytes]) -> None:
        self._forget_checksum(name)
        try:
            obstore.put(self._location.store, f"{LOG}/{name}", data)
        except (BaseError, OSError) as error:
            raise self._failed(name, error) from error

    def _forget_checksum(self, name: str) -> None:
        """Hadoop keeps the checksum of a local file beside it, and would take ours for a damaged one of its own.

        Gone before the file changes: without it Hadoop does not check.
        """
        if self._location.local is not None:
            place = self._location.local / LOG / name
            try:
                place.with_name(f".{place.name}.crc").unlink(missing_ok=True)
            except OSError as error:
                raise self._failed(name, error) from error

    def _check_part(self, name: str) -> None:
        self._check(name)
        if name.endswith(".json") and ".checkpoint." not in name:
            raise UsageError(f"{name} is a commit, which is never replaced.", hint="Nothing was written.")

    def _check(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name[:200]!r} is no name for a file of a log.", hint="Nothing was written.")
        try:
            refuse_links(self._location)  # again: the folder may have been replaced since the writer was made
        except OSError as error:
            raise self._failed(name, error) from error

    def _failed(self, name: str, error: Exception, what: str = "written") -> MainstemError:
        return LogNotWritten(
            f"{self._location.uri}/{LOG}/{name} was not {what}: {mask(str(error).split(_DEBUG)[0])}",
            hint="No half of it is there. Check rights, space and credentials of the store, and do it again.",
            file=name,
        )
