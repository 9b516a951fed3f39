"""Where a catalog is: every spelling of a catalog URI, read into one value that never shows its password.

The text is cut at its delimiters first and each part is decoded alone, so neither `%xx` nor the value of a
`${NAME}` can move a boundary. An error names the part that is wrong and never quotes what stands there: in a
malformed URI nobody can tell which piece was meant to be the password.
"""

from __future__ import annotations

import ipaddress
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from urllib.parse import quote, unquote

from mainstem.errors import UsageError, mask

Engine = Literal["postgres", "sqlite", "duckdb"]

_ENGINES: Final[Mapping[str, Engine]] = {
    "postgres": "postgres",
    "postgresql": "postgres",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
}
_COUNTS: Final = frozenset({"connect_timeout", "pool_size", "busy_timeout"})
_FILE_OPTIONS: Final = frozenset({"table"}) | _COUNTS
_POSTGRES_OPTIONS: Final = frozenset(
    {"schema", "table", "sslmode", "sslrootcert", "sslcert", "sslkey", "application_name", "target_session_attrs"}
    | {"connect_timeout", "pool_size"}
)
_FORMS: Final = (
    "The right forms are postgresql://user@host:5432/db?schema=lake,"
    " sqlite:////absolute/lake.db, sqlite:///relative/lake.db,"
    " duckdb:////absolute/lake.duckdb, duckdb:///relative/lake.duckdb,"
    " deltasql://postgres/user@host:5432/db/schema/table, deltasql://postgres/db/schema,"
    " deltasql://sqlite//absolute/meta.db?table=sales.orders, deltasql://sqlite/relative/meta.db"
    " and deltasql://duckdb//absolute/meta.duckdb; a table may follow each as ?table=sales.orders."
    " A password follows the user as `:${NAME}`, taken from the environment, or with its special characters as %xx."
)

_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>/{0,2})(?P<rest>.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BRACKETED: Final = re.compile(r"\[(?P<host>[^\[\]]*)\](?P<colon>:?)(?P<port>.*)", re.DOTALL)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


class Secret:
    """A text that shows itself only to `reveal()`; equal secrets are equal, also after pickling.

    Not a dataclass on purpose: `dataclasses.asdict` of whatever holds it would open it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself, for the driver and for nobody else."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)


class _Options(Mapping[str, str]):
    """A read-only mapping that, unlike `MappingProxyType`, can be hashed and pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, str]) -> None:
        self._items = tuple(sorted(items.items()))

    def __getitem__(self, key: str) -> str:
        return dict(self._items)[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(dict(self._items))


@dataclass(frozen=True, slots=True, repr=False)
class CatalogUri:
    """One catalog, and perhaps one table of it. Equal values mean the same place, whichever form was written.

    `database` is a database's name, or for the file engines an absolute path. `options` are for the driver as they
    are; `overrides` are settings that hold for this catalog alone (`Settings.for_uri` lays them over). `str`, `repr`
    and `masked` show the canonical form with `***` for the password; without a password it parses back to an equal
    value.
    """

    engine: Engine
    database: str
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: Secret | None = None
    schema: str = "public"
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _Options(self.options))
        object.__setattr__(self, "overrides", _Options(self.overrides))

    @property
    def masked(self) -> str:
        """The canonical form, safe to log."""
        schema = self.schema if self.engine == "postgres" else None
        query = {"schema": schema, "table": self.table, **self.options, **self.overrides}
        tail = "&".join(f"{key}={quote(value, safe='/')}" for key, value in query.items() if value is not None)
        return self._place() + (f"?{tail}" if tail else "")

    def _place(self) -> str:
        if self.engine != "postgres":
            return f"{self.engine}:///{quote(self.database, safe='/')}"
        host = self.host or ""
        shown = f"[{quote(host, safe=':')}]" if ":" in host else quote(host, safe=",")
        user = "" if self.user is None else quote(self.user, safe="") + (":***" if self.password else "") + "@"
        return f"postgresql://{user}{shown}:{self.port}/{quote(self.database, safe='')}"

    def __str__(self) -> str:
        return self.masked

    def __repr__(self) -> str:
        return f"CatalogUri({self.masked!r})"

    def same_catalog(self, other: CatalogUri) -> bool:
        """Whether both lead to the same rows, whoever asks and with whatever options."""
        places = ("engine", "database", "host", "port", "schema")
        return all(getattr(self, place) == getattr(other, place) for place in places)

    def without_table(self) -> CatalogUri:
        """The catalog alone."""
        return replace(self, table=None)

    def with_table(self, name: str) -> CatalogUri:
        """The same catalog, with the table of that Mainstem name (`schema.table`)."""
        return replace(self, table=_checked(name, "table"))


