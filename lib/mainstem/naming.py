"""What a table or a tag may be called."""

from __future__ import annotations

from mainstem.errors import UsageError

_LONGEST_NAME = 1000
_MOST_BYTES = 2500  # a B-tree of Postgres holds no key of more than 2,704
_URI = "deltasql://"


def require_name(name: str, *, what: str = "table") -> None:
    """Raise UsageError unless a table, or a tag, may be called that: text without control characters, up to 1,000 long.

    In UTF-8 it may have 2,500 bytes, so that every database can index it. What begins as a URI would be read as one.
    """
    printable = name and storable(name) and not any(ord(character) < 32 for character in name)
    if (
        not printable
        or name.strip() != name
        or name.startswith(_URI)
        or len(name) > _LONGEST_NAME
        or len(name.encode()) > _MOST_BYTES
    ):
        raise UsageError(
            f"a {what} cannot be called {name[:80]!r}.",
            hint="Give it a name such as sales.orders: 1 to 1,000 characters of up to 2,500 bytes, without control "
            "characters or blanks at its ends.",
        )


def storable(text: str) -> bool:
    """Whether a database can hold the text: U+0000 and half of a surrogate pair are none."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
