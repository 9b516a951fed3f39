"""A log on disk: listing it, reading its files, its hint, its location and what its protocol asks of a reader."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.location import open_location
from mainstem.deltalog.protocol import refuse_unreadable, require_protocol_and_metadata
from mainstem.errors import CorruptLog, UnsupportedFeature, UsageError, VersionNotFound
from mainstem.model import Metadata, Protocol


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder with an empty log."""
    root = tmp_path / "a table é"
    (root / "_delta_log").mkdir(parents=True)
    return root


def write(table: Path, name: str, content: bytes | str = b"{}") -> None:
    path = table / "_delta_log" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit(table: Path, version: int, content: bytes | str = b"{}") -> None:
    write(table, f"{version:020d}.json", content)


def test_a_listing_has_the_commits_with_their_sizes_and_times(table: Path) -> None:
    commit(table, 1, b"12345")
    commit(table, 0)
    write(table, "_sidecars/00000000000000000007.json")
    write(table, "_staged_commits/00000000000000000008.json")
    listing = LogDirectory.open(str(table)).list()
    assert [found.version for found in listing.commits] == [0, 1]
    assert listing.commits[1].file.size_bytes == 5
    modified = (table / "_delta_log" / listing.commits[1].file.name).stat().st_mtime_ns // 1_000_000
    assert listing.commits[1].file.modified_ms == modified


def test_a_listing_may_start_at_a_version(table: Path) -> None:
    for version in (0, 1, 2, 3):
        commit(table, version)
    log = LogDirectory.open(str(table))
    assert [found.version for found in log.list(from_version=2).commits] == [2, 3]
    assert log.list(from_version=4).commits == ()


def test_a_folder_without_a_log_is_no_delta_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no _delta_log"):
        LogDirectory.open(str(tmp_path)).list()


@pytest.mark.parametrize("name", [None, "_last_checkpoint", "00000000000000000000.crc"])
def test_a_log_without_a_commit_is_refused(table: Path, name: str | None) -> None:
    if name:
        write(table, name)
    with pytest.raises(CorruptLog, match="no commit and no complete checkpoint"):
        LogDirectory.open(str(table)).list()


def test_a_file_that_went_away_since_the_listing_says_so(table: Path) -> None:
    commit(table, 0)
    log = LogDirectory.open(str(table))
    with pytest.raises(VersionNotFound, match=r"00000000000000000001\.json is not there"):
        log.read(1)
    with pytest.raises(VersionNotFound, match="is not there"):
        log.open_file("00000000000000000001.checkpoint.parquet")


def test_a_large_commit_arrives_in_chunks_and_whole(table: Path) -> None:
    content = bytes(range(256)) * 80_000
    commit(table, 0, content)
    log = LogDirectory.open(str(table))
    assert len(list(log.stream(0))) > 1
    assert b"".join(log.stream(0)) == log.read(0) == content


