"""SQL as text: where it lies, how a file splits into statements, how `:name` becomes a driver's placeholder.

Nothing here knows an engine: what differs between databases comes in as an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal
from uuid import UUID

from mainstem.errors import UsageError

# Literals, quoted names and comments are matched first, so that a `:name` or `;` inside them stays what it is.
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
      | (?P<cast>::)
      | :(?P<param>[A-Za-z_]\w*)
      | \{\{(?P<fragment>\w+)\}\}
      | (?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(r"^-- name: (?P<name>\w+)[^\n]*\n", re.MULTILINE)
_DROPPED = re.compile(r"\bDROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?P<name>\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement in a driver's own placeholder style, and the names that it wants."""

    text: str
    names: frozenset[str]

    def pick(self, values: Mapping[str, object]) -> dict[str, object]:
        """Exactly the values that the statement wants; a missing one is a programming error, said by name."""
        missing = self.names - values.keys()
        if missing:
            raise UsageError(f"the statement wants values for {sorted(missing)}: {self.text[:80]!r}")
        return {name: values[name] for name in self.names}


def bind(sql: str, placeholder: Callable[[str], str], *, double_percent: bool = False) -> Bound:
    """`sql` with every `:name` replaced by `placeholder(name)`.

    `double_percent` escapes `%` everywhere, for drivers whose placeholders begin with it.
    """
    names: set[str] = set()
    out: list[str] = []
    last = 0

    def plain(text: str) -> str:
        return text.replace("%", "%%") if double_percent else text

    for token in _TOKEN.finditer(sql):
        if name := token["param"]:
            out += [plain(sql[last : token.start()]), placeholder(name)]
            names.add(name)
            last = token.end()
    out.append(plain(sql[last:]))
    return Bound("".join(out), frozenset(names))


def render(sql: str, fragments: Mapping[str, str], *, others: Literal["refuse", "keep"] = "refuse") -> str:
    """`sql` with every `{{name}}` replaced by the fragment of that name; `others="keep"` leaves the rest for later."""

    def replace(token: re.Match[str]) -> str:
        name = token["fragment"]
        if name is None or (others == "keep" and name not in fragments):
            return token[0]
        if name not in fragments:
            raise UsageError(f"the SQL uses the fragment {{{{{name}}}}}, which this engine does not define")
        return fragments[name]

    return _TOKEN.sub(replace, sql)


def statements(script: str) -> Iterator[str]:
    """The statements of a script, without the semicolons; comments stay with the statement that follows them."""
    start = 0
    for token in _TOKEN.finditer(script):
        if token["end"]:
            yield script[start : token.start()].strip()
            start = token.end()
    rest = script[start:].strip()
    if _without_comments(rest).strip():
        yield rest


def _without_comments(script: str) -> str:
    return _TOKEN.sub(lambda token: "" if token["comment"] else token[0], script)


def dropped_tables(script: str) -> list[str]:
    """The tables that a script drops, in its order."""
    return [match["name"] for match in _DROPPED.finditer(_without_comments(script))]


def named_blocks(script: str) -> dict[str, str]:
    """The queries of a file whose blocks each open with `-- name: x`."""
    heads = list(_NAMED.finditer(script))
    ends = [head.start() for head in heads[1:]] + [len(script)]
    return {head["name"]: script[head.end() : end].strip().rstrip(";") for head, end in zip(heads, ends, strict=True)}


def jdbc_literal(value: int | UUID) -> str:
    """A value as SQL text, for JDBC subqueries, which cannot bind.

    The only door from values into JDBC text: integers and UUIDs pass, anything else is refused.
    """
    if isinstance(value, bool) or not isinstance(value, int | UUID):
        raise UsageError(f"only integers and UUIDs may enter JDBC text, not {type(value).__name__}")
    return str(value) if isinstance(value, int) else f"'{value}'"


def jdbc_text(value: str, text_of_hex: Callable[[str], str]) -> str:
    """A text as SQL, for JDBC subqueries: nothing but the digits of its bytes enters; the engine decodes them."""
    return text_of_hex(value.encode().hex())


def root() -> Traversable:
    """Where the package keeps its SQL: in a checkout, in a wheel, and in a wheel given to `--py-files`."""
    return files("mainstem").joinpath("sql")


@cache
def queries() -> Mapping[str, str]:
    """Every named query of `sql/queries/`, by name. A name stands once."""
    found: dict[str, str] = {}
    for file in sorted(root().joinpath("queries").iterdir(), key=lambda file: file.name):
        for name, text in named_blocks(file.read_text(encoding="utf-8")).items():
            if name in found:
                raise UsageError(f"the query {name!r} stands twice in sql/queries/")
            found[name] = text
    return found
