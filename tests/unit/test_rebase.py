"""What a commit must change to follow others: row ids, versions, timestamps. Delta's answers are in tests/oracle."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from conflict_cases import ROOT, Json, actions, add, domain, dv, info, mark, metadata, protocol, remove
from conflict_matrix import CAN_STAMP, STAMPS, TRACKED, TRACKING
from hypothesis import given
from hypothesis import strategies as st

from mainstem import UsageError
from mainstem.conflicts import Winner
from mainstem.deltalog import parse_commit, serialize_commit
from mainstem.deltalog.edit import with_fields, with_info
from mainstem.model import Action, AddFile, CommitInfo, DomainMetadata, Metadata, Protocol, RemoveFile
from mainstem.rebase import assign_row_ids, high_water_mark, rebase, with_commit_info


def protocol_of(line: Json) -> Protocol:
    [found] = [action for action in actions([line]) if isinstance(action, Protocol)]
    return found


def table_of(line: Json) -> Metadata:
    [found] = [action for action in actions([line]) if isinstance(action, Metadata)]
    return found


TRACKED_PROTOCOL, PLAIN_PROTOCOL = protocol_of(TRACKED), protocol_of(protocol())
TABLE, TRACKING_TABLE = table_of(metadata()), table_of(metadata(**TRACKING))
STAMPED_TABLE = table_of(metadata(delta__enableInCommitTimestamps="true"))


def assigned(*lines: Json, at: int | None = 9, version: int = 5, table: Metadata = TABLE) -> tuple[Action, ...]:
    return assign_row_ids(
        actions(lines), protocol=TRACKED_PROTOCOL, metadata=table, high_water_mark=at, version=version
    )


def rebased(*lines: Json, winners: list[Winner], at: int | None = 9, new: int = 7, **more: Any) -> tuple[Action, ...]:
    settings = {"protocol": TRACKED_PROTOCOL, "metadata": TABLE, "metadata_read": TABLE, **more}
    return rebase(
        actions(lines),
        winners=winners,
        read_version=5,
        new_version=new,
        high_water_mark=at,
        table_root=ROOT,
        **settings,
    )


def rows(found: tuple[Action, ...]) -> dict[str, tuple[int | None, int | None]]:
    return {
        action.path: (action.base_row_id, action.default_row_commit_version)
        for action in found
        if isinstance(action, AddFile | RemoveFile)
    }


def written(found: tuple[Action, ...]) -> list[Json]:
    return [json.loads(line) for line in serialize_commit(found).splitlines()]


# Row ids at the first attempt.


def test_new_files_are_numbered_behind_the_high_water_mark() -> None:
    found = assigned(add("n", records=3), remove("r"), add("o", records=4))
    assert rows(found) == {"n": (10, 5), "r": (None, None), "o": (13, 5)}
    assert high_water_mark(found) == 16
    [last] = found[-1:]
    assert isinstance(last, DomainMetadata)
    assert (last.seq, last.domain, last.removed) == (4, "delta.rowTracking", False)


def test_the_first_row_of_a_table_is_number_0() -> None:
    found = assigned(add("n", records=3), at=None)
    assert rows(found) == {"n": (0, 5)}
    assert high_water_mark(found) == 2


def test_a_file_that_has_its_numbers_keeps_them() -> None:
    found = assigned(add("n", baseRowId=4, defaultRowCommitVersion=1))
    assert rows(found) == {"n": (4, 1)}
    assert high_water_mark(found) is None


def test_numbers_that_delta_has_staged_stay_and_new_ones_go_behind_them() -> None:
    staged = add("n", baseRowId=10, defaultRowCommitVersion=5, records=3)
    assert assigned(staged, mark(12)) == actions([staged, mark(12)])
    found = assigned(staged, mark(12), add("o", records=2))
    assert rows(found) == {"n": (10, 5), "o": (13, 5)}
    assert [type(action) for action in found] == [AddFile, DomainMetadata, AddFile]
    assert high_water_mark(found) == 14


def test_an_empty_file_takes_no_number() -> None:
    found = assigned(add("n", records=0), add("o", records=1))
    assert rows(found) == {"n": (10, 5), "o": (10, 5)}
    assert high_water_mark(found) == 10
    assert high_water_mark(assigned(add("n", records=0))) is None


@pytest.mark.parametrize("line", [add("n", records=None), add("n", stats="{}"), add("n", stats='{"numRecords":"3"}')])
def test_a_file_that_does_not_count_its_rows_is_refused_by_name(line: Json) -> None:
    with pytest.raises(UsageError, match=r"'n' do not say how many records") as caught:
        assigned(line)
    assert "Nothing was written" in str(caught.value)


def test_a_file_that_only_lacks_its_version_needs_no_count() -> None:
    assert rows(assigned(add("n", baseRowId=4, records=None))) == {"n": (4, 5)}


def test_nothing_is_numbered_unless_the_protocol_asks_for_it() -> None:
    lines = actions([add("n", records=None), mark(3)])
    found = assign_row_ids(lines, protocol=PLAIN_PROTOCOL, metadata=TABLE, high_water_mark=9, version=5)
    assert found == lines


def test_while_row_tracking_is_suspended_files_have_no_numbers() -> None:
    suspended = table_of(metadata(delta__rowTrackingSuspended="true"))
    found = assigned(add("n", baseRowId=4, defaultRowCommitVersion=1), add("o", records=None), table=suspended)
    assert rows(found) == {"n": (None, None), "o": (None, None)}


@pytest.mark.parametrize("said", [mark(3), mark(9), domain("delta.rowTracking", "no json")])
@pytest.mark.parametrize("removed", [False, True])
def test_a_staged_high_water_mark_never_lowers_the_one_in_force(said: Json, removed: bool) -> None:
    line = {"domainMetadata": {**said["domainMetadata"], "removed": removed}}
    other = domain("mine")
    assert assigned(line, other) == actions([line, other])[1:]
    found = assigned(line, add("n", records=3))
    assert (rows(found), high_water_mark(found)) == ({"n": (10, 5)}, 12)
    assert len([action for action in found if isinstance(action, DomainMetadata)]) == 1
    suspended = table_of(metadata(delta__rowTrackingSuspended="true"))
    assert assigned(line, table=suspended) == ()


def test_a_high_water_mark_that_is_removed_and_would_be_higher_changes_nothing() -> None:
    line = {"domainMetadata": {**mark(50)["domainMetadata"], "removed": True}}
    assert assigned(line) == ()
    [kept] = assigned(mark(50))
    assert (kept,) == actions([mark(50)])


def test_a_high_water_mark_is_the_last_one_that_says_a_number() -> None:
    assert high_water_mark(actions([mark(3), domain("x", '{"rowIdHighWaterMark":9}')])) == 3
    assert high_water_mark(actions([mark(3), mark(5)])) == 5
    for no_mark in ("no json", '{"rowIdHighWaterMark":true}'):
        assert high_water_mark(actions([domain("delta.rowTracking", no_mark)])) is None
    removed = {
        "domainMetadata": {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":9}', "removed": True}
    }
    assert high_water_mark(actions([removed])) is None


# Behind the winners.

APPENDED = Winner.of(6, actions([info(blind=True), add("w", baseRowId=10, defaultRowCommitVersion=6), mark(12)]))
DELETED = Winner.of(6, actions([info("DELETE"), remove("a1")]))


def test_rows_of_the_proposal_go_behind_those_of_the_winners() -> None:
    staged = (
        mark(14),
        add("n", baseRowId=10, defaultRowCommitVersion=6),
        add("o", baseRowId=13, defaultRowCommitVersion=6, records=2),
    )
    found = rebased(*staged, winners=[APPENDED])
    assert rows(found) == {"n": (13, 7), "o": (16, 7)}
    assert high_water_mark(found) == 17
    assert len([action for action in found if isinstance(action, DomainMetadata)]) == 1


def test_rows_that_were_there_before_keep_their_numbers() -> None:
    found = rebased(remove("a1"), add("a1", **dv("x"), baseRowId=9, defaultRowCommitVersion=5), winners=[APPENDED])
    assert rows(found) == {"a1": (9, 5)}
    assert high_water_mark(found) is None


def test_only_the_version_moves_if_no_winner_has_numbered_rows() -> None:
    found = rebased(add("n", baseRowId=10, defaultRowCommitVersion=6), mark(12), winners=[DELETED])
    assert rows(found) == {"n": (10, 7)}
    assert high_water_mark(found) == 12


def test_a_stale_high_water_mark_is_not_written_back() -> None:
    found = rebased(remove("a2"), mark(9), winners=[APPENDED])
    assert high_water_mark(found) is None


def test_a_table_whose_rows_are_tracked_since_a_winner_numbers_the_proposal_too() -> None:
    upgraded = Winner.of(6, actions([info(), TRACKED]))
    assert rows(rebased(add("n"), winners=[upgraded], at=None)) == {"n": (0, 7)}


def test_files_that_a_backfill_has_numbered_keep_those_numbers() -> None:
    filled = [
        add(name, change=False, baseRowId=base, defaultRowCommitVersion=6) for name, base in (("a1", 0), ("a2", 3))
    ]
    backfill = Winner.of(6, actions([info("ROW TRACKING BACKFILL"), mark(5), *filled]))
    found = rebased(remove("./a1"), add("a1", **dv("x")), remove("a2"), add("n"), winners=[backfill], at=None)
    assert {action.path: action.base_row_id for action in found if isinstance(action, RemoveFile)} == {
        "./a1": 0,
        "a2": 3,
    }
    added = {action.path: action.base_row_id for action in found if isinstance(action, AddFile)}
    assert added == {"a1": 0, "n": 6}


def test_a_commit_that_was_written_before_row_tracking_says_that_it_kept_no_rows() -> None:
    enabled = Winner.of(6, actions([info(), metadata(**TRACKING)]))
    found = rebased(info(tags={"a": "b"}), add("n"), winners=[enabled], metadata=TRACKING_TABLE)
    [said] = [line["commitInfo"] for line in written(found) if "commitInfo" in line]
    assert said["tags"] == {"a": "b", "delta.rowTracking.preserved": "false"}
    unchanged = rebased(info(), add("n"), winners=[DELETED], metadata=TRACKING_TABLE, metadata_read=TRACKING_TABLE)
    assert "tags" not in written(unchanged)[0]["commitInfo"]


def test_a_later_step_goes_behind_the_earlier_ones_and_knows_their_files() -> None:
    first = rebased(mark(14), add("n", baseRowId=10, defaultRowCommitVersion=6), winners=[APPENDED])
    assert rows(first) == {"n": (13, 7)}
    staged = {"baseRowId": 10, "defaultRowCommitVersion": 6}
    lines = (remove("n", **staged), add("n", **dv("x"), **staged), add("o", baseRowId=15, defaultRowCommitVersion=7))
    second = rebased(*lines, winners=[APPENDED], earlier=first, new=8)
    assert [
        (action.path, action.base_row_id, action.default_row_commit_version)
        for action in second
        if isinstance(action, AddFile | RemoveFile)
    ] == [("n", 13, 7), ("n", 13, 7), ("o", 16, 8)]
    assert high_water_mark(second) == 18


def test_without_row_tracking_a_proposal_follows_as_it_is() -> None:
    lines = (info(), add("n", records=None), remove("a1"))
    assert rebased(*lines, winners=[APPENDED], protocol=PLAIN_PROTOCOL) == actions(lines)


def test_a_widened_type_is_of_the_new_version() -> None:
    def widened(version: int, old: int) -> Json:
        changes = [
            {"toType": "long", "fromType": "short", "tableVersion": old},
            {"toType": "long", "fromType": "integer", "tableVersion": version, "fieldPath": "element"},
        ]
        field = {"name": "xs", "type": "long", "nullable": True, "metadata": {"delta.typeChanges": changes}}
        return metadata(
            fields=[{"name": "s", "type": {"type": "struct", "fields": [field]}, "nullable": True, "metadata": {}}]
        )

    [found] = rebased(widened(6, 2), winners=[DELETED], protocol=PLAIN_PROTOCOL)
    assert isinstance(found, Metadata)
    assert json.loads(found.schema_json or "") == json.loads(widened(7, 2)["metaData"]["schemaString"])
    [same] = rebased(widened(3, 2), winners=[DELETED], protocol=PLAIN_PROTOCOL)
    assert (same,) == actions([widened(3, 2)])


STAGED = st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=5)


@given(STAGED, st.lists(st.integers(0, 50), max_size=4), st.none() | st.integers(0, 100))
def test_no_two_files_ever_share_a_row_id(staged: list[tuple[int, bool]], won: list[int], at: int | None) -> None:
    mine, top = [], -1 if at is None else at
    read = top
    for number, (records, numbered) in enumerate(staged):
        ids = {"baseRowId": top + 1, "defaultRowCommitVersion": 6} if numbered else {}
        mine.append(add(f"n{number}", records=records, **ids))
        top += records if numbered else 0
    winners, top = [], read
    for number, records in enumerate(won):
        lines = [
            info(blind=True),
            add(f"w{number}", records=records, baseRowId=top + 1, defaultRowCommitVersion=6 + number),
        ]
        top += records
        winners.append(Winner.of(6 + number, actions([*lines, mark(top)])))
    new = 6 + len(won)
    found = rebased(info(), *mine, winners=winners, at=at, new=new)
    spans = sorted((one.base_row_id or 0, one.num_records or 0) for one in found if isinstance(one, AddFile))
    assert all(base > top for base, _ in spans)
    assert all(base + records <= following for (base, records), (following, _) in pairwise(spans))
    last = max((base + records - 1 for base, records in spans), default=top)
    reached = high_water_mark(found)
    assert (top if reached is None else reached) == max(top, last)
    assert all(one.default_row_commit_version == new for one in found if isinstance(one, AddFile))
    # And nothing more is to be done to it.
    again = assign_row_ids(found, protocol=TRACKED_PROTOCOL, metadata=TABLE, high_water_mark=top, version=new)
    assert again == found


# commitInfo and timestamps.


def committed(
    *lines: Json,
    now: int = 1000,
    previous: int | None = None,
    before: Metadata | None = TABLE,
    after: Metadata = TABLE,
    **fields: Any,
) -> tuple[Action, ...]:
    found = actions(lines) if lines else ()
    return with_commit_info(
        found, fields=fields, now_ms=now, previous_ms=previous, version=5, metadata_before=before, metadata=after
    )


def test_the_commit_info_comes_first_and_has_what_it_is_given() -> None:
    found = committed(add("n"), operation="WRITE", operationParameters={"mode": "Append"}, isBlindAppend=True)
    [head, *rest] = found
    assert isinstance(head, CommitInfo)
    assert json.loads(head.body) == {
        "timestamp": 1000, "operation": "WRITE", "operationParameters": {"mode": "Append"}, "isBlindAppend": True
    }  # fmt: skip
    assert (head.seq, head.timestamp, head.operation) == (0, 1000, "WRITE")
    assert head.operation_params == '{"mode":"Append"}'
    assert rest == list(actions([add("n")]))


def test_what_a_staged_commit_info_says_stays_unless_it_is_said_anew() -> None:
    staged = (
        b'{"add":{"path":"n","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}\n'
        b'{"commitInfo":{"timestamp":1,"operation":"WRITE","odd":1.50,"big":123456789012345678901234567890}}'
    )
    found = with_commit_info(
        parse_commit(staged, file="f", table_root=ROOT),
        fields={"userName": "ada", "operation": "MERGE"},
        now_ms=1000,
        previous_ms=None,
        version=5,
        metadata_before=TABLE,
        metadata=TABLE,
    )
    assert serialize_commit(found).splitlines()[0] == (
        b'{"commitInfo":{"timestamp":1000,"operation":"MERGE","odd":1.50,'
        b'"big":123456789012345678901234567890,"userName":"ada"}}'
    )
    assert len([action for action in found if isinstance(action, CommitInfo)]) == 1


@pytest.mark.parametrize(
    ("now", "previous", "expected"), [(1000, None, 1000), (1000, 999, 1000), (1000, 1000, 1001), (1000, 5000, 5001)]
)
def test_in_commit_timestamps_grow_whatever_the_clock_says(now: int, previous: int | None, expected: int) -> None:
    tables = {"before": STAMPED_TABLE, "after": STAMPED_TABLE}
    head = committed(add("n"), now=now, previous=previous, **tables)[0]
    assert isinstance(head, CommitInfo)
    assert head.in_commit_timestamp == expected
    assert head.timestamp == now
    assert head.body.startswith('{"inCommitTimestamp":')


def test_a_table_without_in_commit_timestamps_gets_none() -> None:
    head = committed(info(inCommitTimestamp=7), add("n"))[0]
    assert isinstance(head, CommitInfo)
    assert head.in_commit_timestamp is None


def test_a_commit_that_turns_them_on_says_since_when() -> None:
    line = metadata(delta__enableInCommitTimestamps="true", delta__x="1")
    found = committed(line, previous=2000, after=table_of(line))
    table = written(found)[1]["metaData"]
    assert table["configuration"] == {
        "delta.enableInCommitTimestamps": "true",
        "delta.x": "1",
        "delta.inCommitTimestampEnablementVersion": "5",
        "delta.inCommitTimestampEnablementTimestamp": "2001",
    }


def test_what_was_staged_for_another_version_is_put_right() -> None:
    line = metadata(**STAMPS)
    found = committed(line, after=table_of(line))
    properties = written(found)[1]["metaData"]["configuration"]
    assert properties["delta.inCommitTimestampEnablementVersion"] == "5"
    assert properties["delta.inCommitTimestampEnablementTimestamp"] == "1000"


def test_a_table_that_is_created_with_them_needs_no_date() -> None:
    line = metadata(delta__enableInCommitTimestamps="true")
    found = committed(CAN_STAMP, line, before=None, after=table_of(line))
    assert found[1:] == actions([CAN_STAMP, line])
    assert isinstance(found[0], CommitInfo)
    assert found[0].in_commit_timestamp == 1000


def test_a_table_does_not_forget_since_when_it_has_them() -> None:
    line = metadata(delta__enableInCommitTimestamps="true", delta__x="1")
    found = committed(line, before=table_of(metadata(**STAMPS)), after=table_of(line))
    properties = written(found)[1]["metaData"]["configuration"]
    assert properties["delta.inCommitTimestampEnablementVersion"] == "1"
    assert properties["delta.inCommitTimestampEnablementTimestamp"] == "5"


# Fields set anew.


def test_a_field_that_comes_or_goes_is_written_so_where_the_keys_are_listed() -> None:
    odd = (
        b'{"add":{"new":{"x":1.50},"size":1,"path":"n","tags":null,"partitionValues":{},'
        b'"modificationTime":1,"dataChange":true}}'
    )
    [one] = parse_commit(odd, file="f", table_root=ROOT)
    assert isinstance(one, AddFile)
    came = with_fields(one, base_row_id=7)
    assert serialize_commit([came]) == odd[:-2] + b',"baseRowId":7}}\n'
    assert serialize_commit([with_fields(came, base_row_id=None)]) == odd + b"\n"
    assert serialize_commit([with_fields(came, base_row_id=8)]) == odd[:-2] + b',"baseRowId":8}}\n'
    assert parse_commit(serialize_commit([came]), file="f", table_root=ROOT) == [came]


def test_a_commit_info_keeps_its_place_and_its_last_word() -> None:
    told = CommitInfo(0, '{"a":1,"a":2,"gone":3}')
    assert with_info(told, b="x", gone=None).body == '{"a":2,"b":"x"}'
    assert with_info(None, operation="WRITE") == CommitInfo(0, '{"operation":"WRITE"}', operation="WRITE")
