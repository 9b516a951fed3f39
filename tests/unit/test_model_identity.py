"""When two paths are one file, and the keys that follow from it. The pairs were measured on Delta Spark 4.4."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.errors import CorruptLog
from mainstem.identity import (
    app_key,
    bucket_and_key,
    canonical_path,
    dv_unique_id,
    file_key,
    is_absolute,
    path_bucket,
    refuse_escape,
)
from mainstem.model import RemoveFile, Txn, draft_of

ROOT = "file:///lake/t"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/lake/x.parquet", "file:///lake/x.parquet"),
        ("/lake/x.parquet", "file:/lake/x.parquet"),
        ("file:/lake/x.parquet", "FILE:///lake/x.parquet"),
        ("./x.parquet", "x.parquet"),
        ("a//x.parquet", "a/x.parquet"),
        ("a/../x.parquet", "x.parquet"),
        ("a/./x.parquet", "a/x.parquet"),
        ("a%3ab.parquet", "a%3Ab.parquet"),
        ("a b.parquet", "a%20b.parquet"),
        ("100%.parquet", "100%25.parquet"),
        ("/some/unqualified/with%20space/p@%23h", "file:///some/unqualified/with%20space/p@%23h"),
    ],
)
def test_spellings_that_delta_takes_for_one_file_are_one_file(one: str, other: str) -> None:
    assert canonical_path(one, ROOT) == canonical_path(other, ROOT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.parquet", "file:///lake/t/x.parquet"),
        ("x.parquet", "/lake/t/x.parquet"),
        ("%41.parquet", "A.parquet"),
        ("é.parquet", "%C3%A9.parquet"),
        ("a%2Fb.parquet", "a/b.parquet"),
        ("a.parquet", "b.parquet"),
        ("s3://one/x", "s3://other/x"),
        ("A.parquet", "a.parquet"),
    ],
)
def test_spellings_that_delta_takes_for_two_files_are_two_files(one: str, other: str) -> None:
    assert canonical_path(one, ROOT) != canonical_path(other, ROOT)


def test_a_path_that_starts_with_a_slash_is_on_the_file_system_of_the_table() -> None:
    assert canonical_path("/x", "s3://bucket/t") == canonical_path("s3://bucket/x", "s3://bucket/t")
    assert canonical_path("/x", "/lake/t") == canonical_path("file:/x", "file:/lake/t")


def test_a_colon_in_a_partition_value_is_no_scheme() -> None:
    path = "time=1971-07-22T03:06:40.000000Z/part-0.parquet"
    assert not is_absolute(path)
    assert canonical_path(path, ROOT) == path


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1))
def test_the_canonical_path_of_a_canonical_path_is_itself(path: str) -> None:
    once = canonical_path(path, ROOT)
    assert canonical_path(once, ROOT) == once


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "../../etc/x",
        "a/../../x",
        "%2e%2e/x",
        "%2E%2e%2fx",
        "a/%2e./../x",
        ".%2E/x",
        "./../x",
        "x:../../y",
        "..",
    ],
)
def test_a_relative_path_that_climbs_out_is_refused_with_its_place(path: str) -> None:
    with pytest.raises(CorruptLog, match=r"00\.json, line 7") as caught:
        refuse_escape(path, file="00.json", line=7)
    assert caught.value.details["file"] == "00.json"
    assert caught.value.details["line"] == 7


@pytest.mark.parametrize(
    "path", ["a/../x", "..a/x", "a..", "a/..b", "..\\x", "%252e%252e/x", "file:/etc/passwd", "/etc/../x", "s3://b/../x"]
)
def test_a_path_that_stays_inside_or_is_absolute_is_legal(path: str) -> None:
    refuse_escape(path, file="00.json", line=1)


def test_keys_have_their_sizes_and_never_change() -> None:
    # These bytes are in catalogs: a change of the hash makes every stored key wrong.
    assert file_key("a/b.parquet", None).hex() == "f790c7387af65f1aeaeb03c7610a5676"
    assert file_key("a/b.parquet", "uabc@1").hex() == "1f0da9991a026f3ddae44b9e142255de"
    assert path_bucket("a/b.parquet") == 241
    assert app_key("app").hex() == "dae0b89ba4f982fd3e5bbc594b64aa2b"


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_a_bucket_is_one_of_256_and_a_key_has_16_bytes(path: str) -> None:
    assert 0 <= path_bucket(path) <= 255
    assert len(file_key(path, None)) == len(app_key(path)) == 16


def test_a_file_without_and_with_an_empty_deletion_vector_id_are_two() -> None:
    assert len({file_key("ab", None), file_key("ab", ""), file_key("a", "b"), file_key("a", None)}) == 4


def test_the_id_of_a_deletion_vector_has_an_offset_only_where_there_is_one() -> None:
    assert dv_unique_id("u", "ab^-aqEH", 4) == "uab^-aqEH@4"
    assert dv_unique_id("u", "ab^-aqEH", 0) == "uab^-aqEH@0"
    assert dv_unique_id("i", "wi5b", None) == "iwi5b"


def test_a_path_of_3000_bytes_has_a_key_like_any_other() -> None:
    assert len(file_key(canonical_path("p=" + "x" * 3000, ROOT), None)) == 16


def test_an_action_cannot_be_changed() -> None:
    txn = Txn(1, "app", app_key("app"), 7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        txn.txn_version = 8  # type: ignore[misc]


def test_a_draft_becomes_the_immutable_value_that_it_stands_for() -> None:
    made = draft_of(RemoveFile)(3, "p", 7, b"k", None, 5, True, size_bytes=9)
    made.__class__ = RemoveFile
    by_hand = RemoveFile(3, "p", 7, b"k", None, 5, True, size_bytes=9)
    assert (made, hash(made), repr(made)) == (by_hand, hash(by_hand), repr(by_hand))
    assert dataclasses.replace(made, seq=4) == dataclasses.replace(by_hand, seq=4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.seq = 4  # type: ignore[misc]


@given(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1)
    | st.sampled_from(["a%41", "/x", "s3://b/k", "a%3ab"]),
    st.none() | st.text(alphabet="uip@0123", max_size=9),
)
def test_bucket_and_key_together_are_the_same_as_each_alone(path: str, dv_id: str | None) -> None:
    canonical = canonical_path(path, ROOT)
    assert bucket_and_key(path, dv_id, ROOT) == (path_bucket(canonical), file_key(canonical, dv_id))
