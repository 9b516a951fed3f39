"""What a table's properties say about checkpoints, and the hint's checksum as the protocol defines it."""

from __future__ import annotations

import pytest

from mainstem.checkpoint import due
from mainstem.checkpoint import properties as said
from mainstem.checkpoint.hint import checksum, hint_bytes
from mainstem.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", 604_800_000),
        ("interval 30 days", 30 * 86_400_000),
        ("INTERVAL 1 DAY 2 hours", 93_600_000),
        ("2 weeks", 2 * 604_800_000),
        ("interval 1.5 seconds", 1500),
        ("interval 1500 microseconds", 1),
        ("interval -1 hours 90 minutes", 1_800_000),
        ("interval 0 days", 0),
        ("  interval  7   days ", 604_800_000),
    ],
)
def test_an_interval_is_milliseconds(text: str, expected: int) -> None:
    assert said.milliseconds(text, name="x") == expected


@pytest.mark.parametrize(
    "text",
    ["", "interval", "1 month", "interval 2 years", "7", "days", "interval 1 day or so", "interval -1 day", "1 dayz"],
)
def test_what_is_no_interval_is_refused_by_the_name_of_the_property(text: str) -> None:
    with pytest.raises(UsageError, match=r"The table property delta\.x is"):
        said.milliseconds(text, name="delta.x")


def test_retentions_have_deltas_defaults() -> None:
    assert said.retention_ms({}, said.FILE_RETENTION) == 7 * 86_400_000
    assert said.retention_ms({}, said.LOG_RETENTION) == 30 * 86_400_000
    assert said.retention_ms({}, said.TXN_RETENTION) is None
    assert said.retention_ms({said.TXN_RETENTION: "interval 1 day"}, said.TXN_RETENTION) == 86_400_000


def test_a_checkpoint_is_due_at_the_tables_own_interval() -> None:
    assert [version for version in range(31) if due(version, {})] == [10, 20, 30]
    assert [version for version in range(10) if due(version, {said.INTERVAL: "3"})] == [3, 6, 9]
    for useless in ("0", "-1", "many", ""):
        assert [version for version in range(21) if due(version, {said.INTERVAL: useless})] == [10, 20]


def test_flags_are_what_the_protocol_says_where_the_table_says_nothing() -> None:
    assert said.stats_as_json({})
    assert not said.stats_as_struct({})
    assert said.cleans_log({})
    assert not said.wants_v2({})
    assert said.wants_v2({said.POLICY: "v2"})
    assert not said.stats_as_json({said.STATS_AS_JSON: "FALSE"})
    assert said.stats_as_struct({said.STATS_AS_STRUCT: "True"})
    assert said.stats_as_struct({said.STATS_AS_JSON: "false"})
    assert not said.stats_as_struct({said.STATS_AS_JSON: "false", said.STATS_AS_STRUCT: "false"})
    assert not said.cleans_log({said.LOG_CLEANUP: "false"})


def test_the_checksum_is_that_of_the_protocols_own_example() -> None:
    example = {
        "k0": "'v 0'",
        "checksum": "adsaskfljadfkjadfkj",
        "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
    }
    assert checksum(example) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_a_hint_leaves_out_what_it_has_nothing_to_say_about() -> None:
    assert hint_bytes({"version": 1, "parts": None}) == (
        b'{"version":1,"checksum":"' + checksum({"version": 1}).encode() + b'"}'
    )
