"""The schema of a catalog, step by step: numbered SQL files, each recorded with its sha256 in `dl_migrations`."""

from __future__ import annotations

import getpass
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property

from mainstem import observe, sqltext
from mainstem.engines import Engine, EngineError, Outcome
from mainstem.engines.base import Connection
from mainstem.errors import MainstemError, SchemaDrift, UsageError

_FILE = re.compile(r"(?P<number>\d{4})_(?P<name>\w+)\.sql")
LEDGER = "dl_migrations"


@dataclass(frozen=True)
class Migration:
    """One step: `up` leads to `number`, `down` back to the step before it."""

    number: int
    name: str
    up: str
    down: str

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.up.encode()).hexdigest()

    @property
    def label(self) -> str:
        return f"{self.number:04d}_{self.name}"


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a call of `migrate` did: the steps it took, and where the catalog stands now."""

    before: int
    after: int
    applied: tuple[str, ...]
    reverted: tuple[str, ...]


def known(engine: Engine) -> list[Migration]:
    """The migrations that this library ships for an engine, without gaps from 1 on."""
    return list(_shipped(engine.name))


@cache
def _shipped(engine: str) -> Sequence[Migration]:
    folder = sqltext.root().joinpath(engine)
    found = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if match := _FILE.fullmatch(file.name):
            down = folder.joinpath(f"{match['number']}_{match['name']}.down.sql")
            texts = file.read_text(encoding="utf-8"), down.read_text(encoding="utf-8")
            found.append(Migration(int(match["number"]), match["name"], *texts))
    if [step.number for step in found] != list(range(1, len(found) + 1)):
        raise SchemaDrift(f"the migrations of {engine} have a gap: {[step.label for step in found]}")
    return found


def current(engine: Engine) -> int:
    """The number of the last migration that the catalog has seen, after checking that it is the one we ship; 0 if none.

    Raises SchemaDrift when the catalog is newer than this library, or a migration was changed after it ran.
    """
    with engine.reading() as connection:
        return _checked(engine, connection, known(engine))


def require_current(engine: Engine) -> None:
    """Raise SchemaDrift, with the next step in words, unless the catalog's schema is exactly ours."""
    found, wanted = current(engine), len(known(engine))
    if found != wanted:
        state = "has no schema yet" if found == 0 else f"is at migration {found}, this library needs {wanted}"
        raise SchemaDrift(f"the catalog {engine.uri} {state}.", hint=f"Run: mainstem migrate --catalog '{engine.uri}'")


def migrate(
    engine: Engine,
    *,
    to: int | None = None,
    allow_data_loss: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Migrated:
    """Bring the catalog to migration `to` (the newest, if none is given), one transaction a step.

    Going down drops tables. It is refused with a count of the rows that would be lost, unless `allow_data_loss`
    is set or there are none. A step that fails leaves nothing of itself. Two processes at once take turns.
    """
    steps = known(engine)
    target = len(steps) if to is None else to
    if not 0 <= target <= len(steps):
        raise UsageError(f"there is no migration {target}.", hint=f"This library knows 0 (nothing) to {len(steps)}.")
    before = current(engine)
    applied: list[str] = []
    reverted: list[str] = []
    with observe.span("catalog.migrate", engine=engine.name, before=before, target=target):
        if target < before and not allow_data_loss:
            _refuse_loss(engine, steps[target:before])
        while True:
            with _step(engine) as connection:
                at = _checked(engine, connection, steps)
                if at == target:
                    break
                if at < target:
                    step = steps[at]
                    _apply(engine, connection, step)
                    applied.append(step.label)
                else:
                    step = steps[at - 1]
                    _revert(engine, connection, step)
                    reverted.append(step.label)
            observe.event("migration.run", step=step.label, direction="up" if at < target else "down")
            report(f"{'applied' if at < target else 'reverted'} {step.label}")
    return Migrated(before, target, tuple(applied), tuple(reverted))


@contextmanager
def _step(engine: Engine) -> Iterator[Connection]:
    with engine.writing() as connection:
        engine.migration_lock(connection)
        yield connection


def _checked(engine: Engine, connection: Connection, steps: list[Migration]) -> int:
    if not engine.has_table(connection, LEDGER):
        return 0
    rows = engine.execute(connection, sqltext.queries()["migrations_seen"], {}).fetchall()
    if len(rows) > len(steps):
        newest = f"{rows[-1][0]:04d}_{rows[-1][1]}"
        raise SchemaDrift(
            f"the catalog {engine.uri} is at migration {newest}, newer than this library knows (up to {len(steps)}).",
            hint="Upgrade mainstem here, or let the newer version run: mainstem migrate --to "
            f"{len(steps)} (which may lose data).",
        )
    for (number, name, sha256), step in zip(rows, steps, strict=False):
        if (number, name) != (step.number, step.name) or sha256 != step.sha256:
            raise SchemaDrift(
                f"migration {number:04d}_{name} of the catalog {engine.uri} is not the one that this library ships "
                f"({step.label}): its file was changed after it had run.",
                hint="Restore the file; a change of the schema is a migration of its own.",
                recorded=sha256,
                shipped=step.sha256,
            )
    return len(rows)


def _apply(engine: Engine, connection: Connection, step: Migration) -> None:
    _run(engine, connection, step, step.up)
    values = {
        "number": step.number,
        "name": step.name,
        "sha256": step.sha256,
        "applied_at": engine.now(connection),
        "applied_by": getpass.getuser(),
    }
    engine.execute(connection, sqltext.queries()["migration_record"], values)


def _revert(engine: Engine, connection: Connection, step: Migration) -> None:
    if LEDGER not in sqltext.dropped_tables(step.down):
        engine.execute(connection, sqltext.queries()["migration_forget"], {"number": step.number})
    _run(engine, connection, step, step.down)


def _run(engine: Engine, connection: Connection, step: Migration, script: str) -> None:
    try:
        with engine.failures():
            for statement in sqltext.statements(script):
                connection.execute(statement)
    except EngineError as error:
        if error.outcome is not Outcome.FATAL:
            raise
        raise MainstemError(
            f"migration {step.label} failed: {error.message}.", hint="Nothing of this migration was kept."
        ) from error


def _refuse_loss(engine: Engine, steps: list[Migration]) -> None:
    lost: dict[str, int] = {}
    with engine.reading() as connection:
        for table in (table for step in steps for table in sqltext.dropped_tables(step.down) if table != LEDGER):
            rows = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  our own file's name
            if rows:
                lost[table] = rows
    if lost:
        listed = ", ".join(f"{rows} rows of {table}" for table, rows in sorted(lost.items()))
        raise UsageError(
            f"going down to migration {steps[0].number - 1} would lose {listed}.",
            hint="Nothing was changed. Repeat with --allow-data-loss if that is meant; no _delta_log is touched.",
            lost=lost,
        )
