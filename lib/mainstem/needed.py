"""Which files in a table's folder must stay, and which are not the table's: what a vacuum has to know.

A catalog holds many tables, and one may lie in another one's folder, or name its files by absolute paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from mainstem.datafiles import files_named, inside
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import Location, below, place_of
from mainstem.errors import ForeignCommit
from mainstem.store import Queries, Row, Store


class Needed:
    """The files on disk that must stay readable, by their paths in the table's folder.

    Those of the head, of what is not published yet, of every tag and lease, and of what was removed since a moment; and
    whatever any other table of the catalog names of them. It only grows: `look` adds what has become needed since the
    last look, and asks for all of it the first time alone.
    """

    def __init__(self, table: Row, place: Location, *, since_ms: int) -> None:
        self.files: set[str] = set()
        self._bounds = {"table_id": table["table_id"]}
        self._table, self._place, self._since_ms = table, place, since_ms
        # Up to which version each table's files have been looked at. Those that are published never change.
        self._seen: dict[str, int] = {}
        self._heads: dict[str, tuple[int, int]] = {}
        self._held: set[int] = set()
        self._complete_from: int | None = None  # all that is live at this version or a later one is known

    def look(self, queries: Queries) -> None:
        """Add what is needed by now. Whoever comes after the heads were read is seen by the next look."""
        rows = queries.rows("tables_all")
        heads = {row["table_id"]: (int(row["current_version"]), int(row["published_version"])) for row in rows}
        if any(head[0] < self._seen.get(table_id, 0) for table_id, head in heads.items()):
            self._seen, self._heads, self._held, self._complete_from = {}, {}, set(), None  # one was imported anew
        for row in rows:
            if row["table_id"] == self._table["table_id"]:
                moved = self._heads.get(row["table_id"]) != heads[row["table_id"]]
                self._look_at_own(queries, int(row["published_version"]), moved=moved)
            elif self._heads.get(row["table_id"]) != heads[row["table_id"]]:
                self.files.update(_of_other(queries, row, self._place, self._seen.get(row["table_id"])))
        self._heads = heads
        self._seen = {table_id: min(head) for table_id, head in heads.items()}

    def _look_at_own(self, queries: Queries, published: int, *, moved: bool) -> None:
        if self._complete_from is None:
            known = {"since": self._since_ms, "published_version": published}
            self._add(queries.rows("files_needed", **self._bounds, **known))
            head = queries.row("head_row", **self._bounds)
            self._complete_from = int(head["current_version"]) if head else None
        elif moved:
            since = self._seen[self._table["table_id"]]
            self._add(queries.rows("files_added_since", **self._bounds, version=since))
        for version in {int(row["version"]) for row in queries.rows("held_versions", **self._bounds)} - self._held:
            if self._complete_from is None or version < self._complete_from:
                self._add(queries.rows("files_held", **self._bounds, version=version))
            self._held.add(version)

    def _add(self, rows: list[Row]) -> None:
        self.files.update(path for row in rows for path in files_named(row, self._place))


def tables_inside(queries: Queries, table: Row, place: Location) -> set[str]:
    """The folders in the table's folder that are other tables of the catalog."""
    return {folder for other in _others(queries, table) for folder in inside(place_of(other["location"]), place)}


def _others(queries: Queries, table: Row) -> list[Row]:
    return [row for row in queries.rows("tables_all") if row["table_id"] != table["table_id"]]


def _of_other(queries: Queries, other: Row, place: Location, since: int | None) -> Iterator[str]:
    """What another table names in here: by absolute paths, and by its own where its folder is around this one or it.

    With `since`, only what it has added after that version.
    """
    bounds = {"table_id": other["table_id"], "version": -1 if since is None else since}
    for row in queries.rows("files_elsewhere", **bounds):
        yield from files_named(row, place)
    around = place_of(other["location"])
    folder = "" if around == place.roots[-1] else below(place.roots[-1], around)
    if folder is None:
        return
    prefix = f"{folder}/" if folder else ""
    named = queries.rows("files_named", table_id=other["table_id"]) if since is None else None
    for row in queries.rows("files_added_since", **bounds) if named is None else named:
        for path in files_named(row, place):
            if path.startswith(prefix):
                yield path.removeprefix(prefix)


def refuse_outside_commits(store: Store, table: Row, place: Location) -> None:
    """Raise `ForeignCommit` if the log has what the catalog has not: nobody here knows which files that names."""
    outside, published = table["foreign_version"], int(table["published_version"])
    if outside is None:
        log = LogDirectory(place)
        for commit in log.list(from_version=published + 1).commits:
            # What a publisher has written and not noted yet is ours.
            if commit.version > published and _ratified(store, table, commit.version) != _sha256(log, commit.version):
                outside = commit.version
                break
    if outside is not None:
        raise ForeignCommit(
            f"an outside engine has written version {outside} into the log of {table['name']}: which files it needs, "
            f"the catalog does not know.",
            hint=f"Nothing was deleted. Decide on it first: mainstem resolve {table['name']}",
            table=table["name"],
            version=outside,
        )


def _ratified(store: Store, table: Row, version: int) -> str | None:
    row = store.row("version_row", table_id=table["table_id"], version=version)
    return None if row is None else row["content_sha256"]


def _sha256(log: LogDirectory, version: int) -> str:
    return sha256(log.read(version)).hexdigest()
