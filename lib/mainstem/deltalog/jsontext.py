"""JSON read without loss: each member of an object with its value and with its own text.

orjson is the fast way, but it rounds integers beyond 64 bits, takes the last of duplicate keys and refuses lone
surrogates and 1e400. It is trusted for a line only if writing its result gives the same bytes; the rest comes here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple

import orjson

MAX_DEPTH = 254  # where orjson stops writing, so that both ways agree; no log comes near it

_SPACE = re.compile(r"[ \t\n\r]*")
# Possessive: on a long broken line nothing is remembered for a way back.
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


class NotJson(ValueError):
    """The text is not what JSON allows, or not what a log may contain; the message says why."""


class BigNumber:
    """An integer of more digits than 64 bits can hold. Its text is kept elsewhere; only its size matters here."""


class Member(NamedTuple):
    """One member of an object: the decoded key and value, and the value's text as it was written."""

    key: str
    value: Any
    text: str


def members(text: str, *, strict: frozenset[str] | None = None) -> list[Member]:
    """The members of the JSON object that is the whole of `text`, in order.

    Duplicate keys of the object itself are refused. Inside of its values they are refused too, unless `strict` names
    the keys to be strict about: a value that is only carried along may be odd.
    """
    _refuse_depth(text)
    start = _skip(text, 0)
    if text[start : start + 1] != "{":
        raise NotJson("an object was expected")
    found: dict[str, Member] = {}
    end = start
    for member, after in _walk(text, start + 1, strict):
        end = after
        if member is None:
            break
        if member.key in found:
            raise NotJson(f"the key {member.key[:100]!r} appears twice")
        found[member.key] = member
    if _skip(text, end) != len(text):
        raise NotJson(f"there is something after the object, at column {_skip(text, end) + 1}")
    return list(found.values())


def last_text(text: str, key: str) -> str | None:
    """The text of a member of a JSON object that was read before; of several the last, whose value was read."""
    found = [member for member, _ in _walk(text, _skip(text, 0) + 1, frozenset()) if member and member.key == key]
    return found[-1].text if found else None


def decoded(text: str) -> Any:
    """The value of a JSON text that was read before, whatever it holds: a number that fits no type stays its text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # legal JSON all the same, with half of a surrogate pair or 1e400 in it
        return _LOSSLESS.decode(text)


def edited(text: str, changes: Mapping[str, str | None], *, first: frozenset[str] = frozenset()) -> str:
    """A JSON object that was read before, with members set to these texts, or left out where None; the rest verbatim.

    A new member goes to the end, or to the front if it is one of `first`. Of a key that appears twice the last stays.
    """
    kept = {member.key: member.text for member, _ in _walk(text, _skip(text, 0) + 1, frozenset()) if member}
    new = {key: value for key, value in changes.items() if value is not None and key not in kept}
    front = {key: value for key, value in new.items() if key in first}
    merged = {**front, **kept, **{key: value for key, value in changes.items() if value is not None}}
    gone = {key for key, value in changes.items() if value is None}
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in merged.items() if key not in gone) + "}"


def _walk(text: str, at: int, strict: frozenset[str] | None) -> Iterator[tuple[Member | None, int]]:
    at = _skip(text, at)
    if text[at : at + 1] == "}":
        yield None, at + 1
        return
    while True:
        if text[at : at + 1] != '"':
            raise NotJson(f"a key in double quotes was expected at column {at + 1}")
        try:
            key, at = _LOOSE.raw_decode(text, at)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise NotJson(f"a colon was expected at column {at + 1}")
            start = _skip(text, at + 1)
            decoder = _LOOSE if strict is not None and key not in strict else _STRICT
            value, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise NotJson(f"{error.msg} at column {error.colno}") from None
        yield Member(key, value, text[start:at]), at
        at = _skip(text, at)
        mark = text[at : at + 1]
        if mark == "}":
            yield None, at + 1
            return
        if mark != ",":
            raise NotJson(f"a comma or a closing brace was expected at column {at + 1}")
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _refuse_depth(text: str) -> None:
    # Counted before anything recurses: a log must not be able to exhaust the stack.
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _NESTING.finditer(text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise NotJson(f"it is nested deeper than {MAX_DEPTH} levels")
        elif mark in "]}":
            depth -= 1


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {key[:100]!r} appears twice")
            seen.add(key)
    return result


def _integer(text: str) -> int | BigNumber:
    # Python refuses to convert thousands of digits, and would take quadratic time over fewer.
    return int(text) if len(text) <= 20 else BigNumber()


def _no_constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_int=_integer, parse_constant=_no_constant)
_LOOSE = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant)
_LOSSLESS = json.JSONDecoder(
    parse_int=lambda text: int(text) if len(text) < 20 else text,
    parse_float=lambda text: float(text) if isfinite(float(text)) else text,
    parse_constant=_no_constant,
)
