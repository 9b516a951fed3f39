"""Tags: many tables at one moment, held together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import add, create, paths

from mainstem import Catalog, TableNotFound, UsageError, VersionNotFound


@pytest.fixture
def two(catalog: Catalog, tmp_path: Path) -> Catalog:
    """Two tables, the first at version 1 and the second at version 0."""
    create(catalog, tmp_path, name="orders").commit([add("a")], operation="WRITE")
    create(catalog, tmp_path, name="items")
    return catalog


def test_a_tag_names_the_head_of_every_table(two: Catalog) -> None:
    tag = two.tag("eod", remark="end of day")
    assert (dict(tag.versions), tag.remark) == ({"orders": 1, "items": 0}, "end of day")
    two.table("orders").commit([add("b")], operation="WRITE")
    assert paths(two.table("orders")) == {"a", "b"}
    snapshot = two.table("orders").snapshot(tag="eod")
    assert snapshot.version == 1
    assert [found.name for found in two.tags()] == ["eod"]


def test_a_tag_may_name_some_tables_only(two: Catalog) -> None:
    assert dict(two.tag("half", tables=["items"]).versions) == {"items": 0}
    with pytest.raises(VersionNotFound, match="'half' does not name a version of orders"):
        two.table("orders").snapshot(tag="half")


def test_a_tag_never_moves_and_can_be_taken_away(two: Catalog) -> None:
    two.tag("eod")
    two.table("orders").commit([add("b")], operation="WRITE")
    with pytest.raises(UsageError, match="already"):
        two.tag("eod")
    assert two.tags()[0].versions["orders"] == 1
    two.untag("eod")
    assert two.tags() == []
    assert two.tag("eod").versions["orders"] == 2


def test_a_tag_of_nothing_or_of_a_table_that_is_not_there_is_refused(two: Catalog) -> None:
    with pytest.raises(TableNotFound, match="nowhere"):
        two.tag("eod", tables=["orders", "nowhere"])
    with pytest.raises(UsageError, match="tag cannot be called"):
        two.tag("")
    with pytest.raises(UsageError, match="no tag 'eod'"):
        two.untag("eod")
    assert two.tags() == []


@pytest.mark.parametrize("name", ['a"; drop table dl_tags;--', "o'clock", "grün ✓ 🎉", "x" * 1000])
def test_any_name_comes_back_as_it_was(two: Catalog, name: str) -> None:
    two.tag(name)
    assert [tag.name for tag in two.tags()] == [name]
    assert two.table("orders").snapshot(tag=name).version == 1


def test_promoting_a_tag_restores_all_of_its_tables_in_one_transaction(two: Catalog, tmp_path: Path) -> None:
    for name in ("orders", "items"):
        file = tmp_path / name / "day=2026-11-18" / "a.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    two.tag("eod")
    two.table("orders").commit([add("b")], operation="WRITE")
    two.table("items").commit([add("a")], operation="WRITE")
    done = two.promote("eod", committer="ann")
    assert {name: each.version for name, each in done.items()} == {"orders": 3, "items": 2}
    assert len({each.group_id for each in done.values()}) == 1
    assert (paths(two.table("orders")), paths(two.table("items"))) == ({"a"}, set())
    with pytest.raises(UsageError, match="names no version of elsewhere"):
        two.promote("eod", tables=["elsewhere"])


def test_a_restore_whose_files_are_gone_is_refused_and_writes_nothing(two: Catalog) -> None:
    from tables import remove

    two.table("orders").commit([remove("a")], operation="DELETE")
    with pytest.raises(VersionNotFound, match=r"1 of its files are gone, day=2026-11-18/a\.parquet"):
        two.table("orders").restore(version=1)
    assert two.table("orders").version == 2


def test_a_restore_whose_deletion_vector_is_gone_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    from tables import remove

    table = create(catalog, tmp_path, delta__enableDeletionVectors="true")
    file = Path(table.location) / "day=2026-11-18" / "a.parquet"
    file.parent.mkdir()
    file.write_bytes(b"x")
    vector = {
        "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6
    }  # fmt: skip
    table.commit([add("a", deletionVector=vector)], operation="DELETE")
    table.commit([remove("a", deletionVector=vector)], operation="DELETE")
    name = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    with pytest.raises(VersionNotFound, match=f"1 of its files are gone, {name}"):
        table.restore(version=1)
    (Path(table.location) / name).parent.mkdir()
    (Path(table.location) / name).write_bytes(b"x")
    assert table.restore(version=1).version == 3
