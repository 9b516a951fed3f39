"""parse(serialize(x)) == x, for whatever a log may hold."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.deltalog import parse_commit, serialize_commit
from mainstem.identity import app_key, canonical_path, file_key, path_bucket
from mainstem.model import Action, AddFile, CommitInfo, OtherAction, Txn

ROOT = "s3://bucket/t"
INT64 = st.integers(-(2**63), 2**63 - 1)
SIZE = st.integers(0, 2**63 - 1)
TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
ANY_TEXT = st.text(alphabet=st.characters())
PATH = TEXT.filter(lambda path: path and ".." not in path and "%" not in path)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
MAP = st.dictionaries(ANY_TEXT, st.none() | ANY_TEXT, max_size=3)
DV = st.fixed_dictionaries(
    {"storageType": st.sampled_from("uip"), "pathOrInlineDv": PATH},
    optional={"offset": st.none() | SIZE, "sizeInBytes": SIZE, "cardinality": SIZE},
)
FEATURES = st.none() | st.lists(TEXT, max_size=3)
# Unknown keys: none of them may be one of the known ones in disguise.
UNKNOWN = st.dictionaries(ANY_TEXT.map(lambda key: "x-" + key), ANY_JSON, max_size=2)


def action(name: str, required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    nullable = {key: st.none() | values for key, values in optional.items()}
    fields = st.builds(
        lambda known, unknown: {**known, **unknown}, st.fixed_dictionaries(required, optional=nullable), UNKNOWN
    )
    shuffled = fields.flatmap(lambda body: st.permutations(list(body.items())).map(dict))
    return st.one_of(fields, shuffled).map(lambda body: {name: body})


FILE = {"path": PATH, "partitionValues": MAP, "size": SIZE, "dataChange": st.booleans()}
ROW_IDS = {"baseRowId": INT64, "defaultRowCommitVersion": INT64}
ADDS = action(
    "add",
    {**FILE, "modificationTime": INT64},
    {"stats": TEXT, "tags": MAP, "deletionVector": DV, "clusteringProvider": TEXT, **ROW_IDS},
)
ACTIONS = st.one_of(
    ADDS,
    action(
        "remove",
        {"path": PATH, "dataChange": st.booleans()},
        {
            "deletionTimestamp": INT64,
            "extendedFileMetadata": st.booleans(),
            "partitionValues": MAP,
            "size": SIZE,
            "stats": TEXT,
            "tags": MAP,
            "deletionVector": DV,
            **ROW_IDS,
        },
    ),
    action("cdc", FILE, {"tags": MAP}),
    action("txn", {"appId": TEXT, "version": INT64}, {"lastUpdated": INT64}),
    action("domainMetadata", {"domain": TEXT, "configuration": TEXT, "removed": st.booleans()}, {}),
    st.builds(
        lambda name, body: {"x-" + name: body},
        TEXT,
        ANY_JSON.filter(lambda body: body is not None),
    ),
)
ONCE = st.tuples(
    st.lists(st.dictionaries(ANY_TEXT, ANY_JSON, max_size=3).map(lambda body: {"commitInfo": body}), max_size=1),
    st.lists(
        action(
            "metaData",
            {"id": TEXT},
            {
                "name": TEXT,
                "description": TEXT,
                "format": st.dictionaries(ANY_TEXT, ANY_JSON, max_size=2),
                "schemaString": TEXT,
                "partitionColumns": st.lists(TEXT, max_size=2),
                "configuration": MAP,
                "createdTime": INT64,
            },
        ),
        max_size=1,
    ),
    st.lists(
        action(
            "protocol",
            {"minReaderVersion": st.integers(0, 9), "minWriterVersion": st.integers(0, 9)},
            {"readerFeatures": FEATURES, "writerFeatures": FEATURES},
        ),
        max_size=1,
    ),
)


@st.composite
def commits(draw: st.DrawFn) -> list[dict[str, Any]]:
    lines = draw(st.lists(ACTIONS, max_size=4)) + [line for group in draw(ONCE) for line in group]
    return draw(st.permutations(lines or [draw(ADDS)]))


def write(lines: list[dict[str, Any]], style: int) -> bytes:
    options: dict[str, Any] = [
        {"separators": (",", ":"), "ensure_ascii": True},
        {"separators": (", ", ": "), "ensure_ascii": True},
        {"separators": (" ,", "\t:"), "ensure_ascii": True},
    ][style]
    return "".join(json.dumps(line, **options) + "\n" for line in lines).encode()


def exact(data: bytes) -> list[Any]:
    """Line by line with order of keys, and with numbers as they are written."""
    numbers: dict[str, Any] = {"parse_int": lambda text: ("n", text), "parse_float": lambda text: ("n", text)}
    return [json.loads(line, object_pairs_hook=list, **numbers) for line in data.decode().split("\n") if line]


def parse(data: bytes) -> list[Action]:
    return parse_commit(data, file="f", table_root=ROOT)


@settings(max_examples=300, deadline=None)
@given(commits(), st.integers(0, 2))
def test_a_commit_comes_back_action_for_action_and_field_for_field(lines: list[dict[str, Any]], style: int) -> None:
    data = write(lines, style)
    actions = parse(data)
    written = serialize_commit(actions)
    expected = sorted(exact(data), key=lambda line: line[0][0] != "commitInfo")
    assert exact(written) == expected


@settings(max_examples=300, deadline=None)
@given(commits(), st.integers(0, 2))
def test_parsing_what_was_serialized_gives_the_same_actions_and_the_same_bytes(
    lines: list[dict[str, Any]], style: int
) -> None:
    actions = parse(write(lines, style))
    written = serialize_commit(actions)
    assert parse(written) == actions
    assert serialize_commit(reversed(parse(written))) == written


@given(PATH, SIZE, TEXT, MAP)
def test_actions_made_by_hand_come_back_too(path: str, size: int, app: str, values: dict[str, str | None]) -> None:
    canonical = canonical_path(path, ROOT)
    made: list[Action] = [
        CommitInfo(0, '{"operation":"WRITE"}', operation="WRITE"),
        AddFile(
            1, path, path_bucket(canonical), file_key(canonical, None), None, size, json.dumps(values), None, True, 0
        ),
        Txn(2, app, app_key(app), size),
        OtherAction(3, "later", "[ 1 ]"),
    ]
    assert parse(serialize_commit(made)) == made


def test_a_line_break_in_json_text_does_not_break_the_line() -> None:
    made = CommitInfo(0, '{\n  "operation": "WRITE"\n}')
    assert serialize_commit([made]).count(b"\n") == 1
