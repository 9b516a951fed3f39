"""What can be set, and where each value came from: flag, environment, Spark's configuration, ini file, default."""

from __future__ import annotations

import configparser
import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar, overload

import orjson

from mainstem.errors import UsageError, mask
from mainstem.uri import CatalogUri, shown_uri

T = TypeVar("T")
SparkConf = Mapping[str, str] | Callable[[str], str | None]

DEFAULT_CONF: Final = Path("conf/mainstem.ini")
_SECTION: Final = "mainstem"
_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_WORDS: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How a text becomes a value. `read` gives None for a text that is not of the `form`."""

    form: str
    read: Callable[[str], tuple[T] | None]


def _whole(text: str, *, least: int) -> tuple[int] | None:
    # Nine digits are enough for any limit, and no text can be made to cost time.
    return (int(text),) if re.fullmatch(r"[0-9]{1,9}", text) and int(text) >= least else None


def _seconds(text: str) -> tuple[float] | None:
    plain = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,20})?(e-[0-9]{1,2})?", text)
    return (float(text),) if plain else None


def _is_object(text: str) -> bool:
    try:
        return not text or isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


COUNT: Final[Kind[int]] = Kind("a whole number from 1", lambda text: _whole(text, least=1))
WHOLE: Final[Kind[int]] = Kind("a whole number from 0", lambda text: _whole(text, least=0))
SECONDS: Final[Kind[float]] = Kind("a number of seconds from 0, such as 2.5", _seconds)
TEXT: Final[Kind[str]] = Kind("a text", lambda text: (text,))
BOOL: Final[Kind[bool]] = Kind(
    "true or false", lambda text: (_WORDS[text.lower()],) if text.lower() in _WORDS else None
)
_STORE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def _place(text: str) -> tuple[Path | str | None] | None:
    if "\0" in text:
        return None
    return (text.rstrip("/"),) if _STORE.match(text) else (Path(text) if text else None,)


PLACE: Final[Kind[Path | str | None]] = Kind("a path, a URI of an object store, or empty", _place)
MOUNT: Final[Kind[str]] = Kind(
    "viewfs or absolute", lambda text: (text.lower(),) if text.lower() in ("viewfs", "absolute") else None
)
OBJECT: Final[Kind[str]] = Kind("a JSON object, or empty", lambda text: (text,) if _is_object(text) else None)
LEVEL: Final[Kind[str]] = Kind(
    f"one of {', '.join(_LEVELS)}", lambda text: (text.upper(),) if text.upper() in _LEVELS else None
)


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One line of the table below. As an attribute of a `Settings` it is the value, typed by its kind."""

    name: str
    kind: Kind[T]
    default: T
    help: str
    secret: bool = False

    @overload
    def __get__(self, owner: None, of: type[Any]) -> Self: ...
    @overload
    def __get__(self, owner: Settings, of: type[Any]) -> T: ...
    def __get__(self, owner: Settings | None, of: type[Any]) -> Self | T:
        if owner is None:
            return self
        value: T = owner[self.name]
        return value

    def __set__(self, owner: Settings, value: T) -> None:
        raise AttributeError(f"Settings do not change; `{self.name}` is set where they are loaded.")

    @property
    def variable(self) -> str:
        """The environment's name for it."""
        return f"MAINSTEM_{self.name.upper()}"

    @property
    def spark_key(self) -> str:
        """Spark's name for it."""
        return f"spark.mainstem.{self.name}"

    def shown(self, value: T) -> str:
        """The value as text that may be logged."""
        if value is None or value == "":
            return "(not set)"
        return shown_uri(str(value)) if self.secret else mask(str(value))

    def read(self, given: object, source: str) -> T:
        """The value that `given` stands for, or a `UsageError` that says where it was given and what is allowed."""
        text = _as_text(given)
        value = None if text is None else self.kind.read(text)
        if value is None:
            # Of a secret not even a piece is shown, and of anything else no more than helps to find it.
            shown = "***" if self.secret else f"{mask(str(given))[:60]!r}"
            raise UsageError(
                f"The setting {self.name} is {shown} (from {source}), which is not {self.kind.form}.",
                hint=f"Give {self.name} as {self.kind.form}: {self.help}.",
                setting=self.name,
                source=source,
            )
        return value[0]


