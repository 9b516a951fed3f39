"""Images: the live files of one version as columns, kept in the catalog beside the rows that define them.

Gathering 100,000 rows takes any database longer than sending the same values as a few compressed buffers, and the more
so the more history lies between the live rows. An image is derived and may be missing, old or unreadable at any time:
then the rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mainstem import observe
from mainstem.columns import FILE_COLUMNS, SEQ, arrow_schema
from mainstem.engines import EngineError, Outcome
from mainstem.errors import EngineBusy, VersionNotFound
from mainstem.livefiles import LiveFiles
from mainstem.resolve import Resolved, change_of
from mainstem.store import Queries, Store

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (*FILE_COLUMNS, SEQ)
_BATCH_FILES = 20_000  # rows whose buffers are compressed together
_CHUNK_BYTES = 512 * 1024  # of one row's content: longer ones are slower to fetch
_MOST_BYTES = 2**30  # of values: more than that no reader should have in memory at once
_RENEWED_AFTER = 20  # an image is renewed when a twentieth as many actions have come since as it has files


def live_at(queries: Queries, bounds: Mapping[str, Any]) -> LiveFiles | None:
    """The live files of a version by the newest image that serves it; None where there is none."""
    if not queries.engine.settings.image_files:
        return None
    before = queries.scalar("image_before", **bounds)
    since = {**bounds, "version": before}
    chunks = queries.blobs("image_at", **since) if before is not None else []
    if not chunks:
        return None
    rows = _decoded(b"".join(content for _, content in sorted(chunks)))
    if rows is None:
        observe.event("image.unreadable", level=30, table=bounds["table_id"], version=since["version"])
        return None
    observe.count("rows_scanned", rows.num_rows, query="image_at")
    found = LiveFiles(rows).moved(queries, since, bounds)
    # Expiry in between may have taken rows that the image still has as live, and with them the word that they ended.
    head = queries.row("head_row", table_id=bounds["table_id"])
    return found if head is not None and head["min_readable_version"] <= since["version"] else None


def keep(
    store: Store,
    bounds: Mapping[str, Any],
    rows: Callable[[], pa.Table],
    *,
    at: Resolved,
) -> bool:
    """Write an image of the version if it pays: the table is not small, and there is none, or not a recent one.

    Never fails the work that it follows: what goes wrong is told as a warning, and no image is written.
    """
    try:
        with store.reading() as queries:
            if not _pays(queries, bounds):
                return False
        live = rows()
        if live.nbytes > _MOST_BYTES:
            return False
        content = _encoded(live)
        with store.writing() as queries:
            for chunk, start in enumerate(range(0, len(content), _CHUNK_BYTES)):
                piece = content[start : start + _CHUNK_BYTES]
                queries.change("image_insert", **bounds, chunk=chunk, files=live.num_rows, content=piece)
            queries.change("images_older", **bounds)
            _require_same(queries, bounds, at)
    except (EngineError, EngineBusy, VersionNotFound) as error:
        another = isinstance(error, EngineError) and error.outcome is Outcome.LOST  # who wrote the same image
        observe.event("image.not_written", level=20 if another else 30, table=bounds["table_id"], reason=error)
        return False
    return True


def spoilt(store: Store, table_id: str) -> list[int]:
    """The versions whose image says something else than the rows, or nothing that this library can read."""
    found = []
    with store.reading() as queries:
        for row in queries.rows("image_versions", table_id=table_id):
            bounds = {"table_id": table_id, "version": row["version"]}
            chunks = queries.blobs("image_at", **bounds)
            if chunks and not _same(_decoded(b"".join(content for _, content in sorted(chunks))), queries, bounds):
                found.append(int(row["version"]))
    return found


def forget(store: Store, table_id: str) -> int:
    """Drop the images of a table, which are made again when it pays; how many pieces they had."""
    with store.writing() as queries:
        queries.row("head_lock", table_id=table_id)
        return queries.change("table_forget_images", table_id=table_id)


def _same(image: pa.Table | None, queries: Queries, bounds: Mapping[str, Any]) -> bool:
    rows = queries.arrow("files_at_version", COLUMNS, **bounds)
    place = [("version", "ascending"), ("seq", "ascending")]
    return image is not None and bool(image.sort_by(place).equals(rows.sort_by(place)))


def _pays(queries: Queries, bounds: Mapping[str, Any]) -> bool:
    least, most = queries.engine.settings.image_files, queries.engine.settings.driver_files
    if not least:
        return False
    known = queries.row("image_newest", table_id=bounds["table_id"])
    if known is None:
        few = int(queries.scalar("files_count_to", **bounds, most=least)) < least
        return not few and int(queries.scalar("files_count_to", **bounds, most=most + 1)) <= most
    changed = int(queries.scalar("actions_since", since=known["version"], **bounds))
    return changed * _RENEWED_AFTER > int(known["files"]) and int(known["files"]) <= most


def _require_same(queries: Queries, bounds: Mapping[str, Any], at: Resolved) -> None:
    """Raise unless the version is still the one that was read. Locked last and briefly: commits hardly wait.

    An import that replaces the table takes the same lock before it deletes: it finds this image, or this finds it.
    """
    queries.row("head_lock", table_id=bounds["table_id"])
    changed = change_of(queries, bounds["table_id"], at)
    if changed is not None:
        raise VersionNotFound(f"version {at.version} was {changed} while its image was made.")


def _encoded(rows: pa.Table) -> bytes:
    """The rows as a stream of Arrow's format with compressed buffers."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows.combine_chunks(), max_chunksize=_BATCH_FILES)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _decoded(content: bytes) -> pa.Table | None:
    """The rows of an image; None if it is not what this version of the library writes."""
    import pyarrow as pa

    try:
        found = pa.ipc.open_stream(content).read_all()
    except (pa.ArrowException, OSError):
        return None
    return found if found.schema.equals(arrow_schema(COLUMNS)) else None
