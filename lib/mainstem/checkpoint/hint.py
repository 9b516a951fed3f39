"""`_last_checkpoint`: what it says, and its checksum as the protocol defines it. Values only."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5
from typing import Any
from urllib.parse import quote

import orjson


def hint_bytes(hint: dict[str, Any]) -> bytes:
    """The file, with its checksum. Fields that are None are left out."""
    said = {key: value for key, value in hint.items() if value is not None}
    return orjson.dumps({**said, "checksum": checksum(said)})


def checksum(hint: dict[str, Any]) -> str:
    """The MD5 of the canonical form: every leaf as `path=value`, by the bytes of its path. The checksum is no leaf."""
    leaves = {path: value for key in hint if key != "checksum" for path, value in _leaves(hint[key], _text(key))}
    ordered = sorted(leaves.items(), key=lambda leaf: leaf[0].encode())
    return md5(",".join(f"{path}={value}" for path, value in ordered).encode(), usedforsecurity=False).hexdigest()


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}+{_text(key)}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}+{place}")
    else:
        yield path, _text(value) if isinstance(value, str) else orjson.dumps(value).decode()


def _text(value: str) -> str:
    return f'"{quote(value, safe="")}"'
