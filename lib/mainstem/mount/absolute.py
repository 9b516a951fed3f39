"""A mount without viewfs: a log elsewhere that names the table's files in full, as a shallow clone does.

Delta reads such a table wherever it can read the files. What it writes lands beside the scratch log and not in the
table, so that such a mount is for reading alone.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from mainstem.errors import CorruptCatalog
from mainstem.identity import is_absolute
from mainstem.model import Action, AddFile, CdcFile, RemoveFile

_ABSOLUTE = r"^(/|[A-Za-z][A-Za-z0-9+.-]*:/)"
_RELATIVE_VECTOR, _ABSOLUTE_VECTOR = "u", "p"
_UUID_TEXT = 20
# Delta writes the UUID in a deletion vector's name by the alphabet of Z85; Python's own is another one.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_PYTHON = str.maketrans(_Z85, _B85)


def absolute_rows(rows: pa.Table, root: str) -> pa.Table:
    """Live files of a state with their paths in full. A path that is full already stays; none is encoded again."""
    paths = rows.column("path")
    full = pc.if_else(
        pc.match_substring_regex(paths, _ABSOLUTE), paths, pc.binary_join_element_wise(pa.scalar(root), paths, "/")
    )
    texts = [None if text is None else absolute_vector(text, root) for text in rows["deletion_vector"].to_pylist()]
    changed = {"path": full, "deletion_vector": pa.array(texts, rows.schema.field("deletion_vector").type)}
    return pa.table([changed.get(name, rows.column(name)) for name in rows.column_names], names=rows.column_names)


def absolute_actions(actions: Sequence[Action], root: str) -> list[Action]:
    """The same for a commit."""
    return [_absolute_action(action, root) for action in actions]


def _absolute_action(action: Action, root: str) -> Action:
    if not isinstance(action, AddFile | RemoveFile | CdcFile):
        return action
    path = action.path if is_absolute(action.path) else f"{root}/{action.path}"
    if isinstance(action, CdcFile) or action.deletion_vector is None:
        return replace(action, path=path)
    return replace(action, path=path, deletion_vector=absolute_vector(action.deletion_vector, root))


def absolute_vector(text: str, root: str) -> str:
    """A deletion vector's descriptor with the path of its file in full; one without such a file stays as it is."""
    vector: dict[str, Any] = orjson.loads(text)
    if vector["storageType"] != _RELATIVE_VECTOR:
        return text
    folder, name = vector["pathOrInlineDv"][:-_UUID_TEXT], vector["pathOrInlineDv"][-_UUID_TEXT:]
    try:
        file = f"deletion_vector_{UUID(bytes=base64.b85decode(name.translate(_TO_PYTHON)))}.bin"
    except ValueError as error:
        raise CorruptCatalog(f"{text[:200]} names no file of a deletion vector.") from error
    path = "/".join(part for part in (root, folder, file) if part)
    return orjson.dumps({**vector, "storageType": _ABSOLUTE_VECTOR, "pathOrInlineDv": path}).decode()
