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


def needed_files(queries: Queries, table: Row, place: Location, *, since_ms: int) -> set[str]:
    """The files on disk that must stay readable, by their paths in the table's folder.

    Those of the head, of what is not published yet, of every tag and lease, and of what was removed since a moment; and
    whatever any other table of the catalog names of them.
    """
    bounds = {"table_id": table["table_id"]}
    rows = queries.rows("files_needed", **bounds, since=since_ms, published_version=table["published_version"])
    for held in queries.rows("held_versions", **bounds):
        rows += queries.rows("files_held", **bounds, version=held["version"])
    rows += queries.rows("files_of_others", **bounds)
    needed = {path for row in rows for path in files_named(row, place)}
    for other in _others(queries, table):
        needed.update(_within(queries, other, place))
    return needed


def tables_inside(queries: Queries, table: Row, place: Location) -> set[str]:
    """The folders in the table's folder that are other tables of the catalog."""
    return {folder for other in _others(queries, table) for folder in inside(place_of(other["location"]), place)}


def _others(queries: Queries, table: Row) -> list[Row]:
    return [row for row in queries.rows("tables_all") if row["table_id"] != table["table_id"]]


def _within(queries: Queries, other: Row, place: Location) -> Iterator[str]:
    """What a table whose folder is around this one, or is this one, names by paths that lead in here."""
    around = place_of(other["location"])
    folder = "" if around == place.roots[-1] else below(place.roots[-1], around)
    if folder is None:
        return
    prefix = f"{folder}/" if folder else ""
    for row in queries.rows("files_named", table_id=other["table_id"]):
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
