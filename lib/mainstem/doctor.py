"""What may be wrong with this machine, these settings or this catalog, each with its next step. Starts no JVM."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mainstem import migrations, session
from mainstem.engines import open_engine
from mainstem.errors import EngineBusy, ForeignCommit, MainstemError, SchemaDrift, UnsupportedFeature, UsageError
from mainstem.foreign import resolve_foreign
from mainstem.publish import lags
from mainstem.settings import Settings
from mainstem.store import Store
from mainstem.uri import parse_uri

_JAVA = 17
_LATER = EngineBusy.exit_code


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `exit_code` is 0 where it is well."""

    name: str
    said: str
    hint: str = ""
    exit_code: int = 0

    @property
    def mark(self) -> str:
        return "✗" if self.exit_code else "✓"


def examine(settings: Settings) -> list[Check]:
    """Look at everything; a check that fails does not stop the next one."""
    return [*_one("java", _java), *_one("spark", _spark), *_catalog(settings)]


def _one(name: str, look: Callable[[], str]) -> Iterator[Check]:
    try:
        yield Check(name, look())
    except MainstemError as error:
        yield Check(name, error.message, error.hint or "", error.exit_code)


def _java() -> str:
    """The version that Spark would start, read from Java's own `release` file rather than by starting it."""
    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else Path(shutil.which("java") or "")
    if not program.is_file():
        raise UnsupportedFeature(
            "no Java was found.", hint=f"Install Java {_JAVA} or newer, such as openjdk-17-jre-headless."
        )
    release = program.resolve().parent.parent / "release"
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)[^"]*"', release.read_text()) if release.is_file() else None
    if found and int(found[1]) < _JAVA:
        raise UnsupportedFeature(f"Java {found[1]} is too old.", hint=f"Install Java {_JAVA} or newer.")
    return f"Java {found[1]}" if found else "Java of unknown version"


def _spark() -> str:
    try:
        spark, delta = version("pyspark"), version("delta-spark")
    except PackageNotFoundError as error:
        raise UnsupportedFeature(
            f"{error.name} is not installed; all that needs no DataFrame works.", hint="pip install pyspark delta-spark"
        ) from error
    jar = re.search(r"io\.delta:delta-spark_[\d.]+_[\d.]+:([\w.]+)", session.defaults().get("spark.jars.packages", ""))
    if jar and jar[1] != delta:
        raise UnsupportedFeature(
            f"delta-spark {delta} is installed, but spark-defaults.conf loads the jar of {jar[1]}.",
            hint=f"pip install delta-spark=={jar[1]}",
        )
    return f"pyspark {spark}, delta-spark {delta}"


def _publishing(store: Store, settings: Settings) -> Iterator[Check]:
    """What the logs lack that the catalog has: a failure at once, a mere wait when it is too long."""
    found = lags(store)
    late = False
    for lag in found:
        said = f"{lag.versions} versions of {lag.name} wait since {lag.seconds:.0f} s"
        hint = f"mainstem publish {lag.name}"
        if lag.foreign_version is not None:
            continue  # which is told by itself
        if lag.status == "FAILED":
            yield Check("publishing", f"{said}; attempt {lag.attempts} failed: {lag.last_error}", hint, _LATER)
        elif lag.seconds > settings.mirror_lag:
            yield Check("publishing", f"{said}, more than mirror_lag, {settings.mirror_lag:g} s", hint, _LATER)
        else:
            continue
        late = True
    if not late:
        yield Check("publishing", f"{len(found)} tables have versions that their logs lack, none for too long")


def _foreign(store: Store, names: Sequence[str]) -> Iterator[Check]:
    """Commits of outside engines in the logs of tables that the catalog leads."""
    well = True
    for name in names:
        try:
            found = resolve_foreign(store, name).foreign
        except MainstemError as error:
            well = False
            yield Check("logs", error.message, error.hint or "", error.exit_code)
            continue
        if found:
            well = False
            versions = f"{found[0].version}" if len(found) == 1 else f"{found[0].version} to {found[-1].version}"
            said = f"{found[0].committer or 'an outside engine'} has written version {versions} of {name}"
            yield Check("logs", said, f"mainstem resolve {name}", ForeignCommit.exit_code)
    if well:
        yield Check("logs", f"no foreign commit in those of {len(names)} tables that the catalog leads")


def _catalog(settings: Settings) -> Iterator[Check]:
    if not settings.catalog:
        yield Check("catalog", "none was named", "Give --catalog URI, or set MAINSTEM_CATALOG.", UsageError.exit_code)
        return
    try:
        uri = parse_uri(settings.catalog)
        engine = open_engine(uri, settings)
        try:
            start = time.perf_counter()
            found = migrations.current(engine)
            milliseconds = (time.perf_counter() - start) * 1000
            yield Check("catalog", f"{uri} answers in {milliseconds:.0f} ms")
            wanted = len(migrations.known(engine))
            if found != wanted:
                hint = f"mainstem migrate --catalog '{uri}'"
                yield Check("schema", f"at migration {found} of {wanted}", hint, SchemaDrift.exit_code)
                return
            yield Check("schema", f"at migration {found}, as this library needs")
            store = Store(engine)
            tables = store.rows("tables_all")
            yield Check("tables", f"{len(tables)} in the catalog")
            yield from _publishing(store, settings)
            yield from _foreign(store, [row["name"] for row in tables if row["authority"] == "catalog"])
        finally:
            engine.close()
    except MainstemError as error:
        yield Check("catalog", error.message, error.hint or "", error.exit_code)
