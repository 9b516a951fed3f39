"""Images never say anything else than the rows: with them and without them every version is the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from mainstem import Catalog, open_catalog
from mainstem.bench.catalogwriter import write_catalog
from mainstem.bench.recipe import Recipe
from mainstem.snapshot import Snapshot

RECIPE = Recipe(adds=300, removes=100, commits=40)
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
FIRST = (
    {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
                  "writerFeatures": ["deletionVectors"]}},
    {"metaData": {"id": "9a3f", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
                  "schemaString": SCHEMA, "configuration": {}, "createdTime": 0}},
)  # fmt: skip


def add(path: str, *, vector: str | None = None, stats: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True, "stats": stats,
    }  # fmt: skip
    if vector:
        found["deletionVector"] = _vector(vector)
    return {"add": found}


def remove(path: str, *, vector: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"path": path, "deletionTimestamp": 0, "dataChange": True}
    if vector:
        found["deletionVector"] = _vector(vector)
    return {"remove": found}


def _vector(name: str) -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 1, "cardinality": 1}


# Everything that may happen to a file between an image and a later version.
ODD = [
    [*FIRST, add("a"), add("b"), add("c"), add("d")],
    [add("a", stats='{"numRecords":1}')],  # added again
    [remove("b"), add("b", vector="one")],
    [remove("b", vector="one"), add("b", vector="two"), remove("c")],
    [add("c")],  # restored
    [remove("c"), add("c", stats='{"numRecords":2}')],  # in one version
    [remove("b", vector="one")],  # stale
    [remove("a"), remove("d"), add("e")],
]


def write_log(folder: Path, commits: list[list[dict[str, Any]]]) -> Path:
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for version, actions in enumerate(commits):
        (log / f"{version:020d}.json").write_bytes(b"\n".join(map(orjson.dumps, actions)))
    return folder


@pytest.fixture
def imaged(catalog_uri: str) -> Iterator[Catalog]:
    """A catalog that keeps an image of every table."""
    with open_catalog(catalog_uri, image_files=1) as opened:
        opened.migrate()
        yield opened


def plain(imaged: Catalog) -> Catalog:
    """The same catalog, read by its rows alone."""
    return open_catalog(imaged.settings.catalog, image_files=0)


def images(catalog: Catalog) -> list[tuple[int, int]]:
    """Version and files of each image that is there."""
    with catalog.store.reading() as queries:
        sql = "SELECT DISTINCT version, files FROM dl_snapshot_images ORDER BY version"
        return [tuple(row) for row in queries.connection.execute(sql).fetchall()]


def in_order(snapshot: Snapshot) -> pa.Table:
    found = snapshot.to_arrow()
    return found.sort_by([(name, "ascending") for name in ("path", "version")]).combine_chunks()


def test_every_version_is_the_same_by_an_image_and_by_rows(imaged: Catalog) -> None:
    write_catalog(RECIPE, imaged.store, name="t", location="/nowhere")
    assert images(imaged) == [(RECIPE.checkpoint, len(RECIPE.live_at(RECIPE.checkpoint)))]
    with plain(imaged) as rows:
        for version in range(RECIPE.checkpoint - 1, RECIPE.commits):
            by_image, by_rows = (in_order(each.table("t").snapshot(version=version)) for each in (imaged, rows))
            assert by_image.equals(by_rows)
            assert by_image.num_rows == len(RECIPE.live_at(version))


@pytest.mark.parametrize("at", range(len(ODD)))
def test_an_image_moves_on_over_all_that_may_happen_to_a_file(at: int, imaged: Catalog, tmp_path: Path) -> None:
    folder = write_log(tmp_path / "t", ODD)
    imaged.import_table(str(folder), name="t", up_to_version=at)
    assert [version for version, _ in images(imaged)] == [at]
    with plain(imaged) as rows:
        rows.table("t").follow()
        for version in range(at, len(ODD)):
            by_image, by_rows = (in_order(each.table("t").snapshot(version=version)) for each in (imaged, rows))
            assert by_image.equals(by_rows)
    assert [version for version, _ in images(imaged)] == [at]


def test_an_open_reads_the_image_and_not_the_rows(imaged: Catalog, tmp_path: Path) -> None:
    imaged.import_table(str(write_log(tmp_path / "t", ODD)), name="t")
    before = imaged.table("t").snapshot().to_arrow()
    with imaged.store.writing() as queries:
        queries.connection.execute("UPDATE dl_add_files SET size_bytes = 7")
    assert imaged.table("t").snapshot().to_arrow().equals(before)


def test_a_small_table_has_no_image(catalog: Catalog, tmp_path: Path) -> None:
    catalog.import_table(str(write_log(tmp_path / "t", ODD)), name="t")
    assert images(catalog) == []
    assert not catalog.table("t").snapshot().keep_image()


def test_a_follower_renews_the_image_once_enough_has_changed(imaged: Catalog, tmp_path: Path) -> None:
    many = [[*FIRST, *(add(f"f{number}") for number in range(100))]]
    folder = write_log(tmp_path / "t", many)
    imaged.import_table(str(folder), name="t")
    many += [[add("g0")], [add("g1")], [add("g2")]]
    write_log(folder, many)
    imaged.table("t").follow()
    assert images(imaged) == [(0, 100)]
    many += [[add("g3")], [add("g4")], [add("g5")]]
    write_log(folder, many)
    imaged.table("t").follow()
    assert images(imaged) == [(6, 106)]
    assert imaged.table("t").snapshot().to_arrow().num_rows == 106


def test_an_image_below_the_floor_is_not_used(imaged: Catalog, tmp_path: Path) -> None:
    folder = write_log(tmp_path / "t", ODD)
    imaged.import_table(str(folder), name="t", up_to_version=1)
    with plain(imaged) as rows:
        rows.table("t").follow()
    with imaged.store.writing() as queries:  # what an expiry does: it forgets files that were gone before the floor
        queries.connection.execute("UPDATE dl_table_heads SET min_readable_version = 5")
        queries.connection.execute("DELETE FROM dl_add_files WHERE removed_version <= 5")
        queries.connection.execute("DELETE FROM dl_remove_files WHERE version <= 5")
    snapshot = imaged.table("t").snapshot()
    with plain(imaged) as rows:
        assert in_order(snapshot).equals(in_order(rows.table("t").snapshot()))
    assert snapshot.keep_image()
    assert images(imaged) == [(len(ODD) - 1, 3)]


@pytest.mark.parametrize("content", [b"", b"no Arrow", None], ids=["empty", "broken", "of another library"])
def test_an_image_that_cannot_be_read_is_told_and_left_alone(
    content: bytes | None, imaged: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    imaged.import_table(str(write_log(tmp_path / "t", ODD)), name="t")
    if content is None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("path", pa.string())])):
            pass
        content = sink.getvalue().to_pybytes()
    with imaged.store.writing() as queries:
        table_id = imaged.tables()[0].table_id
        queries.change("table_forget_images", table_id=table_id)
        bounds = {"table_id": table_id, "version": len(ODD) - 1}
        queries.change("image_insert", **bounds, chunk=0, files=3, content=content)
    with caplog.at_level(logging.WARNING):
        assert imaged.table("t").snapshot().to_arrow().num_rows == 3
    assert "image.unreadable" in caplog.text


def test_an_import_with_force_replaces_the_image(imaged: Catalog, tmp_path: Path) -> None:
    imaged.import_table(str(write_log(tmp_path / "t", ODD)), name="t")
    other = [[*FIRST, add("x"), add("y")], *([add(f"z{number}")] for number in range(len(ODD) - 1))]
    imaged.import_table(str(write_log(tmp_path / "other", other)), name="t", force=True)
    assert imaged.table("t").snapshot().to_arrow().num_rows == len(ODD) + 1
    assert images(imaged) == [(len(ODD) - 1, len(ODD) + 1)]


def test_an_image_of_a_version_that_was_replaced_meanwhile_is_not_written(
    imaged: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with plain(imaged) as rows:
        rows.import_table(str(write_log(tmp_path / "t", ODD)), name="t")
        stale = imaged.table("t").snapshot()
        stale.to_arrow()
        other = [[*FIRST, add("x")], *([add(f"z{number}")] for number in range(len(ODD) - 1))]
        rows.import_table(str(write_log(tmp_path / "other", other)), name="t", force=True)
    with caplog.at_level(logging.WARNING):
        assert not stale.keep_image()
    assert "image.not_written" in caplog.text
    assert images(imaged) == []


def test_of_two_who_keep_the_same_image_one_writes_it(imaged: Catalog, tmp_path: Path) -> None:
    with plain(imaged) as rows:
        rows.import_table(str(write_log(tmp_path / "t", ODD)), name="t")
    one, two = imaged.table("t").snapshot(), imaged.table("t").snapshot()
    assert (one.keep_image(), two.keep_image()) == (True, False)
    assert len(images(imaged)) == 1


def test_adopting_a_foreign_commit_takes_the_images_of_renumbered_versions_back(
    imaged: Catalog, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    imaged.create_table("t", location=str(folder), schema=SCHEMA)
    with open_catalog(imaged.settings.catalog, image_files=1, publish_on_commit=False) as quiet:
        quiet.table("t").commit([add("ours")], operation="WRITE")
        assert quiet.table("t").snapshot().keep_image()
    assert images(imaged) == [(1, 1)]
    info = {"commitInfo": {"inCommitTimestamp": 4_000_000_000_000, "operation": "WRITE"}}
    foreign = b"\n".join(map(orjson.dumps, (info, add("theirs"))))
    (folder / "_delta_log" / f"{1:020d}.json").write_bytes(foreign)
    imaged.table("t").resolve(adopt_foreign=True)
    assert images(imaged) == []
    assert imaged.table("t").snapshot(version=1).to_arrow()["path"].to_pylist() == ["theirs"]
    assert set(imaged.table("t").snapshot().to_arrow()["path"].to_pylist()) == {"ours", "theirs"}


def test_commits_renew_the_image_now_and_then(imaged: Catalog, tmp_path: Path) -> None:
    imaged.create_table("t", location=str(tmp_path / "t"), schema=SCHEMA)
    for number in range(1, 51):
        imaged.table("t").commit([add(f"f{number}")], operation="WRITE")
    assert images(imaged) == [(50, 50)]


def test_a_snapshot_in_memory_answers_predicates_as_the_database_does(catalog: Catalog) -> None:
    write_catalog(RECIPE, catalog.store, name="t", location="/nowhere")
    table = catalog.table("t")
    days = table.snapshot().to_arrow()["partition_values"].to_pylist()
    day = orjson.loads(days[len(days) // 2])["date"]
    known = table.snapshot(version=RECIPE.last - 12)
    known.to_arrow()
    for where in ("id BETWEEN 100000150000 AND 100000260000", f"date = DATE'{day}'", "amount < 0", "product > 'f'"):
        known.to_arrow(where=where)  # from here on the bounds move with the snapshot
    now = known.refresh()
    assert now.version == RECIPE.last
    for where in (
        "id BETWEEN 100000150000 AND 100000299999",
        f"date >= DATE'{day}' AND id < 100000299000",
        "amount < 0",
    ):
        in_memory, by_rows = now.to_arrow(where=where), table.snapshot().to_arrow(where=where)
        assert sorted(in_memory["path"].to_pylist()) == sorted(by_rows["path"].to_pylist())
        assert in_memory.schema == by_rows.schema
