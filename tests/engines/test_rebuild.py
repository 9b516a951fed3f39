"""Rebuilding: the log from the catalog, the catalog from the log, each verified, neither over what is there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs import change
from deltalake import DeltaTable, write_deltalake
from tables import add, create, everything, paths, remove

from mainstem import Catalog, Table, UsageError, open_catalog
from mainstem.cli import main
from mainstem.errors import CorruptCatalog


def committed(catalog: Catalog, folder: Path) -> Table:
    """A table of 13 versions that the catalog leads."""
    table = create(catalog, folder)
    for number in range(10):
        table.commit([add(f"f{number}")], operation="WRITE")
    table.commit([remove("f0"), add("g", stats='{"numRecords":1}')], operation="UPDATE", read_version=10)
    table.commit([{"txn": {"appId": "etl", "version": 7}}, add("h")], operation="WRITE")
    return table


def log_of(root: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((root / "_delta_log").glob("*.json"))}


def by_deltars(root: Path) -> set[str]:
    return {Path(path).stem for path in DeltaTable(root).file_uris()}


def test_a_log_that_is_gone_comes_back_byte_for_byte(catalog: Catalog, tmp_path: Path) -> None:
    table = committed(catalog, tmp_path)
    root = Path(table.location)
    before, times = log_of(root), table.history()
    shutil.rmtree(root / "_delta_log")
    done = catalog.rebuild_log("sales.orders")
    assert (done.first_version, done.version, done.commits, done.exact) == (0, 12, 13, 13)
    assert (done.checkpoints, done.files) == ((10,), 11)
    assert log_of(root) == before
    for entry, [_, data] in zip(reversed(times), before.items(), strict=True):
        with catalog.store.reading() as queries:
            row = queries.row("version_row", table_id=table.info().table_id, version=entry.version)
        assert row is not None
        assert sha256(data).hexdigest() == row["content_sha256"]
    assert by_deltars(root) == paths(table)
    assert not [found for found in table.validate().findings if not found.check.startswith("data_file")]
    table.commit([add("i")], operation="WRITE")
    assert by_deltars(root) == paths(table)


def test_a_copy_of_the_log_goes_into_an_empty_folder_and_the_table_is_not_touched(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = committed(catalog, tmp_path)
    rows, before = everything(catalog), log_of(Path(table.location))
    done = catalog.rebuild_log("sales.orders", to=str(tmp_path / "copy"))
    assert done.location == str(tmp_path / "copy")
    assert log_of(tmp_path / "copy") == before
    assert by_deltars(tmp_path / "copy") == paths(table)
    assert DeltaTable(tmp_path / "copy").version() == table.version
    assert DeltaTable(tmp_path / "copy", version=4).version() == 4
    assert everything(catalog) == rows


def test_a_folder_that_is_not_empty_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    table = committed(catalog, tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").write_text("x")
    before = log_of(Path(table.location))
    for to in (None, table.location, str(tmp_path / "other")):
        with pytest.raises(UsageError, match="is not empty"):
            catalog.rebuild_log("sales.orders", to=to)
    assert log_of(Path(table.location)) == before
    assert [file.name for file in (tmp_path / "other").iterdir()] == ["precious"]


def test_versions_that_were_never_published_are_in_the_log_that_comes_back(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    create(catalog, tmp_path).commit([add("a")], operation="WRITE")
    with open_catalog(catalog_uri, publish_on_commit=False) as slow:
        table = slow.table("sales.orders")
        table.commit([add("b")], operation="WRITE")
        shutil.rmtree(Path(table.location) / "_delta_log")
        slow.rebuild_log("sales.orders")
        assert (table.info().published_version, by_deltars(Path(table.location))) == (2, {"a", "b"})


def test_a_table_whose_old_versions_have_expired_begins_with_a_checkpoint(catalog: Catalog, tmp_path: Path) -> None:
    table = committed(catalog, tmp_path)
    table.expire(before_version=11)
    done = catalog.rebuild_log("sales.orders", to=str(tmp_path / "copy"))
    assert (done.first_version, done.version, done.exact, done.checkpoints) == (11, 12, 2, (11,))
    assert by_deltars(tmp_path / "copy") == paths(table)
    with open_catalog(f"sqlite:///{tmp_path}/second.db") as second:
        second.migrate()
        second.import_table(str(tmp_path / "copy"), name="copy")
        for version in (11, 12):
            assert paths(second.table("copy"), version=version) == paths(table, version=version)


def test_an_imported_log_comes_back_with_the_same_actions_and_the_same_times(catalog: Catalog, tmp_path: Path) -> None:
    root = tmp_path / "t"
    for start in (0, 10):
        write_deltalake(root, pa.table({"id": list(range(start, start + 10))}), mode="append")
    DeltaTable(root).delete("id = 3")
    catalog.import_table(str(root), name="t")
    before = {line: json.loads(line) for data in log_of(root).values() for line in data.splitlines()}
    times = [entry.committed_at for entry in catalog.table("t").history()]
    live = by_deltars(root)
    shutil.rmtree(root / "_delta_log")
    done = catalog.rebuild_log("t")
    assert (done.version, by_deltars(root)) == (2, live)
    after = [json.loads(line) for data in log_of(root).values() for line in data.splitlines()]
    assert sorted(map(str, after)) == sorted(map(str, before.values()))
    assert catalog.table("t").validate().success
    catalog.import_table(str(root), name="again")
    assert [entry.committed_at for entry in catalog.table("again").history()] == times
    assert catalog.table("t").follow().versions == 0


def test_rows_that_are_not_what_was_committed_make_no_log(catalog: Catalog, tmp_path: Path) -> None:
    table = committed(catalog, tmp_path)
    change(catalog, "UPDATE dl_add_files SET size_bytes = 7 WHERE version = 3")
    shutil.rmtree(Path(table.location) / "_delta_log")
    with pytest.raises(CorruptCatalog, match=r"version 3 of sales\.orders are not those that were committed"):
        catalog.rebuild_log("sales.orders")


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(f"sqlite:///{tmp_path}/empty.db") as opened:
        opened.migrate()
        yield opened


def test_a_catalog_comes_back_from_the_log_and_leads_again(catalog: Catalog, empty: Catalog, tmp_path: Path) -> None:
    table = committed(catalog, tmp_path)
    was = {version: paths(table, version=version) for version in range(1, 13)}
    done = empty.rebuild_table(table.location, name="sales.orders", authority="catalog")
    assert (done.first_version, done.version) == (0, 12)
    back = empty.table("sales.orders")
    assert back.authority == "catalog"
    assert {version: paths(back, version=version) for version in was} == was
    assert back.snapshot().app_transactions == {"etl": 7}
    back.commit([add("i")], operation="WRITE")
    assert by_deltars(Path(table.location)) == paths(back) == was[12] | {"i"}
    with pytest.raises(UsageError, match="already has a table"):
        empty.rebuild_table(table.location, name="sales.orders")


def test_a_fenced_table_can_be_cut_over_again(catalog: Catalog, empty: Catalog, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_deltalake(root, pa.table({"id": [1]}))
    catalog.import_table(str(root), name="t")
    catalog.table("t").cutover(fence=True)
    empty.rebuild_table(str(root), name="t", authority="catalog")
    assert empty.table("t").authority == "catalog"
    empty.table("t").commit([add("a", path="a.parquet", partitionValues={})], operation="WRITE")


def test_the_commands_bring_all_tables_back(
    catalog: Catalog, catalog_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = committed(catalog, tmp_path)
    create(catalog, tmp_path, name="b").rollback()
    catalog.close()

    def run(*given: str, to: str = catalog_uri) -> tuple[int, str]:
        return main([*given, "--catalog", to, "--json"]), capsys.readouterr().out

    code, listed = run("tables")
    (tmp_path / "tables.json").write_text(listed)
    shutil.rmtree(Path(table.location) / "_delta_log")
    assert run("rebuild-log", "sales.orders")[0] == 0
    assert run("rebuild-log", "sales.orders")[0] == 2
    other = f"sqlite:///{tmp_path}/other.db"
    code, out = run("rebuild-catalog", "--tables", str(tmp_path / "tables.json"), to=other)
    assert (code, [(row["name"], row["version"]) for row in json.loads(out)]) == (0, [("b", 1), ("sales.orders", 12)])
    _, out = run("tables", to=other)
    assert [(row["name"], row["authority"]) for row in json.loads(out)] == [("b", "log"), ("sales.orders", "catalog")]
    again = json.loads(run("rebuild-catalog", "--tables", str(tmp_path / "tables.json"), to=other)[1])
    assert [(row["name"], row["outcome"], row["version"]) for row in again] == [
        ("b", "there", 1), ("sales.orders", "there", 13),
    ]  # fmt: skip
    third = f"sqlite:///{tmp_path}/third.db"
    assert run("rebuild-catalog", str(tmp_path / "b"), "--name", "b", to=third)[0] == 0
    assert run("rebuild-catalog", to=third)[0] == 2
    (tmp_path / "tables.json").write_text("{}")
    assert run("rebuild-catalog", "--tables", str(tmp_path / "nowhere.json"), to=third)[0] == 2


def test_one_table_that_does_not_come_back_does_not_hold_up_the_others_and_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri, other = (f"sqlite:///{tmp_path}/{name}.db" for name in ("lake", "other"))
    with open_catalog(uri) as lake:
        lake.migrate()
        for name in "abc":
            create(lake, tmp_path, name=name)
    assert main(["tables", "--catalog", uri, "--json"]) == 0
    (tmp_path / "tables.json").write_text(capsys.readouterr().out)
    with open_catalog(other) as begun:  # a run that was killed before it cut the first one over
        begun.migrate()
        begun.import_table(str(tmp_path / "a"), name="a")
    (tmp_path / "b").rename(tmp_path / "away")

    def outcomes(code: int) -> dict[str, str]:
        given = ["rebuild-catalog", "--tables", str(tmp_path / "tables.json"), "--catalog", other, "--json"]
        assert main(given) == code
        return {row["name"]: row["outcome"] for row in json.loads(capsys.readouterr().out)}

    assert outcomes(2) == {"a": "there", "b": "failed", "c": "rebuilt"}
    (tmp_path / "away").rename(tmp_path / "b")
    assert outcomes(0) == {"a": "there", "b": "rebuilt", "c": "there"}
    with open_catalog(other) as back:
        assert {info.authority for info in back.tables()} == {"catalog"}