@pytest.mark.parametrize("name", ["_delta_log", "_delta_log/_sidecars"])
def test_a_symbolic_link_in_place_of_the_log_is_refused(tmp_path: Path, table: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = table / name
    if place.is_dir():
        place.rmdir()
    place.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is a symbolic link, which is not followed"):
        LogDirectory.open(str(table))
    assert list(elsewhere.iterdir()) == []


def test_a_link_to_the_whole_table_is_followed(tmp_path: Path, table: Path) -> None:
    commit(table, 0)
    (tmp_path / "link").symlink_to(table)
    assert len(LogDirectory.open(str(tmp_path / "link")).list().commits) == 1


def test_the_hint_is_taken_where_the_listing_confirms_it(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(table, f"{3:020d}.checkpoint.parquet")
    log = LogDirectory.open(str(table))
    assert log.last_checkpoint_hint(log.list()) is None
    write(table, "_last_checkpoint", '{"version":3,"size":1}')
    assert log.last_checkpoint_hint(log.list()) == 3
    assert caplog.records == []


@pytest.mark.parametrize(
    "hint",
    [
        b"",
        b"{",
        b"null",
        b"[3]",
        b"{}",
        b'{"version":"3"}',
        b'{"version":true}',
        b'{"version":3.0}',
        b'{"version":-3}',
        b'{"version":2}',
        b'{"version":%d}' % 10**18,
        b'{"version":%d}' % 10**30,
        b'{"version":3}x',
        b"\xff\xfe",
        b"\xef\xbb\xbf" + b'{"version":3}',
        b'{"version":3,"x":' + b"[" * 100_000,
    ],
)
def test_a_hint_that_is_broken_or_wrong_is_ignored_with_a_warning(
    table: Path, caplog: pytest.LogCaptureFixture, hint: bytes
) -> None:
    commit(table, 3)
    write(table, f"{3:020d}.checkpoint.parquet")
    write(table, "_last_checkpoint", hint)
    log = LogDirectory.open(str(table))
    with caplog.at_level(logging.WARNING):
        assert log.last_checkpoint_hint(log.list()) is None
    assert "last_checkpoint.ignored" in caplog.text


def test_one_folder_has_one_uri_however_it_is_spelled(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    quoted = table.as_uri().removeprefix("file://")
    spellings = [
        str(table),
        f"{table}/",
        f"{table}/.",
        f"{table}/_delta_log/..",
        table.name,
        f"./{table.name}",
        f"file:{quoted}",
        f"file://{quoted}",
        f"file://localhost{quoted}/",
        f"FILE://{quoted}",
        f"file:{table}",
    ]
    assert {open_location(spelling).uri for spelling in spellings} == {table.as_uri()}
    assert {open_location(spelling).local for spelling in spellings} == {table}


@pytest.mark.parametrize(
    "location",
    [
        "",
        "a\0b",
        "file://host/x",
        "hdfs://host/x",
        "https://host/x",
        "/no/such/folder",
        "file:///no/such/folder",
        "file:///tmp?x",
        "file:///tmp#x",
        "s3://",
    ],
)
def test_a_location_that_cannot_be_opened_is_a_usage_error(location: str) -> None:
    with pytest.raises(UsageError):
        open_location(location)


@pytest.mark.parametrize("location", ["s3://bucket/t", "s3a://bucket/t/", "S3://bucket/t", "gs://bucket/t"])
def test_an_object_store_is_opened_by_its_uri_without_a_request(location: str) -> None:
    found = open_location(location)
    assert (found.uri, found.local) == (location.rstrip("/"), None)


def test_a_password_in_a_location_is_not_shown() -> None:
    with pytest.raises(UsageError) as caught:
        open_location("ftp://user:geheim@host/x")
    assert "geheim" not in json.dumps(caught.value.as_dict())


def protocol(reader: int, writer: int, reads: list[str] | None = None, writes: list[str] | None = None) -> Protocol:
    lists = [None if names is None else json.dumps(names) for names in (reads, writes)]
    return Protocol(1, reader, writer, lists[0], lists[1])


@pytest.mark.parametrize(
    "readable",
    [
        protocol(1, 2),
        protocol(2, 5),
        protocol(1, 7, None, ["appendOnly", "notYetInvented"]),
        protocol(3, 7, [], []),
        protocol(3, 7, ["deletionVectors", "columnMapping", "v2Checkpoint"], ["deletionVectors", "notYetInvented"]),
    ],
)
def test_a_table_whose_reader_features_are_known_is_readable(readable: Protocol) -> None:
    refuse_unreadable(readable, table="t")


def test_an_unknown_reader_feature_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeature, match="blue, green") as caught:
        refuse_unreadable(protocol(3, 7, ["blue", "deletionVectors", "green"], ["blue"]), table="t")
    assert caught.value.details["features"] == ["blue", "green"]


@pytest.mark.parametrize("name", ["catalogManaged", "catalogOwned", "catalogOwned-preview"])
def test_a_table_that_another_catalog_manages_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"managed by another catalog.*{name}"):
        refuse_unreadable(protocol(3, 7, [name], [name]), table="t")
    with pytest.raises(UnsupportedFeature, match="managed by another catalog"):
        refuse_unreadable(protocol(1, 7, None, [name]), table="t")


def test_a_reader_version_of_the_future_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="reader version 4"):
        refuse_unreadable(protocol(4, 7, [], []), table="t")


@pytest.mark.parametrize("broken", [protocol(3, 7, None, []), protocol(3, 7, [], None), protocol(1, 7)])
def test_table_features_without_their_list_are_refused(broken: Protocol) -> None:
    with pytest.raises(CorruptLog, match="without a list of"):
        refuse_unreadable(broken, table="t")


def test_a_state_without_protocol_or_metadata_is_refused_with_what_it_lacks() -> None:
    metadata = Metadata(2, "id", None, None, None, None, None, None, None)
    require_protocol_and_metadata(protocol(1, 2), metadata, where="f")
    with pytest.raises(CorruptLog, match="f has no protocol and no metaData action"):
        require_protocol_and_metadata(None, None, where="f")
    with pytest.raises(CorruptLog, match="f has no protocol action"):
        require_protocol_and_metadata(None, metadata, where="f")
    with pytest.raises(CorruptLog, match="f has no metaData action"):
        require_protocol_and_metadata(protocol(1, 2), None, where="f")