class Explained(NamedTuple):
    """One row of `Settings.explain()`."""

    name: str
    shown: str
    source: str
    help: str


class _Given(NamedTuple):
    value: Any
    source: str


class Settings:
    """Every setting with its value and source. Never changes; `for_uri` gives another one.

    Read as `settings.pool_size` or `settings["pool_size"]`. A new setting is one line here and one in
    `conf/mainstem.ini`.
    """

    __slots__ = ("_given",)

    catalog = Setting("catalog", TEXT, "", "where the catalog is, as a URI; a password best as ${NAME}", secret=True)
    connect_timeout = Setting("connect_timeout", COUNT, 10, "seconds to wait for a connection")
    pool_size = Setting("pool_size", COUNT, 4, "connections kept open to one catalog")
    busy_timeout = Setting("busy_timeout", SECONDS, 30.0, "seconds to wait for a lock or for a free connection")
    reconnect_attempts = Setting("reconnect_attempts", WHOLE, 5, "tries to reach the database after a lost connection")
    reconnect_max_wait = Setting("reconnect_max_wait", SECONDS, 5.0, "longest wait between two tries, in seconds")
    fetch_size = Setting("fetch_size", COUNT, 10_000, "rows fetched from the database at once")
    jdbc_slices = Setting("jdbc_slices", WHOLE, 0, "tasks that read a table over JDBC; 0 is Spark's own number")
    driver_files = Setting("driver_files", WHOLE, 1_000_000, "live files up to which files() reads on the driver")
    image_files = Setting("image_files", WHOLE, 10_000, "live files from which on a table has an image; 0: none has")
    import_bytes = Setting("import_bytes", WHOLE, 2**29, "bytes of log up to which an import reads on the driver")
    mount_files = Setting(
        "mount_files", WHOLE, 10_000, "live files beyond which a merge asks its source for bounds before it mounts"
    )
    mount = Setting(
        "mount",
        MOUNT,
        "viewfs",
        "how a log is laid over a table: viewfs, or absolute paths where Hadoop's viewfs is not to be had",
    )
    publish_on_commit = Setting("publish_on_commit", BOOL, True, "whether a commit is published right after it")
    publish_attempts = Setting("publish_attempts", COUNT, 3, "tries to write a file of the log before it is a failure")
    publish_backoff = Setting(
        "publish_backoff", SECONDS, 600.0, "longest wait before a failed table is published again by --all"
    )
    max_unpublished = Setting("max_unpublished", WHOLE, 1000, "versions that may wait for publishing; 0 is no limit")
    mirror_lag = Setting("mirror_lag", SECONDS, 300.0, "seconds that a version may wait before doctor complains")
    checkpoint_files = Setting(
        "checkpoint_files", WHOLE, 5_000_000, "files up to which a checkpoint is written on the driver"
    )
    validate_files = Setting(
        "validate_files", WHOLE, 100_000, "live files up to which validation works on the driver, also with a session"
    )
    commit_info = Setting("commit_info", OBJECT, "", "what the commitInfo of every commit says too, as a JSON object")
    log_level = Setting("log_level", LEVEL, "WARNING", "least level that is logged")
    scratch = Setting(
        "scratch", PLACE, None, "folder for temporary files and mounted logs, or a URI; empty is the system's own"
    )

    @property
    def local_scratch(self) -> Path | None:
        """The folder for temporary files of this process: an object store is for mounted logs alone."""
        return self.scratch if isinstance(self.scratch, Path) else None

    def __init__(self, given: Mapping[str, _Given]) -> None:
        self._given = {name: given.get(name, _Given(each.default, "default")) for name, each in SETTINGS.items()}

    def __getitem__(self, name: str) -> Any:
        return self._given[_known(name)].value

    def source(self, name: str) -> str:
        """Where the value came from: `flag`, a variable, a Spark key, a file, `uri` or `default`."""
        return self._given[_known(name)].source

    def explain(self) -> list[Explained]:
        """Every setting in the order of the table, secrets masked."""
        return [
            Explained(each.name, each.shown(self[each.name]), self.source(each.name), each.help)
            for each in SETTINGS.values()
        ]

    def for_uri(self, uri: CatalogUri) -> Settings:
        """These settings with what the URI itself sets (`?pool_size=…`), which wins for that catalog."""
        over = {name: _Given(SETTINGS[name].read(value, "uri"), "uri") for name, value in uri.overrides.items()}
        return Settings({**self._given, **over})

    def __eq__(self, other: object) -> bool:
        return self._given == other._given if isinstance(other, Settings) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._given.items()))

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{row.name}={row.shown}' for row in self.explain())})"


