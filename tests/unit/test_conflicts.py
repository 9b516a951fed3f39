"""Who may follow whom: Delta's matrix as a table, and what holds for any commits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from conflict_cases import (
    BLIND_A,
    DELETE_A1,
    FIELDS,
    LEVELS,
    OTHER_A,
    OTHER_B,
    ROOT,
    Case,
    actions,
    add,
    bare_remove,
    domain,
    dv,
    info,
    mark,
    metadata,
    protocol,
    remove,
    txn,
)
from conflict_matrix import CASES, TRACKED, TRACKING, WITH_DOMAINS, case, verdicts
from hypothesis import given
from hypothesis import strategies as st

from mainstem import ConflictError, UsageError
from mainstem.conflicts import (
    Conflict,
    Isolation,
    Proposed,
    Reads,
    Winner,
    conflict_error,
    find_conflicts,
    is_blind_append,
    read_predicate,
    said_blind_append,
)
from mainstem.conflicts.features import beyond_us, features
from mainstem.model import AddFile, CommitInfo, Metadata, Protocol, RemoveFile

[TABLE] = [action for action in actions([metadata()]) if isinstance(action, Metadata)]
[PROTOCOL] = [action for action in actions([protocol()]) if isinstance(action, Protocol)]


def proposed(*lines: Any, reads: Reads = Reads(), **changes: Any) -> Proposed:  # noqa: B008  immutable
    return replace(Proposed.of(actions(lines), reads=reads, metadata=TABLE, protocol=PROTOCOL), **changes)


def winner(*lines: Any, version: int = 1) -> Winner:
    return Winner.of(version, actions(lines))


def rules(current: Proposed, *winners: Winner) -> list[str]:
    return [conflict.rule for conflict in find_conflicts(current, winners, table_root=ROOT)]


@pytest.mark.parametrize(("scenario", "level", "verdict"), verdicts(), ids=str)
def test_the_first_conflict_is_the_one_that_delta_raises(scenario: Case, level: str, verdict: str | None) -> None:
    found = find_conflicts(scenario.proposed(level), scenario.won(level), table_root=ROOT)
    assert (found[0].rule if found else None) == verdict


def test_the_matrix_has_every_rule_at_both_levels_and_every_name_once() -> None:
    for at in range(len(LEVELS)):
        assert len({found.verdict[at] for found in CASES}) == 7
    assert len({found.name for found in CASES}) == len(CASES)


@pytest.mark.parametrize(("scenario", "level", "verdict"), verdicts(), ids=str)
def test_winners_may_come_without_the_files_that_nobody_heeds(scenario: Case, level: str, verdict: str | None) -> None:
    current = scenario.proposed(level)
    unheeded = (() if current.heeds_adds else (AddFile,)) + (() if current.heeds_removes else (RemoveFile,))
    slim = [
        replace(won, actions=tuple(action for action in won.actions if not isinstance(action, unheeded)))
        for won in scenario.won(level)
    ]
    assert find_conflicts(current, slim, table_root=ROOT) == find_conflicts(
        current, scenario.won(level), table_root=ROOT
    )


# Where Delta has no answer, or another one.


def test_one_file_in_two_spellings_is_one_file() -> None:
    assert rules(proposed(remove("./a1")), winner(*DELETE_A1)) == ["ConcurrentDeleteDelete"]
    assert rules(proposed(remove("p/%3a1")), winner(info(), remove("p/%3A1"))) == ["ConcurrentDeleteDelete"]
    assert rules(proposed(remove("/x")), winner(info(), remove("file:///x"))) == ["ConcurrentDeleteDelete"]
    assert rules(proposed(remove("%41")), winner(info(), remove("A"))) == []


def test_a_removed_file_counts_as_read_where_only_a_predicate_is_known() -> None:
    reads = Reads(predicates=(read_predicate("part = 'a'", TABLE),))
    current = proposed(add("n"), reads=reads)
    assert rules(current, winner(info("DELETE"), remove("a1"))) == ["ConcurrentDeleteRead"]
    assert rules(current, winner(info("DELETE"), remove("b1", "b"))) == []
    # A remove that does not say from which partition may be from this one.
    assert rules(current, winner(info("DELETE"), bare_remove("b1"))) == ["ConcurrentDeleteRead"]
    known = proposed(add("n"), reads=replace(reads, paths=frozenset({"a2"})))
    assert rules(known, winner(info("DELETE"), remove("a1"))) == []


def test_a_file_that_is_added_again_counts_as_read() -> None:
    # Nobody said that it was read; without this rule the removed file would come back.
    for again in (add("a1", change=False), add("a1", **dv("one"))):
        assert rules(proposed(again), winner(*DELETE_A1)) == ["ConcurrentDeleteRead"]
        assert rules(proposed(again), winner(info("DELETE"), remove("a2"))) == []
    assert rules(proposed(add("a1")), winner(*DELETE_A1)) == []


def test_a_commit_that_drops_a_feature_follows_nobody() -> None:
    [tracked] = [action for action in actions([TRACKED]) if isinstance(action, Protocol)]
    current = proposed(protocol("domainMetadata", "appendOnly", "invariants"), protocol=tracked)
    assert rules(current, winner(*BLIND_A)) == ["ProtocolChanged"]
    assert rules(current) == []


def test_a_commit_that_replaces_the_table_follows_no_new_domain() -> None:
    [known] = [action for action in actions([WITH_DOMAINS]) if isinstance(action, Protocol)]
    current = proposed(info("CREATE OR REPLACE TABLE"), metadata(), protocol=known)
    assert rules(current, winner(info(), domain("delta.clustering"))) == ["ConcurrentTransaction"]
    assert rules(current, winner(info(), mark(7))) == []


def test_a_later_step_that_rewrites_tracked_rows_follows_nobody() -> None:
    # The second step may have written the row ids of the first into its files.
    [tracking] = [action for action in actions([metadata(**TRACKING)]) if isinstance(action, Metadata)]
    first = (remove("r"), add("n", baseRowId=3, defaultRowCommitVersion=1))
    second = (remove("n"), add("o", baseRowId=6, defaultRowCommitVersion=2))
    assert rules(proposed(*first, metadata=tracking), winner(*BLIND_A)) == []
    assert rules(proposed(*second, metadata=tracking), winner(*BLIND_A)) == ["ConcurrentTransaction"]
    # A step that has read nothing has copied no row; and rows that are not tracked have no ids in the data.
    assert rules(proposed(*second[1:], metadata=tracking), winner(*BLIND_A)) == []
    assert rules(proposed(*second), winner(*BLIND_A)) == []


def test_every_conflict_with_every_winner_is_told_in_their_order() -> None:
    current = case("the first of two winners").proposed("WriteSerializable")
    found = find_conflicts(current, case("the first of two winners").won("WriteSerializable"), table_root=ROOT)
    assert [(conflict.version, conflict.rule) for conflict in found] == [
        (1, "ConcurrentAppend"),
        (2, "ConcurrentDeleteRead"),
        (2, "ConcurrentDeleteDelete"),
    ]
    assert [conflict.files for conflict in found] == [("w",), ("a1",), ("a1",)]


def test_a_conflict_names_the_first_few_files_only() -> None:
    current = proposed(add("n"), reads=Reads(whole_table=True))
    [found] = find_conflicts(current, [winner(info(), *(add(f"f{at}") for at in range(1000)))], table_root=ROOT)
    assert found.files == ("f0", "f1", "f2", "f3", "f4")


def test_a_change_is_judged_against_the_metadata_just_before_it() -> None:
    enabling = metadata(delta__enableDeletionVectors="true")
    deletion = protocol("appendOnly", "invariants", readers=("deletionVectors",))
    current = proposed(add("n"))
    assert rules(current, winner(info(), deletion, enabling), winner(info(), enabling, version=2)) == []
    # The second one takes the property away again.
    gone = winner(info(), metadata(), version=2)
    assert rules(current, winner(info(), deletion, enabling), gone) == ["MetadataChanged"]


@pytest.mark.parametrize(
    "name",
    [
        "deletion vectors enabled",
        "v2 checkpoints",
        "row tracking enabled",
        "in-commit timestamps enabled",
        "column mapping enabled",
    ],
)
def test_what_the_protocol_does_not_support_is_no_enabling(name: str) -> None:
    unsupported = case(name, protocol=protocol())
    found = find_conflicts(unsupported.proposed("Serializable"), unsupported.won("Serializable"), table_root=ROOT)
    assert [conflict.rule for conflict in found] == ["MetadataChanged"]


# Isolation, blindness.


@pytest.mark.parametrize(
    ("lines", "level", "operation", "expected"),
    [
        ((add("n"),), None, None, Isolation.WRITE_SERIALIZABLE),
        ((add("n"),), "Serializable", None, Isolation.SERIALIZABLE),
        ((add("n"),), "serializable", None, Isolation.SERIALIZABLE),
        ((add("n"),), "WriteSerializable", None, Isolation.WRITE_SERIALIZABLE),
        ((add("n"),), "SnapshotIsolation", None, Isolation.SERIALIZABLE),
        ((add("n"),), "who knows", None, Isolation.SERIALIZABLE),
        ((add("n", change=False), remove("a1", change=False)), None, "OPTIMIZE", Isolation.SNAPSHOT),
        ((add("n", change=False), remove("a1", change=False)), "Serializable", "OPTIMIZE", Isolation.SNAPSHOT),
        ((add("n", change=False), remove("a1")), None, "OPTIMIZE", Isolation.WRITE_SERIALIZABLE),
        ((add("n", change=False), mark(7)), None, "OPTIMIZE", Isolation.SNAPSHOT),
        ((add("n", change=False), domain("x")), None, "OPTIMIZE", Isolation.WRITE_SERIALIZABLE),
        ((add("n", change=False), txn("app")), None, "OPTIMIZE", Isolation.WRITE_SERIALIZABLE),
        ((add("n", change=False), metadata()), None, "OPTIMIZE", Isolation.WRITE_SERIALIZABLE),
        ((add("n", change=False), {"new": {}}), None, "OPTIMIZE", Isolation.WRITE_SERIALIZABLE),
        ((add("n", change=False),), None, "WRITE", Isolation.WRITE_SERIALIZABLE),
        ((add("n", change=False),), "Serializable", "WRITE", Isolation.SNAPSHOT),
        ((info("MERGE"), add("n", change=False)), None, None, Isolation.WRITE_SERIALIZABLE),
        ((info("OPTIMIZE"), add("n", change=False)), None, None, Isolation.SNAPSHOT),
        ((), None, None, Isolation.SNAPSHOT),
    ],
)  # fmt: skip
def test_a_commit_gets_the_isolation_that_delta_gives_it(
    lines: tuple[Any, ...], level: str | None, operation: str | None, expected: Isolation
) -> None:
    properties = {} if level is None else {"delta.isolationLevel": level}
    parsed = actions(lines) if lines else ()
    assert Isolation.of(properties, parsed, operation=operation) is expected


def test_a_commit_that_changes_the_level_is_judged_by_the_new_one() -> None:
    assert proposed(metadata(delta__isolationLevel="Serializable")).isolation is Isolation.SERIALIZABLE


@pytest.mark.parametrize(
    ("lines", "reads", "expected"),
    [
        ((add("n"),), Reads(), True),
        ((add("n"), txn("app")), Reads(app_ids=frozenset({"app"})), True),
        ((info(blind=True), add("n")), Reads(), True),
        ((info(blind=False), add("n")), Reads(), False),
        ((info(blind=True), add("n")), Reads(paths=frozenset({"a1"})), False),
        ((add("n"),), Reads(whole_table=True), False),
        ((add("n"),), Reads(predicates=(lambda file: False,)), False),
        ((add("n"),), Reads(paths=frozenset()), True),
        ((add("n"), remove("a1")), Reads(), False),
        ((add("n"), {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}), Reads(), False),
        ((metadata(),), Reads(), True),
    ],
)
def test_a_blind_append_adds_and_has_read_nothing(lines: tuple[Any, ...], reads: Reads, expected: bool) -> None:
    assert is_blind_append(actions(lines), reads=reads) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"isBlindAppend":true}', True), ('{"isBlindAppend":false}', False), ('{"isBlindAppend":"true"}', None),
        ("{}", None), ('{"isBlindAppend":true,"isBlindAppend":false}', False), ('{"x":1e400}', None),
    ],
)  # fmt: skip
def test_what_a_commit_says_of_itself_is_believed_only_where_it_is_a_truth_value(
    body: str, expected: bool | None
) -> None:
    assert said_blind_append(CommitInfo(0, body)) is expected


def test_a_winner_is_as_its_commit_info_describes_it() -> None:
    told = winner(info("MERGE", blind=False, userName="ada", engineInfo="x"), version=7)
    assert (told.version, told.operation, told.committer, told.blind_append) == (7, "MERGE", "ada", False)
    assert winner(info(blind=True, engineInfo="spark")).committer == "spark"
    silent = winner(add("n"))
    assert (silent.operation, silent.committer, silent.blind_append) == (None, None, False)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"minReaderVersion": 1, "minWriterVersion": 1}, set()),
        ({"minReaderVersion": 1, "minWriterVersion": 2}, {"appendOnly", "invariants"}),
        ({"minReaderVersion": 1, "minWriterVersion": 5},
         {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}),
        ({"minReaderVersion": 2, "minWriterVersion": 6},
         {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
          "identityColumns"}),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly"]}, {"appendOnly"}),
    ],
)  # fmt: skip
def test_a_protocol_supports_what_it_names_or_what_its_version_implies(
    lines: dict[str, Any], expected: set[str]
) -> None:
    [found] = [action for action in actions([{"protocol": lines}]) if isinstance(action, Protocol)]
    assert features(found) == expected
    assert beyond_us(found) == []


def test_a_protocol_beyond_us_says_what_it_asks_for() -> None:
    lines = {"protocol": {"minReaderVersion": 4, "minWriterVersion": 8, "writerFeatures": ["new", "rowTracking"]}}
    [found] = [action for action in actions([lines]) if isinstance(action, Protocol)]
    assert beyond_us(found) == ["reader version 4", "writer version 8", "feature new"]


# Read predicates.


@pytest.mark.parametrize(
    ("where", "part", "expected"),
    [
        ("part = 'a'", "a", True), ("part = 'a'", "b", False), ("part = 'a'", None, False),
        ("part IS NULL", None, True),
        ("id = 5", "b", True), ("part = 'a' AND id = 5", "b", False), ("part = 'a' AND id = 5", "a", True),
        ("part = 'a' OR id = 5", "b", True), ("part = 'a' OR part = 'b'", "b", True), ("part LIKE 'b%'", "a", False),
        ("NOT part = 'a'", "a", False), ("NOT (part = 'a' AND id = 5)", "a", True), ("rand() < 0.5", "a", True),
        ("upper(part) = 'A'", "b", True), ("part IN ('a', 'b')", "c", False), ("PART = 'a'", "b", False),
        ("FALSE", "a", False), ("TRUE", "a", True), ("part = \"' OR 1=1 --\"", "a", False),
    ],
)  # fmt: skip
def test_a_predicate_narrows_by_partitions_alone(where: str, part: str | None, expected: bool) -> None:
    [added, removed] = actions([add("n", part), remove("n", part)])
    assert isinstance(added, AddFile)
    assert isinstance(removed, RemoveFile)
    may_match = read_predicate(where, TABLE)
    assert may_match(added) is may_match(removed) is expected


def test_without_partitions_every_file_may_match() -> None:
    [flat] = [action for action in actions([metadata(partitions=())]) if isinstance(action, Metadata)]
    [added] = actions([add("n", stats=json.dumps({"numRecords": 1, "maxValues": {"id": 1}}))])
    assert isinstance(added, AddFile)
    assert read_predicate("id = 5", flat)(added)


def test_a_file_that_does_not_say_its_partition_may_match() -> None:
    [added, removed] = actions([add("n", partitionValues={}), bare_remove("n")])
    assert isinstance(added, AddFile)
    assert isinstance(removed, RemoveFile)
    assert read_predicate("part = 'a'", TABLE)(added)
    assert read_predicate("part = 'a'", TABLE)(removed)


def test_partition_values_are_found_by_their_physical_names() -> None:
    mapped = {**FIELDS[0], "metadata": {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}}
    table = metadata(fields=[mapped, FIELDS[1]], delta__columnMapping__mode="name")
    [known] = [action for action in actions([table]) if isinstance(action, Metadata)]
    [added] = actions([add("n", partitionValues={"col-1": "b"})])
    assert isinstance(added, AddFile)
    assert not read_predicate("part = 'a'", known)(added)
    assert read_predicate("part = 'b'", known)(added)


@pytest.mark.parametrize("where", ["", "nope = 1", "part =", "part = 'a'; DROP TABLE x"])
def test_a_wrong_predicate_is_a_usage_error(where: str) -> None:
    with pytest.raises(UsageError):
        read_predicate(where, TABLE)


# The error.


def test_the_error_tells_everything_and_that_nothing_was_written() -> None:
    current = case("the first of two winners").proposed("WriteSerializable")
    won = [
        winner(info("MERGE", userName="ada"), add("w"), version=41),
        winner(info("DELETE", userName="bob"), remove("a1"), version=42),
    ]
    error = conflict_error("sales.orders", find_conflicts(current, won, table_root=ROOT))
    assert isinstance(error, ConflictError)
    for told in ("sales.orders", "ConcurrentAppend", "version 41 (MERGE by ada)", "version 42 (DELETE by bob)", "(a1)"):
        assert told in str(error)
    assert "Nothing was written" in str(error)
    assert "catalog.run" in str(error)
    assert error.exit_code == 3
    assert error.details["rule"] == "ConcurrentAppend"
    assert error.details["versions"] == [41, 42]
    assert error.details["conflicts"][0]["files"] == ("w",)
    assert json.loads(json.dumps(error.as_dict()))["conflicts"][1]["committer"] == "bob"


def test_the_error_stays_on_one_line_whatever_a_writer_calls_itself() -> None:
    hostile = Conflict("ConcurrentAppend", 1, "a\nb", "x" * 5000, ("p\n" + "y" * 5000,), "why")
    text = str(conflict_error("t", [hostile] * 50))
    assert "\n" not in text
    assert len(text) < 2000
    assert "47 more" in text


def test_an_unnamed_winner_is_told_without_a_name() -> None:
    assert "an operation without a name" in str(
        conflict_error("t", [Conflict("MetadataChanged", 1, None, None, (), "w")])
    )


# What holds for any commits.

PARTS = st.sampled_from(["a", "b", None])
PATHS = st.sampled_from(["f1", "f2", "f3", "f4"])
ADDS = st.builds(add, PATHS, PARTS)
REMOVES = st.builds(remove, PATHS, PARTS)
INFOS = st.builds(lambda blind: info(blind=blind), st.sampled_from([True, False, None]))
OPTIMIZED = st.builds(lambda path, part: add(path, part, change=False), PATHS, PARTS)
FILE_COMMITS = st.builds(lambda head, rest: (head, *rest), INFOS, st.lists(ADDS | REMOVES | OPTIMIZED, max_size=4)).map(
    actions
)
ANY_COMMITS = st.builds(
    lambda head, rest, more: (head, *rest, *more),
    INFOS,
    st.lists(ADDS | REMOVES | OPTIMIZED, max_size=3),
    st.lists(
        st.sampled_from(
            [txn("app"), metadata(), metadata(delta__x="1"), protocol("appendOnly", "invariants"), domain("d")]
        ),
        max_size=2,
        unique_by=lambda line: next(iter(line)),
    ),
).map(actions)
READS = st.builds(
    Reads,
    whole_table=st.booleans(),
    paths=st.none() | st.frozensets(PATHS),
    predicates=st.lists(
        st.sampled_from([read_predicate(where, TABLE) for where in ("part = 'a'", "id = 5", "part IS NULL", "FALSE")]),
        max_size=2,
    ).map(tuple),
    app_ids=st.frozensets(st.just("app")),
)
WON = st.lists(ANY_COMMITS, max_size=3).map(lambda found: [Winner.of(at, one) for at, one in enumerate(found, 1)])
FILE_WON = st.lists(FILE_COMMITS, max_size=4).map(lambda found: [Winner.of(at, one) for at, one in enumerate(found, 1)])
LEVEL = st.sampled_from([Isolation.SERIALIZABLE, Isolation.WRITE_SERIALIZABLE])


@given(st.lists(ADDS, min_size=1, max_size=4), FILE_WON, LEVEL)
def test_a_blind_append_follows_whatever_happened_to_files(
    lines: list[Any], won: list[Winner], level: Isolation
) -> None:
    current = proposed(*lines, isolation=level)
    assert current.blind_append
    assert rules(current, *won) == []


@given(FILE_COMMITS, READS, FILE_WON)
def test_winners_are_checked_one_by_one_in_their_order(own: tuple[Any, ...], reads: Reads, won: list[Winner]) -> None:
    current = Proposed.of(own, reads=reads, metadata=TABLE, protocol=PROTOCOL)
    together = find_conflicts(current, won, table_root=ROOT)
    assert together == [found for one in won for found in find_conflicts(current, [one], table_root=ROOT)]
    assert [found.version for found in together] == sorted(found.version for found in together)


@given(ANY_COMMITS, READS, WON)
def test_a_stricter_level_finds_at_least_what_a_laxer_one_finds(
    own: tuple[Any, ...], reads: Reads, won: list[Winner]
) -> None:
    current = Proposed.of(own, reads=reads, metadata=TABLE, protocol=PROTOCOL)
    strict, lax, least = (
        set(find_conflicts(replace(current, isolation=level), won, table_root=ROOT))
        for level in (Isolation.SERIALIZABLE, Isolation.WRITE_SERIALIZABLE, Isolation.SNAPSHOT)
    )
    assert least <= lax <= strict


@given(ANY_COMMITS, READS, WON)
def test_who_has_read_more_conflicts_with_at_least_as_many(
    own: tuple[Any, ...], reads: Reads, won: list[Winner]
) -> None:
    def broken(reads: Reads) -> set[tuple[int, str]]:
        current = Proposed.of(own, reads=reads, metadata=TABLE, protocol=PROTOCOL)
        return {(found.version, found.rule) for found in find_conflicts(current, won, table_root=ROOT)}

    assert broken(reads) <= broken(replace(reads, whole_table=True, app_ids=frozenset({"app"})))


@given(ANY_COMMITS, READS, WON)
def test_files_that_nobody_heeds_change_no_verdict(own: tuple[Any, ...], reads: Reads, won: list[Winner]) -> None:
    current = Proposed.of(own, reads=reads, metadata=TABLE, protocol=PROTOCOL)
    unheeded = (() if current.heeds_adds else (AddFile,)) + (() if current.heeds_removes else (RemoveFile,))
    slim = [replace(one, actions=tuple(a for a in one.actions if not isinstance(a, unheeded))) for one in won]
    assert find_conflicts(current, slim, table_root=ROOT) == find_conflicts(current, won, table_root=ROOT)


@given(READS, st.sampled_from([OTHER_A, OTHER_B, BLIND_A, DELETE_A1]))
def test_a_commit_that_nobody_overtook_has_no_conflict(reads: Reads, lines: Any) -> None:
    current = Proposed.of(actions(lines), reads=reads, metadata=TABLE, protocol=PROTOCOL)
    assert find_conflicts(current, [], table_root=ROOT) == []
