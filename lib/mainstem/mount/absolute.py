"""A mount without viewfs: a log elsewhere that names the table's files in full, as a shallow clone does.

Delta puts what it writes beside the log that it writes to. So a log for writing lies in a folder of its own inside of
the table's, and new files are the table's from the start: their paths get that folder in front, and all others become
again what they were.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from mainstem.deltalog.location import Location
from mainstem.errors import CorruptCatalog
from mainstem.identity import bucket_and_key, dv_unique_id, is_absolute
from mainstem.model import Action, AddFile, CdcFile, RemoveFile

_ABSOLUTE = r"^(/|[A-Za-z][A-Za-z0-9+.-]*:/)"
_RELATIVE_VECTOR, _ABSOLUTE_VECTOR = "u", "p"
_UUID_TEXT = 20
_VECTOR_FILE = re.compile(r"(?:(.*)/)?deletion_vector_([0-9a-f-]{36})\.bin")
_ASCII = re.compile(r"[\x00-\x7f]+")
_LEGAL = "/-_.!~*'(),;:$&+=@"  # what java.net.URI leaves as it is; Delta compares such texts
# Delta writes the UUID in a deletion vector's name by the alphabet of Z85; Python's own is another one.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_PYTHON, _TO_DELTA = str.maketrans(_Z85, _B85), str.maketrans(_B85, _Z85)


class FullPaths:
    """A table's files by their paths in full, and back again.

    `inside` is the folder of the table in which Delta writes, if it does. A path is never encoded again.
    """

    def __init__(self, location: Location, *, inside: str = "") -> None:
        self._root = raw_root(location)
        self._inside = inside
        self._own: set[str] = set()  # in full already in the table's log, though below its folder: they stay so

    def rows(self, rows: pa.Table) -> pa.Table:
        """Live files of a state with their paths in full. A path that is full already stays."""
        paths, vectors = rows.column("path"), rows.column("deletion_vector")
        full = pc.match_substring_regex(paths, _ABSOLUTE)
        self._keep(paths.filter(full).to_pylist())
        shown = pc.if_else(full, paths, pc.binary_join_element_wise(pa.scalar(self._root), paths, "/"))
        texts = [None if text is None else self._full_vector(text) for text in vectors.to_pylist()]
        changed = {"path": shown, "deletion_vector": pa.array(texts, rows.schema.field("deletion_vector").type)}
        return pa.table([changed.get(name, rows.column(name)) for name in rows.column_names], names=rows.column_names)

    def actions(self, actions: Sequence[Action]) -> list[Action]:
        """The same for a commit."""
        return [self._full(action) for action in actions]

    def back(self, actions: Sequence[Action], *, table_root: str) -> list[Action]:
        """What Delta has committed, with the paths that the table's own log has for the same files."""
        return [self._relative(action, table_root) for action in actions]

    def _keep(self, paths: Iterable[str]) -> None:
        self._own.update(path for path in paths if path.startswith(f"{self._root}/"))

    def _full(self, action: Action) -> Action:
        if not isinstance(action, AddFile | RemoveFile | CdcFile):
            return action
        if is_absolute(action.path):
            self._keep([action.path])
            path = action.path
        else:
            path = f"{self._root}/{action.path}"
        if isinstance(action, CdcFile) or action.deletion_vector is None:
            return replace(action, path=path)
        return replace(action, path=path, deletion_vector=self._full_vector(action.deletion_vector))

    def _full_vector(self, text: str) -> str:
        """A deletion vector's descriptor with the path of its file in full; one without such a file stays as it is."""
        vector: dict[str, Any] = orjson.loads(text)
        if vector["storageType"] != _RELATIVE_VECTOR:
            if vector["storageType"] == _ABSOLUTE_VECTOR:
                self._keep([vector["pathOrInlineDv"]])
            return text
        folder, name = vector["pathOrInlineDv"][:-_UUID_TEXT], vector["pathOrInlineDv"][-_UUID_TEXT:]
        try:
            file = f"deletion_vector_{UUID(bytes=base64.b85decode(name.translate(_TO_PYTHON)))}.bin"
        except ValueError as error:
            raise CorruptCatalog(f"{text[:200]} names no file of a deletion vector.") from error
        path = "/".join(part for part in (self._root, folder, file) if part)
        return orjson.dumps({**vector, "storageType": _ABSOLUTE_VECTOR, "pathOrInlineDv": path}).decode()

    def _relative(self, action: Action, table_root: str) -> Action:
        if not isinstance(action, AddFile | RemoveFile | CdcFile):
            return action
        path = self._relative_path(action.path)
        if isinstance(action, CdcFile):
            return replace(action, path=path)
        vector, dv_id = action.deletion_vector, action.dv_id
        if vector is not None:
            known = self._relative_vector(orjson.loads(vector))
            vector = orjson.dumps(known).decode()
            dv_id = dv_unique_id(known["storageType"], known["pathOrInlineDv"], known.get("offset"))
        bucket, key = bucket_and_key(path, dv_id, table_root)
        return replace(action, path=path, path_bucket=bucket, file_key=key, dv_id=dv_id, deletion_vector=vector)

    def _relative_path(self, path: str) -> str:
        if not is_absolute(path):
            return f"{self._inside}/{path}"
        return path if path in self._own else path.removeprefix(f"{self._root}/")

    def _relative_vector(self, vector: dict[str, Any]) -> dict[str, Any]:
        place = vector["pathOrInlineDv"]
        if vector["storageType"] == _RELATIVE_VECTOR:
            folder, name = place[:-_UUID_TEXT], place[-_UUID_TEXT:]
            return {**vector, "pathOrInlineDv": "/".join(part for part in (self._inside, folder) if part) + name}
        below = place.removeprefix(f"{self._root}/")
        found = _VECTOR_FILE.fullmatch(below)
        if vector["storageType"] != _ABSOLUTE_VECTOR or below == place or place in self._own or found is None:
            return vector
        name = base64.b85encode(UUID(found[2]).bytes).decode().translate(_TO_DELTA)
        return {**vector, "storageType": _RELATIVE_VECTOR, "pathOrInlineDv": (found[1] or "") + name}


def raw_root(location: Location) -> str:
    """A table's folder before its files' paths, encoded as Java does it, so that Delta knows its own files again."""
    scheme, _, rest = location.hadoop_uri.partition(":")
    return f"{scheme}:{_ASCII.sub(lambda found: quote(found[0], safe=_LEGAL), unquote(rest))}"
