"""A commit file, line by line, to actions: nothing lost, nothing believed.

A line goes the fast way if orjson's reading of it, written again, gives the same bytes: no digit, no duplicate key and
no spelling was lost. Otherwise it goes the careful way (`jsontext`), to the same result or an error.

Decided here, once:
- duplicate keys in an action are refused, also inside its known fields; inside commitInfo, unknown fields and unknown
  actions they are kept, because those are only carried along;
- one action per line; other actions on the line may only be null, and such nulls are dropped;
- blank lines are skipped, as Delta does; a file without any action is a torn write;
- U+0000 and lone surrogates are refused where they would have to be decoded into a text column, and kept elsewhere;
- `metaData` and `protocol` may appear once in a commit; a second commitInfo is carried along as an unknown action.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import orjson

from mainstem.deltalog.bodies import BUILDERS, add_file, commit_info, refuse_odd_name, refuse_surrogates
from mainstem.deltalog.fields import Refused, Texts, Values
from mainstem.deltalog.jsontext import NotJson, members
from mainstem.deltalog.layout import KNOWN_KEYS
from mainstem.errors import CorruptLog
from mainstem.model import FIRST_SEQ, Action, CommitInfo, Metadata, OtherAction, Protocol

MAX_LINE_BYTES = 64 * 1024 * 1024  # decoded it may need thirty times as much, and no log comes near it
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r"
_ONCE = frozenset((CommitInfo, Metadata, Protocol))


def parse_commit(data: bytes, *, file: str, table_root: str) -> list[Action]:
    """The actions of a commit in canonical order: commitInfo first, then as in the file. Errors name file and line."""
    actions = list(iter_commit((data,), file=file, table_root=table_root))
    actions.sort(key=lambda action: action.seq)
    return actions


def iter_commit(
    chunks: Iterable[bytes], *, file: str, table_root: str, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[Action]:
    """The actions of a commit in the order of the file, in memory bounded by its longest line.

    The file may arrive in chunks of any size. `seq` is 0 for commitInfo wherever it stands; the rest count from 1.
    """
    seq = FIRST_SEQ
    seen: set[type[Action]] = set()
    for number, offset, line in iter_lines(chunks, file=file, limit=max_line_bytes):
        try:
            action = _parse_line(line, seq, table_root, CommitInfo in seen)
            kind = type(action)
            if kind in _ONCE:
                if kind in seen:
                    raise Refused(f"a second {kind.__name__} in one commit")
                seen.add(kind)
        except (Refused, NotJson) as error:
            _refuse(file, number, str(error))
        except RecursionError:
            _refuse(file, number, "it is nested too deeply")
        except UnicodeDecodeError as error:
            _refuse(
                file, number, f"invalid UTF-8 at byte {offset + error.start} of the file", offset=offset + error.start
            )
        if kind is not CommitInfo:
            seq += 1
        yield action
    if seq == FIRST_SEQ and not seen:
        _refuse(file, 1, "it contains no action: an empty commit file is a torn write")


def _parse_line(line: bytes, seq: int, root: str, info_seen: bool) -> Action:
    try:
        parsed = orjson.loads(line)
        exact = orjson.dumps(parsed) == line
    except (orjson.JSONDecodeError, TypeError):  # TypeError: nested deeper than orjson writes
        exact = False
    if not exact:
        return _parse_carefully(line, seq, root, info_seen)
    if type(parsed) is dict and len(parsed) == 1 and type(parsed.get("add")) is dict:  # most lines of most logs
        return add_file(parsed["add"], None, seq, root)
    name, body = _single(parsed)
    builder = BUILDERS.get(name)
    if builder is None:
        refuse_odd_name(name)
        return _other(name, body, orjson.dumps(body).decode(), seq, info_seen, exact=True)
    return builder(body if type(body) is dict else _object(name, body), None, seq, root)


def _parse_carefully(line: bytes, seq: int, root: str, info_seen: bool) -> Action:
    if line.startswith(_BOM):
        raise NotJson("it starts with a byte order mark")
    outer = members(line.decode(), strict=frozenset())  # the fields of a known action are looked at below
    name, body = _single({member.key: member.value for member in outer})
    text = next(member.text for member in outer if member.key == name)
    builder = BUILDERS.get(name)
    if builder is None:
        refuse_odd_name(name)
        return _other(name, body, text, seq, info_seen, exact=False)
    _object(name, body)
    fields = members(text, strict=KNOWN_KEYS[name])
    values: Values = {member.key: member.value for member in fields}
    texts: Texts = {member.key: member.text for member in fields}
    try:
        action = builder(values, texts, seq, root)
    except UnicodeEncodeError:  # from hashing: only half of a surrogate pair cannot be encoded
        raise Refused(f"{name} contains a lone surrogate, which is not text") from None
    refuse_surrogates(name, action)
    return action


def _single(parsed: Any) -> tuple[str, Any]:
    if type(parsed) is not dict:
        raise NotJson("an object was expected")
    present = list(parsed.items())
    if len(present) != 1 or present[0][1] is None:
        present = [(name, body) for name, body in present if body is not None]
    if len(present) != 1:
        raise Refused("several actions on one line" if present else "the line contains no action")
    return present[0]


def _object(name: str, body: Any) -> Values:
    if type(body) is not dict:
        raise Refused(f"{name} must be an object")
    return body


def _other(name: str, body: Any, text: str, seq: int, info_seen: bool, *, exact: bool) -> Action:
    if name == "commitInfo" and not info_seen:
        return commit_info(_object(name, body), text, exact=exact)
    return OtherAction(seq, name, text)


def iter_lines(chunks: Iterable[bytes], *, file: str, limit: int = MAX_LINE_BYTES) -> Iterator[tuple[int, int, bytes]]:
    """Each line of a commit that is not blank, unread, with its number and the offset of its first byte."""
    number, offset, held, parts = 1, 0, 0, list[bytes]()
    for chunk in chunks:
        pieces = bytes(chunk).split(b"\n")
        for piece in pieces[:-1]:
            if held + len(piece) > limit:
                _refuse(file, number, f"the line is longer than {limit} bytes")
            line = b"".join([*parts, piece]) if parts else piece
            if line[:1] == b"{" and line[-1:] == b"}":
                yield number, offset, line
            elif stripped := line.strip(_BLANK):
                yield number, offset + line.find(stripped[:1]), stripped
            number, offset, held, parts = number + 1, offset + len(line) + 1, 0, []
        held += len(pieces[-1])
        parts.append(pieces[-1])
        if held > limit:
            _refuse(file, number, f"the line is longer than {limit} bytes")
    line = b"".join(parts)
    stripped = line.strip(_BLANK)
    if stripped:
        yield number, offset + line.find(stripped[:1]), stripped


def _refuse(file: str, line: int, why: str, **details: Any) -> NoReturn:
    raise CorruptLog(
        f"{file}, line {line}: {why}.",
        hint="Nothing was imported. Repair or remove the file, or restore it from a copy.",
        file=file,
        line=line,
        **details,
    )
