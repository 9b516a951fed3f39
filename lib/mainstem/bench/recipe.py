"""What a synthetic log holds: which file comes when and goes when, by arithmetic alone, so that any part can be made
without the parts before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mainstem.errors import UsageError

Ints = npt.NDArray[np.int64]

START_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z, when the first commit is made
DAY_MS = 86_400_000
CHECKPOINT_EVERY = 10  # as Delta does


@dataclass(frozen=True)
class Recipe:
    """A log of `commits` versions (0 is the empty table) with so many adds and removes, spread evenly over them.

    Files that go are spread evenly over those that came, a quarter each after one commit and after 0.05, 0.2 and 1 per
    cent of the history: live files lie among dead ones everywhere, as they do in a table that is compacted as it grows.
    """

    adds: int
    removes: int
    commits: int
    days: int = 365
    seed: int = 20_261_118

    def __post_init__(self) -> None:
        if self.commits < 2 or self.adds < self.commits - 1 or not 1 <= self.days <= 10_000:
            raise UsageError(
                f"{self.adds} adds do not fill {self.commits} commits over {self.days} days.",
                hint="Every commit but the first adds a file: give 2 commits or more, and as many adds.",
            )
        if not 0 <= self.removes <= self.mortal:
            raise UsageError(
                f"{self.removes} of {self.adds} files cannot be removed again.", hint=f"At most {self.mortal} can."
            )

    @property
    def actions(self) -> int:
        """Adds and removes; what else a log holds does not count."""
        return self.adds + self.removes

    @property
    def live(self) -> int:
        """How many files there are at the last version."""
        return self.adds - self.removes

    @property
    def last(self) -> int:
        """The last version."""
        return self.commits - 1

    @property
    def checkpoint(self) -> int:
        """The newest version that Delta would have written a checkpoint of."""
        return self.last // CHECKPOINT_EVERY * CHECKPOINT_EVERY

    @cached_property
    def lags(self) -> Ints:
        """After how many commits a file goes."""
        return np.array([1, *(self.commits // part + 1 for part in (2000, 500, 100))], dtype=np.int64)

    @cached_property
    def mortal(self) -> int:
        """How many files come early enough to be removed by the last version."""
        return max(0, int(self.first_of(np.array([self.commits - int(self.lags[-1])]))[0]))

    def first_of(self, versions: Ints) -> Ints:
        """The number of the first file that each version adds; that of the version after the last is `adds`."""
        return np.maximum(0, -((1 - versions) * self.adds // self.last))

    def version_of(self, files: Ints) -> Ints:
        """The version that adds each file."""
        return 1 + files * self.last // self.adds

    def removed_of(self, files: Ints) -> Ints:
        """The version that removes each file; 0 for those that stay."""
        if not self.removes:
            return np.zeros_like(files)
        before = files * self.removes // self.mortal
        goes = (files < self.mortal) & ((files + 1) * self.removes // self.mortal > before)
        return np.where(goes, self.version_of(files) + self.lags[before % 4], 0)

    def files_of(self, start: int, stop: int) -> Ints:
        """The files that the versions from `start` up to and without `stop` add, in order."""
        first, after = self.first_of(np.array([max(1, start), max(1, stop)]))
        return np.arange(first, min(after, self.adds), dtype=np.int64)

    def gone_of(self, start: int, stop: int) -> Ints:
        """The files that the versions from `start` up to and without `stop` remove, by version, then by number."""
        files = self.files_of(start - int(self.lags[-1]), stop - 1)
        removed = self.removed_of(files)
        inside = (removed >= max(1, start)) & (removed < stop)
        files, removed = files[inside], removed[inside]
        return files[np.argsort(removed, kind="stable")]

    def live_at(self, version: int) -> Ints:
        """The files that are live at a version, in the order in which they came."""
        files = self.files_of(0, version + 1)
        removed = self.removed_of(files)
        live: Ints = files[(removed == 0) | (removed > version)]
        return live

    def day_of(self, files: Ints) -> Ints:
        """The day of the data in each file, counted from the start: it passes as the files come."""
        return files * self.days // self.adds

    def time_of(self, versions: Ints) -> Ints:
        """When each version is committed, in milliseconds."""
        found: Ints = START_MS + versions * (self.days * DAY_MS) // self.commits
        return found