def parse_uri(text: str, *, environ: Mapping[str, str] | None = None) -> CatalogUri:
    """The place that `text` names, or a `UsageError` that says what is wrong with it and which forms are right.

    `${NAME}` comes from `environ` (`os.environ` when left out), literally: its value is not decoded again.
    """
    env = os.environ if environ is None else environ
    if whole := _VARIABLE.fullmatch(text):
        text = _lookup(whole[1], env)
        if not text:
            raise _wrong(f"the environment's {whole[1]} is empty", part="text")
    _check_raw(text)
    match = _SCHEME.fullmatch(text)
    if match is None or (match["scheme"].lower() not in {*_ENGINES, "deltasql"} and match["slashes"] != "//"):
        raise _wrong("it has no scheme such as postgresql:// or sqlite:///", part="scheme")
    scheme = match["scheme"].lower()
    if scheme not in {*_ENGINES, "deltasql"}:
        raise _wrong(f"its scheme `{scheme}` is not known", part="scheme")
    if match["slashes"] != "//":
        # `sqlite::memory:` and `postgres:/user…` both end here; what follows is not looked at.
        raise _wrong(f"`{scheme}:` is not followed by two slashes", part="scheme")
    body, _, query = match["rest"].partition("?")
    if scheme == "deltasql":
        name, _, body = body.partition("/")
        engine = _ENGINES.get(name.lower())
        if engine is None:
            raise _wrong("`deltasql://` is not followed by postgres/, sqlite/ or duckdb/", part="engine")
        if engine == "postgres":
            _check_delimiters(body, query)
            return _deltasql_postgres(body, query, env)
        return _file(engine, body, query, env)
    if _ENGINES[scheme] == "postgres":
        _check_delimiters(body, query)
        return _postgresql(body, query, env)
    authority, _, path = body.partition("/")
    if authority:
        raise _wrong(
            f"`{scheme}://` takes three slashes before a relative path and four before an absolute one", part="path"
        )
    return _file(_ENGINES[scheme], path, query, env)


def shown_uri(text: str) -> str:
    """The URI as it was written, `${NAME}` unexpanded, its password masked; `***` alone when it is malformed."""
    if _VARIABLE.fullmatch(text):
        return text
    try:
        # Any variable stands for a `1`: that is a valid host, port, name and path, so only the structure is judged.
        parse_uri(text, environ=dict.fromkeys(_VARIABLE.findall(text), "1"))
    except UsageError:
        return "***"
    return mask(text)


def _postgresql(body: str, query: str, env: Mapping[str, str]) -> CatalogUri:
    authority, _, path = body.partition("/")
    if "@" in path:
        raise _stray_at()
    if "/" in path:
        # The authority is read first all the same: a broken one is the likelier cause of a slash too many.
        _authority(authority, env)
        raise _wrong("one database name and nothing else follows the host; a schema is ?schema=", part="database")
    place = _authority(authority, env)
    database = _text(path, "database", env)
    options = _options(query, _POSTGRES_OPTIONS, env)
    schema, table = options.pop("schema", "public"), options.pop("table", None)
    return _with_options(replace(place, database=database, schema=schema, table=table), options)


