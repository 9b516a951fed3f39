"""What the names of a log say, which versions it can answer, and when each was committed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.deltalog.history import CommitTime, commit_timestamps, in_commit_timestamps_from, replay_plan
from mainstem.deltalog.names import CheckpointKind, Listing, LogFile, classify, commit_name
from mainstem.errors import CorruptLog, VersionNotFound

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def listing(*names: str | int) -> Listing:
    """A log of these files; a number stands for the commit of that version."""
    return classify(LogFile(commit_name(name) if isinstance(name, int) else name, 1, 0) for name in names)


def classic(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def part(version: int, number: int, count: int) -> str:
    return f"{version:020d}.checkpoint.{number:010d}.{count:010d}.parquet"


def v2(version: int, suffix: str = "json", uuid: str = UUID) -> str:
    return f"{version:020d}.checkpoint.{uuid}.{suffix}"


def versions(found: Listing) -> list[int]:
    return [commit.version for commit in found.commits]


def test_commits_come_in_the_order_of_versions_however_the_store_lists_them() -> None:
    found = listing(10, 2, 0, 1)
    assert versions(found) == [0, 1, 2, 10]
    assert found.commit(2) is found.commits[2]
    assert found.commit(3) is None
    assert found.commit(11) is None


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        "00000000000000000000.crc",
        ".00000000000000000000.json.crc",
        "00000000000000000000.json.tmp",
        "0.json",
        "000000000000000000000.json",
        "00000000000000000000.JSON",
        "00000000000000000000.00000000000000000009.compacted.json",
        "00000000000000000000.checkpoint.parquet.tmp",
        "00000000000000000000.checkpoint.not-a-uuid.json",
        "00000000000000000000.checkpoint.0000000000.0000000002.parquet",
        "00000000000000000000.checkpoint.0000000003.0000000002.parquet",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠.json",
        "-0000000000000000001.json",
        "00000000000000000000.json\n",
        "",
    ],
)
def test_a_file_of_any_other_name_is_not_used(name: str) -> None:
    found = listing(name)
    assert (found.commits, found.checkpoints, found.files) == ((), (), 1)


def test_a_version_beyond_64_bits_is_refused() -> None:
    assert versions(listing(2**63 - 1)) == [2**63 - 1]
    with pytest.raises(CorruptLog, match=f"{2**63}.json: the version does not fit 64 bits"):
        listing(f"0{2**63}.json")


def test_a_multi_part_checkpoint_counts_only_with_all_of_its_parts() -> None:
    assert listing(part(5, 1, 3), part(5, 3, 3)).checkpoints == ()
    [whole] = listing(part(5, 3, 3), part(5, 1, 3), part(5, 2, 3)).checkpoints
    assert (whole.version, whole.kind, whole.part_count) == (5, CheckpointKind.MULTI_PART, 3)
    assert [file.name for file in whole.files] == [part(5, number, 3) for number in (1, 2, 3)]


def test_parts_of_two_attempts_are_not_mixed() -> None:
    assert listing(part(5, 1, 2), part(5, 2, 3), part(5, 3, 3)).checkpoints == ()


def test_a_part_count_of_ten_billion_costs_nothing() -> None:
    assert listing(part(5, 1, 9_999_999_999)).checkpoints == ()


def test_of_several_checkpoints_of_a_version_the_kind_that_delta_prefers_is_taken() -> None:
    names = [classic(5), part(5, 1, 2), part(5, 2, 2), v2(5, "parquet"), v2(3), classic(4)]
    newest = listing(*names).latest_checkpoint()
    assert newest is not None
    assert (newest.version, newest.kind) == (5, CheckpointKind.V2)
    older = listing(*names).latest_checkpoint(at_most=4)
    assert older is not None
    assert (older.version, older.kind) == (4, CheckpointKind.CLASSIC)
    assert listing(*names).latest_checkpoint(at_most=2) is None


def test_two_checkpoints_alike_are_chosen_the_same_way_in_any_order_of_listing() -> None:
    one, other = v2(5), v2(5, uuid=UUID.replace("8", "9"))
    assert listing(one, other).latest_checkpoint() == listing(other, one).latest_checkpoint()
    assert listing(one, other).checkpoints[0].files == listing(other, one).checkpoints[0].files


def test_a_whole_log_is_replayed_from_version_0_and_needs_no_checkpoint() -> None:
    plan = replay_plan(listing(0, 1, 2, 3, classic(2)))
    assert (plan.first, plan.last, plan.checkpoint) == (0, 3, None)
    assert [commit.version for commit in plan.commits] == [0, 1, 2, 3]
    assert plan.first_commit is plan.commits[0]


def test_a_cleaned_up_log_starts_at_its_first_checkpoint_that_the_commits_continue() -> None:
    plan = replay_plan(listing(7, 8, 9, 10, 11, 12, classic(8), classic(10)))
    assert (plan.first, plan.last) == (8, 12)
    assert plan.checkpoint is not None
    assert plan.checkpoint.version == 8
    assert plan.first_commit is not None
    assert plan.first_commit.version == 8
    assert [commit.version for commit in plan.commits] == [9, 10, 11, 12]


def test_the_commit_of_the_checkpoint_itself_may_be_gone() -> None:
    plan = replay_plan(listing(9, 10, classic(8)))
    assert (plan.first, plan.last, plan.first_commit) == (8, 10, None)
    assert [commit.version for commit in plan.commits] == [9, 10]


def test_a_checkpoint_alone_is_a_log_of_one_version() -> None:
    plan = replay_plan(listing(classic(8)))
    assert (plan.first, plan.last, plan.first_commit, plan.commits) == (8, 8, None, ())


def test_a_checkpoint_after_the_last_commit_does_not_join_what_is_before_it() -> None:
    plan = replay_plan(listing(0, 1, 2, classic(8)))
    assert (plan.first, plan.last, plan.commits) == (8, 8, ())


def test_a_gap_before_a_checkpoint_is_legal() -> None:
    plan = replay_plan(listing(0, 1, 5, 6, 7, classic(1), classic(6)))
    assert (plan.first, plan.last) == (6, 7)


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ([0, 2], 1),
        ([1, 2], 0),
        ([0, 1, 2, classic(2), 4, 5], 3),
        ([0, 1, 2, 3, classic(2), 6], 4),
        ([classic(2), 4, 5], 3),
        ([part(2, 1, 2), 3, 4], 0),
    ],
)
def test_a_gap_after_the_last_complete_checkpoint_is_refused_and_named(names: list[str | int], missing: int) -> None:
    with pytest.raises(CorruptLog, match=f"version {missing} is missing") as caught:
        replay_plan(listing(*names))
    assert caught.value.details["version"] == missing


def test_a_log_without_commits_and_checkpoints_is_refused() -> None:
    with pytest.raises(CorruptLog, match="no commit and no complete checkpoint"):
        replay_plan(listing("_last_checkpoint"))


def test_up_to_ends_the_plan_with_that_version() -> None:
    whole = listing(7, 8, 9, 10, 11, 12, classic(8), classic(10))
    plan = replay_plan(whole, up_to=9)
    assert (plan.first, plan.last, [commit.version for commit in plan.commits]) == (8, 9, [9])
    plan = replay_plan(whole, up_to=8)
    assert (plan.first, plan.last, plan.commits) == (8, 8, ())
    assert replay_plan(whole, up_to=12) == replay_plan(whole)


@pytest.mark.parametrize("version", [-1, 7, 13, 10**18])
def test_up_to_a_version_that_the_log_has_not_names_the_valid_range(version: int) -> None:
    with pytest.raises(VersionNotFound, match="from 8 to 12") as caught:
        replay_plan(listing(7, 8, 9, 10, 11, 12, classic(8)), up_to=version)
    assert (caught.value.details["first"], caught.value.details["last"]) == (8, 12)


def test_times_of_files_are_moved_on_until_they_grow() -> None:
    commits = [CommitTime(version, time) for version, time in enumerate([100, 90, 101, 101, 200])]
    assert commit_timestamps(commits, in_commit_from=None) == [100, 101, 102, 103, 200]


def test_a_commit_says_its_own_time_from_the_enabling_version_on() -> None:
    commits = [CommitTime(5, 100, 1), CommitTime(6, 101, 150), CommitTime(7, 90, 160)]
    assert commit_timestamps(commits, in_commit_from=6) == [100, 150, 160]
    assert commit_timestamps(commits, in_commit_from=0) == [1, 150, 160]
    assert commit_timestamps(commits, in_commit_from=None) == [100, 101, 102]


def test_a_commit_without_its_own_time_is_refused_where_it_must_have_one() -> None:
    with pytest.raises(CorruptLog, match="Version 6 has no in-commit timestamp"):
        commit_timestamps([CommitTime(5, 100), CommitTime(6, 101)], in_commit_from=6)


@pytest.mark.parametrize(
    ("times", "version"), [([2**63 - 1, 5], 0), ([-(2**62)], 0), ([253_402_300_799_999, 5], 1), ([5, 10**15], 1)]
)
def test_a_time_that_is_no_date_is_refused(times: list[int], version: int) -> None:
    with pytest.raises(CorruptLog, match=f"time of version {version} is"):
        commit_timestamps([CommitTime(place, 0, time) for place, time in enumerate(times)], in_commit_from=0)


def test_files_that_are_younger_than_what_the_commits_say_give_way() -> None:
    commits = [
        CommitTime(0, 100),
        CommitTime(1, 900),
        CommitTime(2, 900),
        CommitTime(3, 900, 700),
        CommitTime(4, 0, 701),
    ]
    assert commit_timestamps(commits, in_commit_from=3) == [100, 698, 699, 700, 701]


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40))), st.none() | st.integers(0, 5))
def test_times_always_grow_and_are_never_before_what_counts(times: list[tuple[int, int]], start: int | None) -> None:
    commits = [CommitTime(version, file, own) for version, (file, own) in enumerate(times)]
    result = commit_timestamps(commits, in_commit_from=start)
    assert all(one < other for one, other in pairwise(result))
    for commit, time in zip(commits, result, strict=True):
        counts = commit.in_commit_ms if start is not None and commit.version >= start else commit.file_ms
        assert counts is not None
        if start is not None and commit.version < start < len(commits):
            assert time <= max(counts, result[max(commit.version - 1, 0)] + 1), "a file's time only ever gives way"
        else:
            assert time >= counts


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, None),
        ({"delta.enableInCommitTimestamps": "false", "delta.inCommitTimestampEnablementVersion": "3"}, None),
        ({"delta.enableInCommitTimestamps": "true"}, 0),
        ({"delta.enableInCommitTimestamps": "TRUE", "delta.inCommitTimestampEnablementVersion": "12"}, 12),
    ],
)
def test_properties_say_from_which_version_commits_say_their_own_time(
    properties: dict[str, str], expected: int | None
) -> None:
    assert in_commit_timestamps_from(properties) == expected


@pytest.mark.parametrize("text", ["", "-1", "1.5", "x", "٣", "9" * 30])
def test_an_enabling_version_that_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(CorruptLog, match="is no version"):
        in_commit_timestamps_from(
            {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": text}
        )
