"""Which files of a log have expired: a plan from names and times alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainstem.checkpoint import expiry
from mainstem.deltalog.names import LogFile, classify

NOW = datetime(2026, 11, 18, 13, 30, tzinfo=UTC)
DAY_MS = 86_400_000


def file(name: str, modified_ms: int = 0) -> LogFile:
    return LogFile(name, 1, modified_ms)


def commits(*versions: int) -> list[LogFile]:
    return [file(f"{version:020d}.json") for version in versions]


def checkpoints(*versions: int) -> list[LogFile]:
    return [file(f"{version:020d}.checkpoint.parquet") for version in versions]


def test_moments_are_midnights_in_utc() -> None:
    found = expiry.moments(NOW, 30 * DAY_MS)
    assert found.log == found.loose == datetime(2026, 10, 19, tzinfo=UTC)
    found = expiry.moments(NOW, 3_600_000)
    assert (found.log, found.loose) == (datetime(2026, 11, 18, tzinfo=UTC), datetime(2026, 11, 17, tzinfo=UTC))


@pytest.mark.parametrize(
    ("at_most", "published", "expected"),
    [
        (9, 9, [8, 4]),
        (7, 9, [4]),
        (3, 9, []),
        (9, 7, [4]),  # nothing above what is published counts, and its commits must be there
    ],
)
def test_a_log_is_cut_at_a_checkpoint_that_is_not_above(at_most: int, published: int, expected: list[int]) -> None:
    listing = classify(commits(*range(10)) + checkpoints(4, 8))
    found = expiry.candidates(listing, at_most=min(at_most, published), published=published)
    assert [checkpoint.version for checkpoint in found] == expected


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([*range(4), *range(5, 10)], [8]),  # the commit of checkpoint 4 itself is gone
        ([*range(7), 8, 9], [8]),  # a gap behind checkpoint 4
        (range(9), []),  # the published commit is not there
        ([4, 5, 6, 7, 8, 9], [8, 4]),
        ([], []),
    ],
)
def test_a_log_with_a_gap_is_cut_only_where_nothing_is_missing_behind(versions: list[int], expected: list[int]) -> None:
    listing = classify(commits(*versions) + checkpoints(4, 8))
    assert [found.version for found in expiry.candidates(listing, at_most=9, published=9)] == expected


def test_a_multi_part_checkpoint_that_lacks_a_part_is_no_place_to_cut() -> None:
    part = file(f"{8:020d}.checkpoint.0000000001.0000000002.parquet")
    listing = classify([*commits(*range(10)), *checkpoints(4), part])
    assert [found.version for found in expiry.candidates(listing, at_most=9, published=9)] == [4]


def test_everything_of_earlier_versions_expires_and_nothing_that_is_unknown() -> None:
    gone = [
        f"{0:020d}.json",
        f"{0:020d}.00000000000000000004.compacted.json",
        f"{3:020d}.crc",
        f"{3:020d}.checkpoint.0000000001.0000000002.parquet",
        f"{2:020d}.checkpoint.5f5a2f5c-0000-4000-8000-000000000001.json",
        f"{4:020d}.00000000000000000009.compacted.json",
    ]
    stays = [
        f"{4:020d}.json",
        f"{4:020d}.crc",
        f"{4:020d}.checkpoint.parquet",
        f"{5:020d}.00000000000000000009.compacted.json",
        "_last_checkpoint",
        "notes.txt",
        f"{1:020d}.json#1",
        f"{1:020d}.txt",
        f"_sidecars/{1:020d}.json",
        f"_staged_commits/{1:020d}.json",
        "00000000000000000001.00000000000000000001.json",
    ]
    assert expiry.expired([file(name) for name in gone + stays], 4) == sorted(gone)


def test_sidecars_go_when_nobody_names_them_and_nobody_can_be_writing_them() -> None:
    files = [file("_sidecars/named.parquet", 1), file("_sidecars/loose.parquet", 1), file("_sidecars/new.parquet", 9)]
    assert expiry.loose_sidecars(files, {"named.parquet"}, 5) == ["_sidecars/loose.parquet"]


def test_scratch_folders_go_when_nothing_in_them_is_new() -> None:
    files = [
        file(".mainstem-old/part-0.parquet", 1),
        file(".mainstem-old/_temporary/x", 2),
        file(".mainstem-busy/part-0.parquet", 1),
        file(".mainstem-busy/part-1.parquet", 9),
        file("other/part", 1),
        file(".mainstem-file", 1),
    ]
    assert expiry.loose_folders(files, 5) == [".mainstem-old"]