def _deltasql_postgres(body: str, query: str, env: Mapping[str, str]) -> CatalogUri:
    first, _, rest = body.partition("/")
    authority, path = (first, rest) if "@" in first else ("", body)
    if "@" in path:
        raise _stray_at()
    if not authority and ":" in first:
        raise _wrong("a host or password stands without its `@`; without a user, write @host:port", part="host")
    place = _authority(authority, env)
    segments = path.split("/")
    if len(segments) < 2:
        raise _wrong("`deltasql://postgres/` needs a database and a schema, as db/schema", part="schema")
    if len(segments) > 3:
        raise _wrong("more than db/schema/table is given; a table is one part, such as sales.orders", part="table")
    parts = [_text(raw, part, env) for raw, part in zip(segments, ("database", "schema", "table"), strict=False)]
    options = _options(query, _POSTGRES_OPTIONS, env)
    for name in ("schema", "table")[: len(parts) - 1]:
        if name in options:
            raise _wrong(f"its {name} is given twice, in the path and as an option", part=name)
    table = parts[2] if len(parts) == 3 else options.pop("table", None)
    return _with_options(replace(place, database=parts[0], schema=parts[1], table=table), options)


def _authority(raw: str, env: Mapping[str, str]) -> CatalogUri:
    """User, password, host and port of `[user[:password]@][host][:port]`, as a place whose database is still open."""
    userinfo, _, hostport = raw.rpartition("@")
    raw_user, colon, raw_password = userinfo.partition(":")
    if colon and not raw_user:
        raise _wrong("a password stands without a user", part="user")
    if hostport.startswith("["):
        bracketed = _BRACKETED.fullmatch(hostport)
        if bracketed is None or (bracketed["port"] and not bracketed["colon"]):
            raise _wrong("the brackets around its host do not match", part="host")
        raw_host, colon, raw_port = bracketed["host"], bracketed["colon"], bracketed["port"]
    else:
        raw_host, colon, raw_port = hostport.partition(":")
    port = _text(raw_port, "port", env) if colon else "5432"
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise _wrong("its port is not a number from 1 to 65535 (an IPv6 host stands in brackets)", part="port")
    host = _text(raw_host, "host", env) if raw_host or hostport.startswith("[") else "localhost"
    if (":" in host or hostport.startswith("[")) and not _is_ipv6(host):
        raise _wrong("its host has a colon or brackets and is no IPv6 address", part="host")
    # A host may be a socket's directory, as libpq has it; any other delimiter in it is a mistake.
    if not host.startswith("/") and re.search(r"[\s/?#@\[\]]", host):
        raise _wrong("its host has characters that no host has", part="host")
    password = _text(raw_password, "password", env, may_be_empty=True)
    return CatalogUri(
        engine="postgres",
        database="",
        host=host,
        port=int(port),
        user=_text(raw_user, "user", env) if raw_user else None,
        password=Secret(password) if password else None,
    )


def _file(engine: Engine, raw_path: str, query: str, env: Mapping[str, str]) -> CatalogUri:
    if "#" in raw_path + query:
        raise _wrong("`#` must be written as %23", part="path")
    path = _text(raw_path, "path", env)
    if path.startswith(":memory:"):
        raise _wrong("a catalog must outlive its connection, so `:memory:` is not one", part="path")
    if path.rpartition("/")[2] in {"", ".", ".."}:
        raise _wrong("its path is a directory, not a file", part="path")
    options = _options(query, _FILE_OPTIONS, env)
    table = options.pop("table", None)
    return _with_options(CatalogUri(engine=engine, database=_absolute(path), table=table), options)


def _absolute(path: str) -> str:
    """The path from the root, fixed now, so that a later `chdir` does not move the catalog."""
    steps = [step for step in path.split("/") if step not in {"", "."}]
    base = [] if path.startswith("/") else [step for step in os.getcwd().split("/") if step]
    # Only leading `..` are resolved: behind a symlink an inner one means something else than its text.
    while steps[0] == ".." and len(steps) > 1:
        del steps[0], base[-1:]
    return "/" + "/".join(base + steps)


