"""One part of a catalog URI: decoded alone, checked, and never quoted in an error.

In a malformed URI nobody can tell which piece was meant to be the password.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from mainstem.errors import UsageError

_FORMS: Final = (
    "The right forms are postgresql://user@host:5432/db?schema=lake,"
    " sqlite:////absolute/lake.db, sqlite:///relative/lake.db,"
    " duckdb:////absolute/lake.duckdb, duckdb:///relative/lake.duckdb,"
    " deltasql://postgres/user@host:5432/db/schema/table, deltasql://postgres/db/schema,"
    " deltasql://sqlite//absolute/meta.db?table=sales.orders, deltasql://sqlite/relative/meta.db"
    " and deltasql://duckdb//absolute/meta.duckdb; a table may follow each as ?table=sales.orders."
    " A password follows the user as `:${NAME}`, taken from the environment, or with its special characters as %xx."
)

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decoded(raw: str, part: str, env: Mapping[str, str], *, may_be_empty: bool = False) -> str:
    """One part, decoded: `%xx` outside variables, and the variables' values as they are."""
    pieces = VARIABLE.split(raw)
    for index, piece in enumerate(pieces):
        pieces[index] = lookup(piece, env) if index % 2 else _unescaped(piece, part)
    return checked("".join(pieces), part, may_be_empty=may_be_empty)


def _unescaped(piece: str, part: str) -> str:
    if _BAD_ESCAPE.search(piece):
        raise wrong(f"`%` without two hexadecimal digits in its {part}; write a percent sign as %25", part=part)
    # Replaced and not strict: a UnicodeDecodeError would carry the text into the traceback.
    decoded = unquote(piece, errors="surrogateescape")
    if any(0xDC80 <= ord(char) <= 0xDCFF for char in decoded):
        raise wrong(f"the %xx in its {part} are not UTF-8", part=part)
    return decoded


def lookup(name: str, env: Mapping[str, str]) -> str:
    if name not in env:
        raise UsageError(
            f"The catalog URI takes ${{{name}}} from the environment, where it is not set.",
            hint=f"Set {name}, or write a literal `${{` as %24%7B. {_FORMS}",
            variable=name,
        )
    return env[name]


def checked(text: str, part: str, *, may_be_empty: bool = False) -> str:
    if not text and not may_be_empty:
        raise wrong(f"its {part} is empty", part=part)
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        raise wrong(f"there is a control character or invalid UTF-8 in its {part}", part=part)
    return text


def check_raw(text: str) -> None:
    """What must hold for the whole text, before it is cut."""
    checked(text, "text")
    if "${" in VARIABLE.sub("", text):
        raise wrong(
            "a `${` is not closed, or what it holds is no variable's name; a literal `${` is %24%7B", part="text"
        )


def check_delimiters(body: str, query: str) -> None:
    """In a URI that may hold a password a stray delimiter is refused: guessing could show half of it."""
    whole = f"{body}?{query}"
    if whole.count("@") > 1 or "@" in query:
        raise stray_at()
    if "#" in whole or any(char.isspace() for char in whole):
        raise wrong("`#` must be written as %23 and a space as %20", part="text")


def stray_at() -> UsageError:
    return wrong(
        "an `@` stands where none belongs; in a user, password or option write @ as %40, / as %2F and ? as %3F",
        part="user or password",
    )


def wrong(problem: str, *, part: str) -> UsageError:
    return UsageError(f"The catalog URI is wrong: {problem}.", hint=_FORMS, part=part)
