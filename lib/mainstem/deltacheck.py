"""A second opinion on a table's live files: Delta's own, through the DataFrame API alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mainstem import observe
from mainstem.deltalog.location import open_location
from mainstem.errors import CorruptLog
from mainstem.identity import is_absolute
from mainstem.importer import Check, Imported
from mainstem.session import is_spark_error
from mainstem.store import Queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE_SCHEME = re.compile(r"(?i)^file:/+")


def compare(spark: SparkSession) -> Check:
    """A check for imports: the live files must be those that Delta finds at the same version.

    A table that this session's Delta cannot open cannot be compared; that is said as a warning and is no failure.
    """

    def check(imported: Imported, queries: Queries) -> None:
        root = open_location(imported.location).hadoop_path
        try:
            frame = spark.read.format("delta").option("versionAsOf", imported.version).load(root)
            theirs = {_place(path) for path in frame.inputFiles()}
        except Exception as error:
            if not is_spark_error(error):
                raise
            reason = " ".join(str(error).split())[:200]
            observe.event("import.not_compared", level=30, table=imported.name, reason=reason)
            return
        ours = {_place_of(row["path"], root) for row in queries.rows("live_paths", table_id=imported.table_id)}
        if theirs - ours:
            theirs -= _left_over(imported, queries, root, theirs - ours)
        if ours != theirs:
            lost, more = sorted(theirs - ours), sorted(ours - theirs)
            raise CorruptLog(
                f"the import of {imported.name} does not equal Delta's snapshot of version {imported.version}: "
                f"{len(lost)} files are missing {lost[:3]}, {len(more)} are too many {more[:3]}.",
                hint="Nothing was imported. Please report this log.",
                version=imported.version,
            )

    return check


def _left_over(imported: Imported, queries: Queries, root: str, lost: set[str]) -> set[str]:
    """Those that were removed under another spelling of their absolute path, such as file:///x for file:/x.

    Both are one file to Delta, but its replay shares the work out by their texts: unless both happen to meet in one
    of its partitions (tried with 1, 2 and 50), it never sees the remove.
    """
    rows = queries.rows("removed_by_another_spelling", table_id=imported.table_id)
    found = lost & {_place_of(row["path"], root) for row in rows}
    if found:
        shown = sorted(found)[:3]
        observe.event("import.delta_keeps", level=30, table=imported.name, files=len(found), paths=shown)
    return found


def _place_of(path: str, root: str) -> str:
    """Where the file of a log's path is: the path is a URI, or relative to the table's folder, and escaped."""
    return _place(unquote(path)) if is_absolute(path) else f"{_place(root)}/{unquote(path)}"


def _place(path: str) -> str:
    """A place as Spark writes it, not escaped, in one spelling: a file of this machine without its scheme."""
    return _FILE_SCHEME.sub("/", path)
