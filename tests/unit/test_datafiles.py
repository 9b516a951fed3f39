"""Files in a table's folder: whose they are, however a path is spelled."""

from __future__ import annotations

import json
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from mainstem.datafiles import Placed, inside, list_files, on_disk, own_files, placed, vector_files
from mainstem.deltalog.location import Location, open_location, place_of
from mainstem.errors import CorruptCatalog, UsageError


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("s3://b/t", "s3a://b/t/x.parquet"),
        ("s3a://b/t", "s3n://b/t/x.parquet"),
        ("s3n://b/t", "S3://b/t//x.parquet"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfs://c@a.dfs.core.windows.net/t/x.parquet"),
        ("gs://b/ü", "gs://b/%C3%BC/x.parquet"),
    ],
)
def test_a_file_is_inside_whatever_its_scheme_and_escapes_are_called(folder: str, path: str) -> None:
    assert list(inside(path, Location(folder, MemoryStore(), None))) == ["x.parquet"]


@pytest.mark.parametrize(
    "path",
    [
        "sub/b c.parquet", "./sub/b%20c.parquet", "sub//b%20c.parquet", "sub/x/../b%20c.parquet", "sub/./b%20c.parquet",
        "sub/%2E/b%20c.parquet", "x/%2e%2e/sub/b c.parquet", "sub%2F%2Fb%20c.parquet",
        "s3a://b/t/x/%2e%2e/sub//b c.parquet",
    ],
)  # fmt: skip
def test_all_spellings_of_a_path_are_one_file_on_disk(path: str) -> None:
    assert list(inside(path, Location("s3://b/t", MemoryStore(), None))) == ["sub/b c.parquet"]
    if not path.startswith("s3a:"):
        assert on_disk(path) == "sub/b c.parquet"


def test_what_is_no_escape_and_no_dot_stays_in_a_name() -> None:
    for path in ("100%.parquet", "day=1+1/..a", "...", "é"):
        assert on_disk(path) == path


def test_a_file_of_another_bucket_or_of_a_folder_whose_name_goes_on_is_elsewhere() -> None:
    place = Location("s3://b/t", MemoryStore(), None)
    for path in ("s3a://c/t/x.parquet", "s3a://b/t2/x.parquet", "gs://b/t/x.parquet", "s3://b/t"):
        assert list(inside(path, place)) == []


def test_a_file_is_inside_by_the_link_and_by_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real table").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real table")
    place = open_location(str(tmp_path / "link"))
    for folder in ("link", "real%20table"):
        assert list(inside(f"file:{tmp_path}/{folder}/day=1%2F2/x.parquet", place)) == ["day=1/2/x.parquet"]
    assert place_of(str(tmp_path / "link") + "/") == place_of(f"file://{tmp_path}/real%20table")


def test_a_file_is_inside_by_any_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "table" / "sub").mkdir(parents=True)
    (tmp_path / "table" / "sub" / "e f.parquet").write_bytes(b"x")
    (tmp_path / "alias").symlink_to(tmp_path / "table")
    (tmp_path / "table" / "short").symlink_to("sub")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "table" / "out").symlink_to(tmp_path / "elsewhere")
    place = open_location(str(tmp_path / "table"))
    for name in ("alias/sub", "alias/short", "table/short", "alias/./x/..//sub"):
        for scheme in ("file:", "file://", ""):
            assert list(inside(f"{scheme}{tmp_path}/{name}/e%20f.parquet", place)) == ["sub/e f.parquet"]
    assert list(inside(f"file:{tmp_path}/elsewhere/e.parquet", place)) == []
    assert list(inside(f"file:{tmp_path}/table/out/../sub/e%20f.parquet", place)) == ["sub/e f.parquet"]
    assert list(inside("file:/a%00b", place)) == []
    vector = {"storageType": "p", "pathOrInlineDv": f"file:{tmp_path}/alias/sub/%2E/v.bin"}
    assert list(vector_files(json.dumps(vector), place)) == ["sub/v.bin"]


def test_a_path_through_a_linked_folder_has_both_names_and_is_placed_where_a_listing_shows_it(tmp_path: Path) -> None:
    (tmp_path / "t" / "sub").mkdir(parents=True)
    (tmp_path / "t" / "sub" / "a.parquet").write_bytes(b"123")
    (tmp_path / "t" / "short").symlink_to("sub")
    place = open_location(str(tmp_path / "t"))
    assert list(inside("short/a.parquet", place)) == ["short/a.parquet", "sub/a.parquet"]
    assert list(inside("sub/a.parquet", place)) == ["sub/a.parquet"]
    assert placed("short/a.parquet", place) == Placed("sub/a.parquet", None)
    assert placed("a.parquet", place) == Placed("a.parquet", None)
    assert {file.path for file in list_files(place)} == {"sub/a.parquet"}


def test_a_file_behind_a_link_that_leads_out_of_the_table_is_looked_for_by_itself(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.parquet").write_bytes(b"123")
    (tmp_path / "t" / "out").symlink_to(tmp_path / "elsewhere")
    place = open_location(str(tmp_path / "t"))
    assert placed("out/a.parquet", place) == Placed("out/a.parquet", 3)
    assert placed("out/gone.parquet", place) == Placed("out/gone.parquet", None)


def test_the_folder_of_a_deletion_vector_has_one_spelling() -> None:
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    for folder in ("a/b", "./a//b", "a/x/../b/."):
        vector = {"storageType": "u", "pathOrInlineDv": f"{folder}^-aqEH.-t@S}}K{{vb[*k^"}
        assert list(vector_files(json.dumps(vector), Location("s3://b/t", MemoryStore(), None))) == [f"a/b/{name}"]


def test_one_place_has_one_spelling_in_a_store_too() -> None:
    assert place_of("s3a://b/t/") == place_of("s3://b//t") != place_of("s3://b/T")


def test_folders_of_other_tables_are_not_listed_as_ones_own() -> None:
    store = MemoryStore()
    for name in ("_delta_log/0.json", "p=1/a", "z/b", "z/_delta_log/0.json", "z/deep/c", "known/d", "known2/e", ".f"):
        obstore.put(store, name, b"x")
    place = Location("s3://b/t", store, None)
    assert {file.path for file in own_files(place, {"known"})} == {"p=1/a", "known2/e"}
    assert {file.path for file in list_files(place)} == {"p=1/a", "z/b", "z/deep/c", "known/d", "known2/e"}


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"storageType":"u","pathOrInlineDv":7}',
                                  '{"storageType":"u","pathOrInlineDv":"short"}'])  # fmt: skip
def test_what_is_no_deletion_vector_is_told_as_damage(text: str) -> None:
    with pytest.raises(CorruptCatalog, match="none of Delta's"):
        list(vector_files(text, Location("s3://b/t", MemoryStore(), None)))


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    location = open_location(str(tmp_path / "t"))
    (tmp_path / "t" / "a.parquet").write_bytes(b"12")
    assert [(file.path, file.size_bytes) for file in list_files(location)] == [("a.parquet", 2)]
    with pytest.raises(UsageError, match="cannot be listed") as caught:
        list(list_files(location, folder="a.parquet"))
    assert str(tmp_path / "t") in str(caught.value)
