"""One version as a `_delta_log` holds it, read once from front to back."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from mainstem.deltalog.actions import iter_commit
from mainstem.deltalog.checkpoints import read_checkpoint
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.history import CommitTime, ReplayPlan
from mainstem.deltalog.names import Checkpoint, Commit
from mainstem.model import Action, CommitInfo
from mainstem.versions import Kind


class LoggedVersion:
    """A commit, or the state of a checkpoint where the commits before it are gone.

    `info`, `content_sha256` and `time` are known once `actions()` has been read to its end.
    """

    def __init__(self, log: LogDirectory, commit: Commit | None, checkpoint: Checkpoint | None = None) -> None:
        found = commit or checkpoint
        assert found is not None
        self.version = found.version
        self.kind: Kind = "commit" if checkpoint is None else "checkpoint"
        self.info: CommitInfo | None = None
        self.content_sha256: str | None = None
        self._log, self._commit, self._checkpoint = log, commit, checkpoint

    @property
    def root(self) -> str:
        """The table's location."""
        return self._log.root

    @property
    def time(self) -> CommitTime:
        """When it was committed, as far as the log says."""
        file = self._commit.file if self._commit is not None else self._checkpoint.files[0]  # type: ignore[union-attr]
        return CommitTime(self.version, file.modified_ms, self.info.in_commit_timestamp if self.info else None)

    def actions(self) -> Iterator[Action]:
        """Its actions; commitInfo is among them where the commit file is there."""
        if self._checkpoint is None:
            yield from self._from_commit()
            return
        yield from read_checkpoint(self._log, self._checkpoint)
        if self._commit is not None:
            # The state has the commit's other actions already; its commitInfo is nowhere else.
            yield from (action for action in self._from_commit() if isinstance(action, CommitInfo))

    def _from_commit(self) -> Iterator[Action]:
        assert self._commit is not None
        digest = sha256()

        def chunks() -> Iterator[bytes]:
            for chunk in self._log.stream(self.version):
                digest.update(chunk)
                yield chunk

        for action in iter_commit(chunks(), file=self._commit.file.name, table_root=self._log.root):
            if type(action) is CommitInfo:
                self.info = action
            yield action
        self.content_sha256 = digest.hexdigest()


def logged_versions(log: LogDirectory, plan: ReplayPlan) -> Iterator[LoggedVersion]:
    """The versions of a plan in their order."""
    if plan.checkpoint is not None:
        yield LoggedVersion(log, plan.first_commit, plan.checkpoint)
    for commit in plan.commits:
        yield LoggedVersion(log, commit)
