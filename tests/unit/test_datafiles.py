"""Files in a table's folder: whose they are, however a path is spelled."""

from __future__ import annotations

from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from mainstem.datafiles import inside, list_files, own_files, vector_files
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
