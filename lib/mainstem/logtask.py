"""What an executor does with its share of a log: parse it, copy its rows into staging, answer with what matters.

Spark may run a task twice. Each attempt marks its rows with a token of its own and answers with it, so that rows of an
attempt whose answer never reached the driver are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import orjson

from mainstem.deltalog.checkpoints import checkpoint_files
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import CommitTime, ReplayPlan
from mainstem.deltalog.names import Checkpoint, Commit, LogFile
from mainstem.deltalog.protocol import refuse_unreadable
from mainstem.engines import open_engine
from mainstem.errors import CorruptLog, EngineBusy, MainstemError, UnsupportedFeature, UsageError, VersionNotFound
from mainstem.loggedversion import LoggedVersion
from mainstem.model import Protocol
from mainstem.rows import BY_KIND, SHAPES, VERSION_COLUMNS, Shape
from mainstem.settings import Settings
from mainstem.store import Store
from mainstem.uri import CatalogUri
from mainstem.versions import Version, from_millis

if TYPE_CHECKING:
    import pyarrow as pa

ANSWER = "first bigint, attempt string, times binary, actions bigint, error binary"
SHARE = "first bigint, kind string, commits binary"
CHECKED_COLUMNS = ("file_key", "path")
VERSIONS = Shape("dl_table_versions", Version, ("table_id",), VERSION_COLUMNS[1:], lambda version: version.row("")[1:])
STAGED: Sequence[Shape] = (*SHAPES, VERSIONS)
# To open a small file takes as long as to read so many bytes of a large one.
_OPENING = 10_000
_RAISED = {kind.code: kind for kind in (CorruptLog, UnsupportedFeature, UsageError, VersionNotFound, EngineBusy)}


class Share(NamedTuple):
    """A piece of work for one task: the state that the log starts with, a run of commits, or a checkpoint to compare.

    It carries what the driver has listed, so that no executor lists or plans again.
    """

    first: int
    kind: str
    commits: bytes = b"[]"


def shares(plan: ReplayPlan, checked: Checkpoint | None, *, most: int) -> list[Share]:
    """The whole log in pieces of about the same cost: at most so many runs of commits, beside the checkpoints."""
    found = [
        Share(run[0].version, "commits", orjson.dumps([(each.version, *_of_file(each.file)) for each in run]))
        for run in _runs(plan.commits, most)
    ]
    if plan.checkpoint is not None:
        found.insert(0, Share(plan.checkpoint.version, "start"))
    if checked is not None:
        found.append(Share(checked.version, "check"))
    return found


def _of_file(file: LogFile) -> tuple[str, int, int]:
    return file.name, file.size_bytes, file.modified_ms


def _runs(commits: Sequence[Commit], most: int) -> Iterator[list[Commit]]:
    cost = [commit.file.size_bytes + _OPENING for commit in commits]
    enough, held = sum(cost) / most, 0
    run: list[Commit] = []
    for commit, own in zip(commits, cost, strict=True):
        run.append(commit)
        held += own
        if held >= enough:
            yield run
            run, held = [], 0
    if run:
        yield run


def staged_columns(shape: Shape) -> tuple[str, ...]:
    """The columns of a staging table, after the token of the attempt."""
    return shape.columns if shape is VERSIONS else ("version", *shape.columns)


def told_error(told: bytes) -> MainstemError:
    """The error that a task answered with, as it was raised there."""
    found = orjson.loads(told)
    found.pop("retryable", None)
    kind = _RAISED.get(found.pop("code"), MainstemError)
    return kind(found.pop("message"), **found)


@dataclass(frozen=True)
class LogTask:
    """Called by Spark with shares of a log; each is answered by one row. An error of ours is an answer too."""

    location: str
    start: tuple[Commit | None, Checkpoint] | None
    checked: Checkpoint | None
    uri: CatalogUri
    settings: Settings
    token: str
    rows_at_once: int = 50_000

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = pa.schema(
            [
                ("first", pa.int64()), ("attempt", pa.string()), ("times", pa.binary()), ("actions", pa.int64()),
                ("error", pa.binary()),
            ]
        )  # fmt: skip
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist([self._answer(Share(**row))], schema=schema)

    def _answer(self, share: Share) -> dict[str, Any]:
        answer: dict[str, Any] = {"first": share.first, "attempt": uuid4().hex, "times": b"[]", "actions": 0}
        try:
            log = LogDirectory.open(self.location)
            if share.kind == "check":
                self._copy_keys(log, answer["attempt"])
            else:
                loading = _Loading(list(self._versions(log, share)), answer["attempt"])
                self._copy(loading.rows())
                answer["actions"] = loading.actions
                times = [(each.version, each.file_ms, each.in_commit_ms) for each in loading.times]
                answer["times"] = orjson.dumps(times)
        except MainstemError as error:
            answer["error"] = orjson.dumps(error.as_dict(), default=str)
        return answer

    def _versions(self, log: LogDirectory, share: Share) -> Iterator[LoggedVersion]:
        if share.kind == "start":
            assert self.start is not None
            yield LoggedVersion(log, *self.start)
        for version, *file in orjson.loads(share.commits):
            yield LoggedVersion(log, Commit(version, LogFile(*file)))

    def _copy(self, rows: Iterator[tuple[Shape, list[Any]]]) -> None:
        with closing(open_engine(self.uri, self.settings)) as engine:
            while chunk := list(islice(rows, self.rows_at_once)):
                with Store(engine).writing() as queries:
                    for shape in STAGED:
                        mine = [row for of, row in chunk if of is shape]
                        if mine:
                            queries.copy(f"{self.token}_{shape.table}", ("attempt", *staged_columns(shape)), mine)

    def _copy_keys(self, log: LogDirectory, attempt: str) -> None:
        assert self.checked is not None
        rows = ((attempt, *found) for found in checkpoint_files(log, self.checked).items())
        with closing(open_engine(self.uri, self.settings)) as engine, Store(engine).writing() as queries:
            queries.copy(f"{self.token}_checked", ("attempt", *CHECKED_COLUMNS), rows)


class _Loading:
    """Versions on their way into rows. `times` and `actions` are known once the rows have been taken."""

    def __init__(self, versions: Sequence[LoggedVersion], attempt: str) -> None:
        self.times: list[CommitTime] = []
        self.actions = 0
        self._versions, self._attempt = versions, attempt

    def rows(self) -> Iterator[tuple[Shape, list[Any]]]:
        for logged in self._versions:
            for action in logged.actions():
                self.actions += 1
                if type(action) is Protocol:
                    refuse_unreadable(action, table=logged.root)
                shape = BY_KIND.get(type(action))
                if shape is not None:
                    yield shape, [self._attempt, logged.version, *shape.values(action)]
            self.times.append(logged.time)
            # The moment is filled in at the end: whether in-commit timestamps count is said by the latest properties.
            version = Version(
                logged.version, from_millis(0), logged.kind, logged.info, content_sha256=logged.content_sha256
            )
            yield VERSIONS, [self._attempt, *VERSIONS.values(version)]