SETTINGS: Final[Mapping[str, Setting[Any]]] = {
    each.name: each for each in vars(Settings).values() if isinstance(each, Setting)
}


def load_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    spark_conf: SparkConf | None = None,
    conf_path: Path | None = None,
) -> Settings:
    """Each setting from the first place that gives it: flag, `MAINSTEM_*`, `spark.mainstem.*`, ini file, default.

    A flag that is None was not given; elsewhere an empty text was not given either. The file is `conf_path`, else
    the one that `MAINSTEM_CONF` names, else `conf/mainstem.ini` if there is one. Of each
    setting only the value that wins is checked.
    """
    env = os.environ if environ is None else environ
    flags = {name: value for name, value in (flags or {}).items() if _known(name) and value is not None}
    file, in_file = _read_conf(conf_path, env)
    from_spark = _lookup_in(spark_conf)
    given: dict[str, _Given] = {}
    for name, setting in SETTINGS.items():
        places: tuple[tuple[object, str], ...] = (
            (env.get(setting.variable) or None, setting.variable),
            (from_spark(setting.spark_key) or None, setting.spark_key),
            (in_file.get(name) or None, file),
        )
        if name in flags:
            places = ((flags[name], "flag"),)
        for value, source in places:
            if value is not None:
                given[name] = _Given(setting.read(value, source), source)
                break
    return Settings(given)


def _lookup_in(spark_conf: SparkConf | None) -> Callable[[str], str | None]:
    if spark_conf is None:
        return lambda key: None
    return spark_conf.get if isinstance(spark_conf, Mapping) else spark_conf


def _as_text(given: object) -> str | None:
    """What was given as the text that a file would hold; None for what no file could."""
    return str(given).strip() if isinstance(given, str | int | float | PurePath) else None


def _known(name: str) -> str:
    if name not in SETTINGS:
        raise UsageError(f"There is no setting `{mask(name)}`.", hint=_nearest(name, SETTINGS))
    return name


def _nearest(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:60], list(names), n=1)
    return f"Did you mean {near[0]}?" if near else f"The settings are {', '.join(names)}."


def _read_conf(conf_path: Path | None, env: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """The file's name and what its section `[mainstem]` says; nothing if no file was named and none is there."""
    chosen = conf_path or env.get("MAINSTEM_CONF")
    named = Path(chosen) if chosen else None
    path = named or DEFAULT_CONF
    if named is None and not path.is_file():
        return str(path), {}
    # No interpolation and no inline comments: `%`, `$` and `#` belong to URIs.
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), default_section="")
    if problem := _parse(parser, path):
        raise UsageError(
            f"The settings file {path} cannot be read: {problem}.",
            hint=f"It is an ini file with a section [{_SECTION}] and lines `name = value`; see conf/mainstem.ini.",
            file=str(path),
        )
    for name in parser[_SECTION]:
        if name not in SETTINGS:
            raise UsageError(
                f"The settings file {path} sets `{mask(name)[:60]}`, which is no setting.",
                hint=_nearest(name, SETTINGS),
                file=str(path),
            )
    return str(path), parser[_SECTION]


def _parse(parser: configparser.ConfigParser, path: Path) -> str | None:
    """What is wrong with the file, or None. The parser's own errors quote the line, so they end here."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            parser.read_file(lines)
    except (configparser.DuplicateOptionError, configparser.DuplicateSectionError) as error:
        return f"line {error.lineno} repeats what an earlier line gave"
    except configparser.MissingSectionHeaderError as error:
        return f"line {error.lineno} comes before any section"
    except configparser.ParsingError as error:
        return f"line {error.errors[0][0]} is not `name = value`"
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except OSError as error:
        return error.strerror or "it cannot be opened"
    return None if parser.has_section(_SECTION) else f"it has no section [{_SECTION}]"
