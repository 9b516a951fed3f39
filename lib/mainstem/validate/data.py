"""Checks of the data beside the log: files that are there, with their sizes, and statistics that can be true."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from mainstem.checkpoint import properties as said
from mainstem.datafiles import inside, list_files, placed, vector_files
from mainstem.validate.report import Finding
from mainstem.validate.subject import Subject
from mainstem.validate.typed import TypedColumns, is_above, is_number, leaves, typed_columns


def data_files_present(subject: Subject) -> Iterator[Finding]:
    """Every live file is in the table's folder with the recorded size, and so is its deletion vector.

    Files elsewhere are not looked for.
    """
    there = {file.path: file.size_bytes for file in list_files(subject.place)}
    for row in subject.snapshot.iter_files():
        name, linked = placed(row["path"], subject.place)
        if name is not None:
            size = there.get(name) if linked is None else linked
            yield from file_found(row["version"], row["path"], row["size_bytes"], size)
        if row["deletion_vector"]:
            # The last of its names is the one that a listing shows.
            for path in list(vector_files(row["deletion_vector"], subject.place))[-1:]:
                if path not in there:
                    yield file_missing(row["version"], path, "deletion_vector")


def file_found(version: int, path: str, recorded: int, size: int | None) -> Iterator[Finding]:
    """Whether a file was found, `size` bytes of it, as it was recorded."""
    if size is None:
        yield file_missing(version, path, None)
    elif size != recorded:
        yield Finding(
            "data_file_size", "error", f"it has {size} bytes, not {recorded}", version, path, "size_bytes", recorded,
            size,
        )  # fmt: skip


def file_missing(version: int, path: str, column: str | None) -> Finding:
    """A file that a live row names and that is not there."""
    return Finding("data_file_missing", "error", "it is not in the table's folder", version, path, column)


def orphans_counted(subject: Subject) -> Iterator[Finding]:
    """How many files no version names that the catalog knows. Young ones do not count: somebody may commit them yet."""
    with subject.store.reading() as queries:
        rows = queries.rows("files_named", table_id=subject.table_id)
    named = {path for row in rows for path in inside(row["path"], subject.place)}
    for row in rows:
        if row["deletion_vector"]:
            named.update(vector_files(row["deletion_vector"], subject.place))
    before = orphans_before(subject)
    found = [each for each in list_files(subject.place) if each.modified_ms < before and each.path not in named]
    yield from orphans(
        len(found), sum(each.size_bytes for each in found), min((each.path for each in found), default="")
    )


def orphans_before(subject: Subject) -> int:
    """The age, in milliseconds since 1970, from which on a file that nobody names is an orphan: that of vacuum."""
    kept = said.retention_ms(subject.snapshot.properties, said.FILE_RETENTION)
    return int(time.time() * 1000) - (kept or 0)


def orphans(count: int, size_bytes: int, first: str) -> Iterator[Finding]:
    """The finding for so many files that nobody names."""
    if count:
        yield Finding(
            "orphans_counted", "warning",
            f"{count} files of {size_bytes} bytes are in the table's folder and no version names them, such as this",
            path=first, catalog=0, log=count,
        )  # fmt: skip


def statistics_sane(subject: Subject) -> Iterator[Finding]:
    """Minimum ≤ maximum, and no more nulls than rows; that rows are not counted is a warning."""
    columns = typed_columns(subject.snapshot)
    for row in subject.snapshot.iter_files():
        yield from statistics_of(row["version"], row["path"], row["num_records"], row["stats"], columns)


def statistics_of(
    version: int, path: str, records: int | None, text: str | None, columns: TypedColumns
) -> Iterator[Finding]:
    """What is wrong with the statistics of one file, as far as its columns have types by which values compare."""
    place: dict[str, Any] = {"version": version, "path": path}
    if records is None:
        yield Finding("statistics", "warning", "it does not say how many rows it has", **place)
        return
    stats = columns.read(text)
    if stats is None:
        yield Finding("statistics", "warning", "its statistics are no JSON object", **place, column="stats")
        return
    for names, nulls in leaves(stats.get("nullCount")):
        if is_number(nulls) and not 0 <= nulls <= records:
            name = columns.name(names)
            yield Finding(
                "statistics", "error", f"{name} is null {nulls} times in {records} rows", **place, column=name,
                catalog=nulls,
            )  # fmt: skip
    greatest = dict(leaves(stats.get("maxValues")))
    for names, least in leaves(stats.get("minValues")):
        column = columns.find(names)
        if column is not None and is_above(column, least, most := greatest.get(names)):
            yield Finding(
                "statistics", "error", f"the minimum of {column.name} is above its maximum", **place,
                column=column.name, catalog=f"{least} > {most}",
            )  # fmt: skip
