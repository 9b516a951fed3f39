"""Paths in full and back: what a mount without viewfs shows to Delta, and what it makes of Delta's answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mainstem.deltalog import parse_commit, serialize_commit
from mainstem.deltalog.location import Location, open_location
from mainstem.mount.absolute import FullPaths, raw_root
from mainstem.mount.folder import Folder

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
FILE = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.fixture
def place(tmp_path: Path) -> Location:
    folder = tmp_path / "a b%20c # ü's"
    folder.mkdir()
    return open_location(str(folder))


def commit(*actions: dict[str, Any]) -> list[Any]:
    data = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions).encode()
    return parse_commit(data, file="0.json", table_root="file:///t")


def add(path: str, vector: dict[str, Any] | None = None) -> dict[str, Any]:
    body = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": body if vector is None else {**body, "deletionVector": vector}}


def remove(path: str, vector: dict[str, Any] | None = None) -> dict[str, Any]:
    body = {"path": path, "deletionTimestamp": 1, "dataChange": True}
    return {"remove": body if vector is None else {**body, "deletionVector": vector}}


def test_a_root_is_encoded_as_java_encodes_it(place: Location) -> None:
    assert raw_root(place).endswith("/a%20b%2520c%20%23%20ü's")
    remote = Location("s3://lake/a%20b/n%C3%A4me", place.store, None)
    assert raw_root(remote) == "s3a://lake/a%20b/näme"


def test_what_the_table_has_comes_back_as_it_was(place: Location) -> None:
    paths, root = FullPaths(place, inside="mainstem-x"), raw_root(place)
    inline = {**VECTOR, "storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    mine = commit(
        add("p=a%20b/1.parquet", VECTOR),
        remove("2.parquet", inline),
        add("s3://other/3.parquet", {**VECTOR, "storageType": "p", "pathOrInlineDv": "s3://other/dv.bin"}),
        add(f"{root}/4.parquet"),
        {"cdc": {"path": "_change_data/5.parquet", "partitionValues": {}, "size": 1, "dataChange": False}},
        {"txn": {"appId": "a", "version": 1}},
    )
    shown = paths.actions(mine)
    told = [next(iter(json.loads(line).values())) for line in serialize_commit(shown).splitlines()]
    assert [each.get("path") for each in told] == [
        f"{root}/p=a%20b/1.parquet", f"{root}/2.parquet", "s3://other/3.parquet", f"{root}/4.parquet",
        f"{root}/_change_data/5.parquet", None,
    ]  # fmt: skip
    assert told[0]["deletionVector"] == {**VECTOR, "storageType": "p", "pathOrInlineDv": f"{root}/ab/{FILE}"}
    assert paths.back(shown, table_root="file:///t") == mine


def test_what_delta_has_written_lies_in_the_folder_inside_of_the_table(place: Location) -> None:
    paths = FullPaths(place, inside="mainstem-x")
    new = {**VECTOR, "pathOrInlineDv": VECTOR["pathOrInlineDv"][2:]}
    found = paths.back(commit(add("p=1/new.parquet"), add("7.parquet", new)), table_root="file:///t")
    expected = commit(
        add("mainstem-x/p=1/new.parquet"),
        add("mainstem-x/7.parquet", {**new, "pathOrInlineDv": f"mainstem-x{new['pathOrInlineDv']}"}),
    )
    assert found == expected


def test_rows_of_a_state_are_shown_like_actions(place: Location) -> None:
    paths, root = FullPaths(place), raw_root(place)
    rows = pa.table({"path": ["1.parquet", "s3://x/2.parquet"], "deletion_vector": [json.dumps(VECTOR), None]})
    shown = paths.rows(rows).to_pydict()
    assert shown["path"] == [f"{root}/1.parquet", "s3://x/2.parquet"]
    assert json.loads(shown["deletion_vector"][0])["pathOrInlineDv"] == f"{root}/ab/{FILE}"


def test_a_folder_of_scratch_is_written_read_listed_and_dropped(tmp_path: Path) -> None:
    home = Folder(tmp_path / "home")
    assert home.folders() == []
    (home / "one").make().write("owner", "me")
    assert (home.folders(), (home / "one").read("owner")) == (["one"], "me")
    with pytest.raises(FileNotFoundError):
        (home / "one").read("nothing")
    (home / "one").drop_if_empty()
    assert home.folders() == ["one"]
    for _ in range(2):
        (home / "one").drop()
    assert home.folders() == []