def _options(query: str, known: frozenset[str], env: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in query.split("&") if query else ():
        name, equals, raw = item.partition("=")
        # A name that does not look like one may be a piece of a password with a raw `?` or `&` in it.
        shown = f"option `{name}`" if _PLAIN_NAME.fullmatch(name) else "an option whose name is not a plain word"
        if name not in known:
            raise _wrong(f"{shown} is not known; known are {', '.join(sorted(known))}", part="option")
        if name in found:
            raise _wrong(f"{shown} is given twice", part="option")
        if not equals:
            raise _wrong(f"{shown} has no value", part="option")
        found[name] = _text(raw, shown, env)
        if name in _COUNTS:
            if not re.fullmatch(r"0*[1-9][0-9]{0,8}", found[name]):
                raise _wrong(f"{shown} is not a positive whole number", part="option")
            found[name] = str(int(found[name]))
    return found


def _with_options(place: CatalogUri, found: Mapping[str, str]) -> CatalogUri:
    """The options shared out between driver and settings: a driver refuses what it does not know."""
    overrides = {name: value for name, value in found.items() if name in _COUNTS}
    return replace(place, options={key: found[key] for key in found.keys() - overrides.keys()}, overrides=overrides)


def _text(raw: str, part: str, env: Mapping[str, str], *, may_be_empty: bool = False) -> str:
    """One part, decoded: `%xx` outside variables, and the variables' values as they are."""
    pieces = _VARIABLE.split(raw)
    for index, piece in enumerate(pieces):
        pieces[index] = _lookup(piece, env) if index % 2 else _unescaped(piece, part)
    return _checked("".join(pieces), part, may_be_empty=may_be_empty)


def _unescaped(piece: str, part: str) -> str:
    if _BAD_ESCAPE.search(piece):
        raise _wrong(f"`%` without two hexadecimal digits in its {part}; write a percent sign as %25", part=part)
    # Replaced and not strict: a UnicodeDecodeError would carry the text into the traceback.
    decoded = unquote(piece, errors="surrogateescape")
    if any(0xDC80 <= ord(char) <= 0xDCFF for char in decoded):
        raise _wrong(f"the %xx in its {part} are not UTF-8", part=part)
    return decoded


def _lookup(name: str, env: Mapping[str, str]) -> str:
    if name not in env:
        raise UsageError(
            f"The catalog URI takes ${{{name}}} from the environment, where it is not set.",
            hint=f"Set {name}, or write a literal `${{` as %24%7B. {_FORMS}",
            variable=name,
        )
    return env[name]


def _checked(text: str, part: str, *, may_be_empty: bool = False) -> str:
    if not text and not may_be_empty:
        raise _wrong(f"its {part} is empty", part=part)
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        raise _wrong(f"there is a control character or invalid UTF-8 in its {part}", part=part)
    return text


def _check_raw(text: str) -> None:
    """What must hold for the whole text, before it is cut."""
    _checked(text, "text")
    if "${" in _VARIABLE.sub("", text):
        raise _wrong(
            "a `${` is not closed, or what it holds is no variable's name; a literal `${` is %24%7B", part="text"
        )


def _check_delimiters(body: str, query: str) -> None:
    """In a URI that may hold a password a stray delimiter is refused: guessing could show half of it."""
    whole = f"{body}?{query}"
    if whole.count("@") > 1 or "@" in query:
        raise _stray_at()
    if "#" in whole or any(char.isspace() for char in whole):
        raise _wrong("`#` must be written as %23 and a space as %20", part="text")


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _stray_at() -> UsageError:
    return _wrong(
        "an `@` stands where none belongs; in a user, password or option write @ as %40, / as %2F and ? as %3F",
        part="user or password",
    )


def _wrong(problem: str, *, part: str) -> UsageError:
    return UsageError(f"The catalog URI is wrong: {problem}.", hint=_FORMS, part=part)
