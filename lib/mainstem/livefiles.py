"""The live files of a snapshot in memory, and how they move forward without being read again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mainstem.columns import FILE_COLUMN_NAMES, FILE_COLUMNS, SEQ

if TYPE_CHECKING:
    import pyarrow as pa

    from mainstem.pruning.columnar import Bound
    from mainstem.pruning.condition import Condition
    from mainstem.store import Queries

# Up to so many gaps a table is cut into slices, which copies nothing; beyond it is filtered.
_MOST_SLICES = 2000
# Up to so many files are looked at one by one, which takes 20 microseconds each.
_MOST_BY_ONE = 5000


@dataclass(frozen=True)
class LiveFiles:
    """Rows of live files with their places in the log. Never changes; `moved` gives another one.

    What predicates have asked of their statistics is remembered beside them, and moves with them.
    """

    rows: pa.Table
    _bounds: dict[Bound, Any] = field(default_factory=dict, compare=False, repr=False)

    def table(self) -> pa.Table:
        """The rows as users see them."""
        return self.rows.select(list(FILE_COLUMN_NAMES))

    def moved(self, queries: Queries, since: Mapping[str, Any], now: Mapping[str, Any]) -> LiveFiles:
        """The same table at a later version: what was ended since is left out, what came since is added."""
        import pyarrow as pa

        if since["version"] == now["version"]:
            return self
        bounds = {**now, "since": since["version"]}
        ended = [(row["version"], row["seq"]) for row in queries.rows("files_ended", **bounds)]
        added = queries.arrow_few("files_since", (*FILE_COLUMNS, SEQ), **bounds)
        known = list(self._bounds)
        both = pa.concat_tables([_without(_beside(self.rows, self._bounds, known), ended), _read(added, known)])
        width = self.rows.num_columns
        rows = both.select(range(width))
        return LiveFiles(rows, {bound: both.column(width + place) for place, bound in enumerate(known)})

    def matching(self, condition: Condition) -> pa.Table | None:
        """The files that may match, as users see them; None if they are so many that a database finds them faster."""
        from mainstem.pruning.columnar import bounds_of, candidates, matching, read_bounds

        missing = [bound for bound in dict.fromkeys(bounds_of(condition)) if bound not in self._bounds]
        if missing:
            self._bounds.update(read_bounds(self.rows.column("stats"), missing))
        found = candidates(condition, self.rows, self._bounds)
        if found.num_rows > _MOST_BY_ONE:
            return None
        return matching(condition, found).select(list(FILE_COLUMN_NAMES))


def _read(rows: pa.Table, known: Sequence[Bound]) -> pa.Table:
    if not known:
        return rows  # and the parser of predicates is not loaded
    from mainstem.pruning.columnar import read_bounds

    return _beside(rows, read_bounds(rows.column("stats"), known), known)


def _beside(rows: pa.Table, bounds: Mapping[Bound, Any], known: Sequence[Bound]) -> pa.Table:
    """The rows with their bounds as further columns, so that both are cut alike."""
    for place, bound in enumerate(known):
        rows = rows.append_column(f"bound {place}", bounds[bound])
    return rows


def _without(rows: pa.Table, places: list[tuple[int, int]]) -> pa.Table:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not places:
        return rows
    wanted: dict[int, set[int]] = defaultdict(set)
    for version, seq in places:
        wanted[version].add(seq)
    versions, seqs = rows.column("version"), rows.column(SEQ.name)
    candidates = np.flatnonzero(pc.is_in(versions, pa.array(list(wanted), pa.int64())).to_numpy())
    near = zip(candidates, versions.take(candidates).to_pylist(), seqs.take(candidates).to_pylist(), strict=True)
    gone = [int(index) for index, version, seq in near if seq in wanted[version]]
    if len(gone) > _MOST_SLICES:
        keep = np.ones(rows.num_rows, dtype=bool)
        keep[gone] = False
        return rows.filter(pa.array(keep))
    starts, ends = [0, *(index + 1 for index in gone)], [*gone, rows.num_rows]
    return pa.concat_tables([rows.slice(start, end - start) for start, end in zip(starts, ends, strict=True)])
