"""A recipe straight into a catalog's rows: what an import of its log would leave there, without a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

import numpy as np

from mainstem.bench.generator import ROWS, Chunk, Generator, Texts
from mainstem.bench.recipe import Ints, Recipe
from mainstem.chronicle import described
from mainstem.deltalog.actions import parse_commit
from mainstem.deltalog.names import commit_name
from mainstem.identity import bucket_and_key
from mainstem.model import FIRST_SEQ, CommitInfo, Metadata, Protocol
from mainstem.rows import ADDS, METADATA, PROTOCOL, REMOVES, Shape
from mainstem.snapshot import no_session, open_snapshot
from mainstem.store import Queries, Store
from mainstem.versions import Version, from_millis, write_versions

Column = Sequence[Any]


def write_catalog(recipe: Recipe, store: Store, *, name: str, location: str) -> str:
    """Put the table into the catalog as `name`, in one transaction; its id.

    Every row equals that of `import_table` from the recipe's log: a test holds the two together.
    """
    generator = Generator(recipe)
    table_id = str(UUID(generator.table_id))
    with store.writing() as queries:
        queries.change(
            "table_insert", table_id=table_id, name=name, location=location, authority="log",
            created_at=queries.now(), protocol_min_reader=1, protocol_min_writer=1, properties="{}",
        )  # fmt: skip
        for chunk in generator.chunks():
            _write_chunk(queries, table_id, chunk)
        queries.change(
            "head_insert", table_id=table_id, current_version=recipe.last, published_version=recipe.last,
            min_readable_version=0,
        )  # fmt: skip
    _keep_image(recipe, store, name, table_id)
    return table_id


def _keep_image(recipe: Recipe, store: Store, name: str, table_id: str) -> None:
    """Where the log has its checkpoint: as far behind the head as those who follow a log would have it."""
    open_snapshot(store, name, table_id, session=no_session, version=recipe.checkpoint).keep_image()


def _write_chunk(queries: Queries, table_id: str, chunk: Chunk) -> None:
    versions = []
    for version, commit in zip(chunk.versions, chunk.commits(), strict=True):
        # The first line says who committed; of version 0 the others say what the table is.
        head = commit if version == 0 else commit[: commit.index(b"\n")]
        actions = parse_commit(head, file=commit_name(version), table_root="")
        info = next(action for action in actions if isinstance(action, CommitInfo))
        time = from_millis(int(chunk.generator.recipe.time_of(np.array([version]))[0]))
        versions.append(Version(version, time, "commit", info, content_sha256=sha256(commit).hexdigest()))
        if version == 0:
            protocol = next(action for action in actions if isinstance(action, Protocol))
            metadata = next(action for action in actions if isinstance(action, Metadata))
            for shape, action in ((PROTOCOL, protocol), (METADATA, metadata)):
                queries.copy(shape.table, shape.all_columns, [[table_id, version, *shape.values(action)]])
            queries.change("table_describe", table_id=table_id, **described(protocol, metadata))
    for shape, columns, rows in (
        (ADDS, _adds(chunk), len(chunk.added)),
        (REMOVES, _removes(chunk), len(chunk.gone)),
    ):
        if rows:
            queries.copy(shape.table, shape.all_columns, _rows(shape, {"table_id": [table_id] * rows, **columns}, rows))
    write_versions(queries, table_id, versions)


def _rows(shape: Shape, columns: dict[str, Column], rows: int) -> Iterator[tuple[Any, ...]]:
    empty = [None] * rows
    return zip(*(columns.get(name, empty) for name in shape.all_columns), strict=True)


def _adds(chunk: Chunk) -> dict[str, Column]:
    generator, recipe, files = chunk.generator, chunk.generator.recipe, chunk.added
    versions, removed = recipe.version_of(files), recipe.removed_of(files)
    return {
        **_files(generator, files),
        "version": versions.tolist(),
        "removed_version": [version or None for version in removed.tolist()],
        "seq": (files - recipe.first_of(versions) + FIRST_SEQ).tolist(),
        "stats": _decoded(generator.stats(files)),
        "modification_time": generator.time(files).tolist(),
        "num_records": [ROWS] * len(files),
    }


def _removes(chunk: Chunk) -> dict[str, Column]:
    generator, recipe, files = chunk.generator, chunk.generator.recipe, chunk.gone
    versions = recipe.removed_of(files)
    # A version's removes come after its adds.
    own = np.arange(len(files)) - np.concatenate(([0], chunk.gone_until))[versions - chunk.start]
    adds = recipe.first_of(versions + 1) - recipe.first_of(versions)
    return {
        **_files(generator, files),
        "version": versions.tolist(),
        "seq": (own + adds + FIRST_SEQ).tolist(),
        "deletion_timestamp": generator.deleted(files).tolist(),
        "extended_file_metadata": [True] * len(files),
    }


def _files(generator: Generator, files: Ints) -> dict[str, Column]:
    paths = _decoded(generator.paths(files))
    known = [bucket_and_key(path, None, "") for path in paths]
    return {
        "path": paths,
        "path_bucket": [bucket for bucket, _ in known],
        "file_key": [key for _, key in known],
        "size_bytes": generator.size(files).tolist(),
        "partition_values": [f'{{"date":"{day}"}}' for day in _decoded(generator.dates(files))],
        "data_change": [True] * len(files),
    }


def _decoded(texts: Texts) -> list[str]:
    return [text.decode() for text in texts.tolist()]
