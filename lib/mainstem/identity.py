"""Who is who: when two paths name the same file, and the keys by which `dl_*` rows find each other.

The rule is Delta's own, measured on Delta Spark 4.4 by adding a file under one spelling and removing it under another:

- `file:/x`, `file:///x`, `FILE:/x` and `/x` are one file; so are `./a`, `a`, `b/../a` and `a//b`, `a/b`;
- `%3a` and `%3A` are one; a character that no URI holds raw (a space) is its escape, where Delta only fails;
- a relative path is never the same as an absolute one, not even of the same file: Delta keeps such an add alive;
- `%41` and `A`, or `é` and `%C3%A9`, are two. Decoding them would let one remove more files than Delta does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from urllib.parse import quote, unquote
from zlib import crc32

from mainstem.errors import CorruptLog

BUCKETS = 256

# Almost every path of a real log: relative, nothing to normalize. One match decides it, by plain runs of characters:
# an alternative in the loop makes it six times slower.
_PLAIN = re.compile(r"[A-Za-z0-9_=+,@~%-][A-Za-z0-9_=+,@~.%-]*(?:/[A-Za-z0-9_=+,@~%-][A-Za-z0-9_=+,@~.%-]*)*")
_ODD_ESCAPE = re.compile(r"%(?![0-9A-F]{2})")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
_OPAQUE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!/)")
# What java.net.URI refuses in a path: controls, spaces, a few marks of ASCII, and a percent sign that escapes nothing.
_ILLEGAL = re.compile(r'[\x00-\x20"<>\[\\\]^`{|}\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]')
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


def is_absolute(path: str) -> bool:
    """Whether the path names its place by itself: it starts with `/`, or with a scheme and `/`."""
    return path.startswith("/") or _SCHEME.match(path) is not None


def canonical_path(path: str, table_root: str) -> str:
    """The one spelling of a path that all spellings share which Delta takes for the same file.

    `table_root` is the table's location; it gives a scheme and a host to a path that starts with `/`.
    """
    if _PLAIN.fullmatch(path) and not ("%" in path and _ODD_ESCAPE.search(path)):
        return path
    scheme = _SCHEME.match(path)
    if scheme:
        place, rest = _place(scheme[1], path[scheme.end() :])
        return place + "/" + _normalize(rest)
    if path.startswith("/"):
        return _root_place(table_root) + "/" + _normalize(path)
    return _normalize(path)


def path_bucket(canonical: str) -> int:
    """0..255, from the canonical path alone: the slice that holds all rows of one path, on every engine."""
    return crc32(canonical.encode()) & 0xFF


def file_key(canonical: str, dv_id: str | None) -> bytes:
    """16 bytes for a file as Delta defines it: a path and its deletion vector.

    A zero byte separates the two. Neither can contain it, so no two files share the hashed text.
    """
    text = canonical if dv_id is None else f"{canonical}\0{dv_id}"
    return blake2b(text.encode(), digest_size=16).digest()


def bucket_and_key(path: str, dv_id: str | None, table_root: str) -> tuple[int, bytes]:
    """`path_bucket` and `file_key` of a path as the log spells it, at the price of one look at it."""
    plain = _PLAIN.fullmatch(path) and not ("%" in path and _ODD_ESCAPE.search(path))
    text = (path if plain else canonical_path(path, table_root)).encode()
    hashed = text if dv_id is None else text + b"\0" + dv_id.encode()
    return crc32(text) & 0xFF, blake2b(hashed, digest_size=16).digest()


def dv_unique_id(storage_type: str, path_or_inline: str, offset: int | None) -> str:
    """Delta's unique id of a deletion vector."""
    return f"{storage_type}{path_or_inline}" if offset is None else f"{storage_type}{path_or_inline}@{offset}"


def app_key(name: str) -> bytes:
    """16 bytes for an application id or a metadata domain: names of any length do not fit a B-tree."""
    return blake2b(name.encode(), digest_size=16).digest()


def refuse_escape(path: str, *, file: str, line: int | None = None, what: str = "path") -> None:
    """Raise `CorruptLog` if a relative path climbs out of its folder by `..`, written plainly or as `%2e%2e`.

    Absolute paths are legal (shallow clones have them): they are read, and never written or deleted by us.
    A backslash is an ordinary character, as it is to every object store.
    """
    if ".." not in path and "%" not in path:
        return
    if is_absolute(path):
        return
    # `x:../..` has no `/` after its scheme. Whatever a file system makes of it, it must not climb after the colon.
    for relative in (path, _OPAQUE.sub("", path, count=1)):
        depth = 0
        for segment in unquote(relative).split("/"):
            if segment == "..":
                depth -= 1
            elif segment not in ("", "."):
                depth += 1
            if depth < 0:
                place = file if line is None else f"{file}, line {line}"
                raise CorruptLog(
                    f"{place}: the {what} {path[:200]!r} leads out of its folder by '..'.",
                    hint="Nothing was imported. A table may name files elsewhere only by absolute paths.",
                    file=file,
                    line=line,
                    path=path[:1000],
                )


def _place(scheme: str, rest: str) -> tuple[str, str]:
    """Scheme and host in one spelling, and the path after them."""
    host = ""
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
    return f"{scheme.lower()}://{host}", rest


@lru_cache(maxsize=256)
def _root_place(table_root: str) -> str:
    scheme = _SCHEME.match(table_root)
    return _place(scheme[1], table_root[scheme.end() :])[0] if scheme else "file://"


def _normalize(path: str) -> str:
    """Segments as java.net.URI leaves them, escapes in upper case, illegal characters escaped."""
    path = _ILLEGAL.sub(lambda found: quote(found[0], safe=""), _LONE_PERCENT.sub("%25", path))
    return collapsed(_ESCAPE.sub(lambda found: found[0].upper(), path))


def collapsed(path: str) -> str:
    """A path without what says nothing: `.`, empty segments, and `..` with the segment before it."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif segment not in ("", "."):
            kept.append(segment)
    return "/".join(kept)
