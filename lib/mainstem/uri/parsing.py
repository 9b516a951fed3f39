"""Every spelling of a catalog URI, read into one value.

The text is cut at its delimiters first and each part is decoded alone, so neither `%xx` nor the value of a
`${NAME}` can move a boundary.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from mainstem.errors import UsageError, mask
from mainstem.uri.parts import VARIABLE, check_delimiters, check_raw, decoded, lookup, stray_at, wrong
from mainstem.uri.place import CatalogUri, Engine, Secret

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
_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>/{0,2})(?P<rest>.*)", re.DOTALL)
_BRACKETED: Final = re.compile(r"\[(?P<host>[^\[\]]*)\](?P<colon>:?)(?P<port>.*)", re.DOTALL)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


def parse_uri(text: str, *, environ: Mapping[str, str] | None = None) -> CatalogUri:
    """The place that `text` names, or a `UsageError` that says what is wrong with it and which forms are right.

    `${NAME}` comes from `environ` (`os.environ` when left out), literally: its value is not decoded again.
    """
    env = os.environ if environ is None else environ
    if whole := VARIABLE.fullmatch(text):
        text = lookup(whole[1], env)
        if not text:
            raise wrong(f"the environment's {whole[1]} is empty", part="text")
    check_raw(text)
    match = _SCHEME.fullmatch(text)
    if match is None or (match["scheme"].lower() not in {*_ENGINES, "deltasql"} and match["slashes"] != "//"):
        raise wrong("it has no scheme such as postgresql:// or sqlite:///", part="scheme")
    scheme = match["scheme"].lower()
    if scheme not in {*_ENGINES, "deltasql"}:
        raise wrong(f"its scheme `{scheme}` is not known", part="scheme")
    if match["slashes"] != "//":
        # `sqlite::memory:` and `postgres:/user…` both end here; what follows is not looked at.
        raise wrong(f"`{scheme}:` is not followed by two slashes", part="scheme")
    body, _, query = match["rest"].partition("?")
    if scheme == "deltasql":
        name, _, body = body.partition("/")
        engine = _ENGINES.get(name.lower())
        if engine is None:
            raise wrong("`deltasql://` is not followed by postgres/, sqlite/ or duckdb/", part="engine")
        if engine == "postgres":
            check_delimiters(body, query)
            return _deltasql_postgres(body, query, env)
        return _file(engine, body, query, env)
    if _ENGINES[scheme] == "postgres":
        check_delimiters(body, query)
        return _postgresql(body, query, env)
    authority, _, path = body.partition("/")
    if authority:
        raise wrong(
            f"`{scheme}://` takes three slashes before a relative path and four before an absolute one", part="path"
        )
    return _file(_ENGINES[scheme], path, query, env)


def shown_uri(text: str) -> str:
    """The URI as it was written, `${NAME}` unexpanded, its password masked; `***` alone when it is malformed."""
    if VARIABLE.fullmatch(text):
        return text
    try:
        # Any variable stands for a `1`: that is a valid host, port, name and path, so only the structure is judged.
        parse_uri(text, environ=dict.fromkeys(VARIABLE.findall(text), "1"))
    except UsageError:
        return "***"
    return mask(text)


def holds_password(text: str) -> bool:
    """Whether the text itself has a password in it, and not only the name of a variable that has it."""
    if VARIABLE.fullmatch(text):
        return False
    # Each variable stands for a number, which any part may be; a password that is one variable follows it.
    for value in ("40961", "40962"):
        found = parse_uri(text, environ=dict.fromkeys(VARIABLE.findall(text), value)).password
        if found is not None and found.reveal() != value:
            return True
    return False


def _postgresql(body: str, query: str, env: Mapping[str, str]) -> CatalogUri:
    authority, _, path = body.partition("/")
    if "@" in path:
        raise stray_at()
    if "/" in path:
        # The authority is read first all the same: a broken one is the likelier cause of a slash too many.
        _authority(authority, env)
        raise wrong("one database name and nothing else follows the host; a schema is ?schema=", part="database")
    place = _authority(authority, env)
    database = decoded(path, "database", env)
    options = _options(query, _POSTGRES_OPTIONS, env)
    schema, table = options.pop("schema", "public"), options.pop("table", None)
    return _with_options(replace(place, database=database, schema=schema, table=table), options)


def _deltasql_postgres(body: str, query: str, env: Mapping[str, str]) -> CatalogUri:
    first, _, rest = body.partition("/")
    authority, path = (first, rest) if "@" in first else ("", body)
    if "@" in path:
        raise stray_at()
    if not authority and ":" in first:
        raise wrong("a host or password stands without its `@`; without a user, write @host:port", part="host")
    place = _authority(authority, env)
    segments = path.split("/")
    if len(segments) < 2:
        raise wrong("`deltasql://postgres/` needs a database and a schema, as db/schema", part="schema")
    if len(segments) > 3:
        raise wrong("more than db/schema/table is given; a table is one part, such as sales.orders", part="table")
    parts = [decoded(raw, part, env) for raw, part in zip(segments, ("database", "schema", "table"), strict=False)]
    options = _options(query, _POSTGRES_OPTIONS, env)
    for name in ("schema", "table")[: len(parts) - 1]:
        if name in options:
            raise wrong(f"its {name} is given twice, in the path and as an option", part=name)
    table = parts[2] if len(parts) == 3 else options.pop("table", None)
    return _with_options(replace(place, database=parts[0], schema=parts[1], table=table), options)


def _authority(raw: str, env: Mapping[str, str]) -> CatalogUri:
    """User, password, host and port of `[user[:password]@][host][:port]`, as a place whose database is still open."""
    userinfo, _, hostport = raw.rpartition("@")
    raw_user, colon, raw_password = userinfo.partition(":")
    if colon and not raw_user:
        raise wrong("a password stands without a user", part="user")
    if hostport.startswith("["):
        bracketed = _BRACKETED.fullmatch(hostport)
        if bracketed is None or (bracketed["port"] and not bracketed["colon"]):
            raise wrong("the brackets around its host do not match", part="host")
        raw_host, colon, raw_port = bracketed["host"], bracketed["colon"], bracketed["port"]
    else:
        raw_host, colon, raw_port = hostport.partition(":")
    port = decoded(raw_port, "port", env) if colon else "5432"
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise wrong("its port is not a number from 1 to 65535 (an IPv6 host stands in brackets)", part="port")
    host = decoded(raw_host, "host", env) if raw_host or hostport.startswith("[") else "localhost"
    if (":" in host or hostport.startswith("[")) and not _is_ipv6(host):
        raise wrong("its host has a colon or brackets and is no IPv6 address", part="host")
    # A host may be a socket's directory, as libpq has it; any other delimiter in it is a mistake.
    if not host.startswith("/") and re.search(r"[\s/?#@\[\]]", host):
        raise wrong("its host has characters that no host has", part="host")
    password = decoded(raw_password, "password", env, may_be_empty=True)
    return CatalogUri(
        engine="postgres",
        database="",
        host=host,
        port=int(port),
        user=decoded(raw_user, "user", env) if raw_user else None,
        password=Secret(password) if password else None,
    )


def _file(engine: Engine, raw_path: str, query: str, env: Mapping[str, str]) -> CatalogUri:
    if "#" in raw_path + query:
        raise wrong("`#` must be written as %23", part="path")
    path = decoded(raw_path, "path", env)
    if path.startswith(":memory:"):
        raise wrong("a catalog must outlive its connection, so `:memory:` is not one", part="path")
    if path.rpartition("/")[2] in {"", ".", ".."}:
        raise wrong("its path is a directory, not a file", part="path")
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
            raise wrong(f"{shown} is not known; known are {', '.join(sorted(known))}", part="option")
        if name in found:
            raise wrong(f"{shown} is given twice", part="option")
        if not equals:
            raise wrong(f"{shown} has no value", part="option")
        found[name] = decoded(raw, shown, env)
        if name in _COUNTS:
            if not re.fullmatch(r"0*[1-9][0-9]{0,8}", found[name]):
                raise wrong(f"{shown} is not a positive whole number", part="option")
            found[name] = str(int(found[name]))
    return found


def _with_options(place: CatalogUri, found: Mapping[str, str]) -> CatalogUri:
    """The options shared out between driver and settings: a driver refuses what it does not know."""
    overrides = {name: value for name, value in found.items() if name in _COUNTS}
    return replace(place, options={key: found[key] for key in found.keys() - overrides.keys()}, overrides=overrides)


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True
