"""Checks of the data beside the log: files that are there, with their sizes, and statistics that can be true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from mainstem.datafiles import list_files, on_disk
from mainstem.identity import is_absolute
from mainstem.validate.report import Finding
from mainstem.validate.subject import Subject


def data_files_present(subject: Subject) -> Iterator[Finding]:
    """Every live file is in the table's folder with the recorded size. Files elsewhere are not looked for."""
    there = {file.path: file.size_bytes for file in list_files(subject.place)}
    for row in subject.snapshot.iter_files():
        if is_absolute(row["path"]):
            continue
        size = there.get(on_disk(row["path"]))
        if size is None:
            yield Finding("data_file_missing", "error", "it is not in the table's folder", row["version"], row["path"])
        elif size != row["size_bytes"]:
            yield Finding(
                "data_file_size", "error", f"it has {size} bytes, not {row['size_bytes']}", row["version"], row["path"],
                "size_bytes", row["size_bytes"], size,
            )  # fmt: skip


def statistics_sane(subject: Subject) -> Iterator[Finding]:
    """Minimum ≤ maximum, and no more nulls than rows; that rows are not counted is a warning."""
    for row in subject.snapshot.iter_files():
        place = {"version": row["version"], "path": row["path"]}
        if row["num_records"] is None:
            yield Finding("statistics", "warning", "it does not say how many rows it has", **place)
            continue
        try:
            stats = orjson.loads(row["stats"])
        except orjson.JSONDecodeError:
            yield Finding("statistics", "warning", "its statistics are no JSON", **place, column="stats")
            continue
        for column, nulls in _leaves(stats.get("nullCount")):
            if isinstance(nulls, int) and not 0 <= nulls <= row["num_records"]:
                yield Finding(
                    "statistics", "error", f"{column} is null {nulls} times in {row['num_records']} rows", **place,
                    column=column, catalog=nulls,
                )  # fmt: skip
        greatest = dict(_leaves(stats.get("maxValues")))
        for column, least in _leaves(stats.get("minValues")):
            most = greatest.get(column)
            if _above(least, most):
                yield Finding(
                    "statistics", "error", f"the minimum of {column} is above its maximum", **place, column=column,
                    catalog=f"{least} > {most}",
                )  # fmt: skip


def _leaves(section: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(section, dict):
        for name, value in section.items():
            if isinstance(value, dict):
                yield from _leaves(value, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", value


def _above(least: Any, most: Any) -> bool:
    """Whether a minimum is above its maximum; values of two kinds cannot be compared."""
    return type(least) is type(most) and isinstance(least, int | float | str) and bool(least > most)
