"""What a commit is refused for before any database is asked: its metadata, its protocol, its partition values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainstem import UsageError
from mainstem.definition import require_sound
from mainstem.deltalog.objects import actions_of
from mainstem.model import Metadata, Protocol
from mainstem.partitions import misfit
from mainstem.proposal import NO_VERSION, Commit, Proposal, TableState
from mainstem.provenance import require_readable_info

Json = dict[str, Any]
ROOT = "file:///lake/t"
ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
DAY = {"name": "day", "type": "date", "nullable": True, "metadata": {}}
LEGACY = {"minReaderVersion": 1, "minWriterVersion": 2}
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 2,
}
CHANGE = {"cdc": {"path": "_change_data/c", "partitionValues": {"day": None}, "size": 1, "dataChange": False}}
DOMAIN = {"domainMetadata": {"domain": "mine", "configuration": "{}", "removed": False}}


def protocol(*features: str, reader: int = 3) -> Json:
    reading = {"readerFeatures": [name for name in features if name in ("deletionVectors", "columnMapping")]}
    return {
        "protocol": {
            "minReaderVersion": reader,
            "minWriterVersion": 7,
            **(reading if reader == 3 else {}),
            "writerFeatures": list(features),
        }
    }


def metadata(*fields: Json, partitions: tuple[str, ...] = (), text: str | None = None, **properties: Any) -> Json:
    schema = json.dumps({"type": "struct", "fields": [*(fields or (ID, DAY))]}) if text is None else text
    named = {f"delta.{key.replace('__', '.')}": value for key, value in properties.items()}
    return {
        "metaData": {
            "id": "one",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partitions),
            "configuration": named,
        }
    }


def add(path: str = "a", **more: Any) -> Json:
    body = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": {**body, **more}}


def propose(*objects: Json) -> Proposal:
    """The first version of a table of these actions; it says what is wrong with them."""
    actions = actions_of(objects, table="t", table_root=ROOT)
    require_sound(actions, table="t", metadata=None, protocol=None)
    state = TableState("t", "0", "/lake/t", ROOT, NO_VERSION, None, None)
    return Proposal(state, (Commit(tuple(actions), {}),))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (metadata(text="nope"), "its schema is no JSON"),
        (metadata(text="[]"), "the schema is no type"),
        (metadata(text='"long"'), "its schema is no struct"),
        (metadata(text='{"type":"array","elementType":"long"}'), "its schema is no struct"),
        (metadata(text='{"type":"struct"}'), "the schema has no list of fields"),
        (metadata(text='{"type":"struct","fields":[{}]}'), "a field of the schema has no name"),
        (metadata({**ID, "type": 7}), "the column 'id' is no type"),
        (metadata({**ID, "nullable": "yes"}), "does not say whether it is nullable"),
        (metadata({**ID, "metadata": []}), "the metadata of the column 'id' is no object"),
        (metadata(ID, {**ID, "name": "ID"}), "the schema has two columns 'ID'"),
        (
            metadata({**ID, "type": {"type": "array", "elementType": {"type": "struct", "fields": [ID, ID]}}}),
            "the elementType of the column 'id' has two columns 'id'",
        ),
        (metadata(partitions=("hour",)), "partitioned by 'hour', which is no column"),
        (metadata(partitions=("day", "Day")), "partitioned by one column twice"),
        (metadata(appendOnly=True), "property 'delta.appendOnly' is true, and a property is a text"),
        (metadata(appendOnly=None), "property 'delta.appendOnly' is null"),
        (metadata(enableDeletionVectors="true"), "'delta.enableDeletionVectors' is 'true'.* feature deletionVectors"),
        (metadata(enableChangeDataFeed="true"), "feature changeDataFeed"),
        (metadata(enableRowTracking="true"), "feature rowTracking"),
        (metadata(enableInCommitTimestamps="true"), "feature inCommitTimestamp"),
        (metadata(checkpointPolicy="v2"), "feature v2Checkpoint"),
        (metadata(columnMapping__mode="name"), "feature columnMapping"),
    ],
)
def test_metadata_that_no_table_can_have_is_refused(found: Json, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        propose({"protocol": LEGACY}, found)


def test_a_table_without_a_schema_is_refused() -> None:
    found = metadata()
    del found["metaData"]["schemaString"]
    with pytest.raises(UsageError, match=r"no schema|schemaString"):
        propose({"protocol": LEGACY}, found)


def test_column_mapping_needs_a_name_and_an_id_in_every_column_and_then_is_fine() -> None:
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}
    bare = {key: value for key, value in ID.items() if key != "metadata"}
    old = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    for wrong in (bare, ID, {**ID, "metadata": {**mapping, "delta.columnMapping.id": "1"}}):
        with pytest.raises(UsageError, match="which column mapping needs"):
            propose(old, metadata(wrong, columnMapping__mode="name"))
    for each in (old, protocol("columnMapping")):
        propose(each, metadata({**ID, "metadata": mapping}, columnMapping__mode="name"))
    propose(old, metadata(bare))


@pytest.mark.parametrize(
    ("action", "feature", "versions"),
    [
        (add(deletionVector=VECTOR), "deletionVectors", None),
        (DOMAIN, "domainMetadata", None),
        ({"cdc": {**CHANGE["cdc"], "partitionValues": {}}}, "changeDataFeed", (1, 4)),
    ],
)
def test_an_action_needs_the_feature_that_it_belongs_to_by_name_or_by_an_old_version(
    action: Json, feature: str, versions: tuple[int, int] | None
) -> None:
    for lacking in (LEGACY, protocol("appendOnly", reader=1)["protocol"]):
        with pytest.raises(UsageError, match=f"does not have the feature {feature}"):
            propose({"protocol": lacking}, metadata(), action)
    propose(protocol(feature), metadata(), action)
    if versions is not None:
        reader, writer = versions
        propose({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}, metadata(), action)


@pytest.mark.parametrize("name", ["sidecar", "checkpointMetadata"])
def test_what_belongs_into_a_checkpoint_is_no_action_of_a_commit(name: str) -> None:
    with pytest.raises(UsageError, match=f"a {name} action belongs into a checkpoint"):
        propose(protocol("v2Checkpoint"), metadata(), {name: {"version": 1}})


def test_two_spellings_of_one_path_are_one_file_whatever_their_deletion_vectors() -> None:
    given = (protocol("deletionVectors"), metadata())
    with pytest.raises(UsageError, match="adds the path 'a%20b' twice"):
        propose(*given, add("a%20b", deletionVector=VECTOR), add("./a%20b"))
    propose(*given, add("a%20b", deletionVector=VECTOR), add("b"))


def test_a_users_protocol_takes_no_feature_away_and_a_table_keeps_its_id() -> None:
    version_4 = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
    [before], [named], [table] = (
        actions_of([each], table="t", table_root=ROOT)
        for each in (protocol("appendOnly", "changeDataFeed"), version_4, metadata())
    )
    assert isinstance(before, Protocol)
    assert isinstance(named, Protocol)
    assert isinstance(table, Metadata)
    require_sound([named, table], table="t", metadata=table, protocol=before)
    require_sound([before, table], table="t", metadata=None, protocol=None)
    with pytest.raises(UsageError, match="no longer has checkConstraints, generatedColumns, invariants") as caught:
        require_sound([before], table="t", metadata=table, protocol=named)
    assert caught.value.details["features"] == ["checkConstraints", "generatedColumns", "invariants"]
    [other] = actions_of([{"metaData": {**metadata()["metaData"], "id": "two"}}], table="t", table_root=ROOT)
    with pytest.raises(UsageError, match="has the id 'two', and the table's is 'one'"):
        require_sound([other], table="t", metadata=table, protocol=before)


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        ("version", "1", 1),
        ("timestamp", "5", 5),
        ("isBlindAppend", "true", True),
        ("operationMetrics", {"a": {}}, {"numFiles": "1", "other": 2}),
        ("operationParameters", "none", {"by": ["a"]}),
        ("tags", [], {"a": "b"}),
        ("userId", {"id": 7}, "ann"),
        ("job", "nightly", {"jobId": "7"}),
        ("userMetadata", {}, "nightly"),
    ],
)
def test_a_staged_commit_info_says_what_deltas_reader_can_take(field: str, wrong: Any, right: Any) -> None:
    for value in (right, None):
        found = actions_of([{"commitInfo": {field: value, "mine": {"any": [1]}}}], table="t", table_root=ROOT)
        require_readable_info(found, table="t")
    found = actions_of([{"commitInfo": {field: wrong}}], table="t", table_root=ROOT)
    with pytest.raises(UsageError, match=f"'{field}' must be"):
        require_readable_info(found, table="t")


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("integer", ["0", "-7", "+7", "2147483647"], ["2147483648", "٣", "1_0", " 1", "1.0", "1\n"]),
        ("double", ["1", "-.5e-3", "NaN", "-Infinity"], ["1_0", "٣.5", "one"]),
        ("boolean", ["true", "FALSE"], ["1", "yes"]),
        (
            "date",
            ["2026-11-18", "2024-02-29", "-0004-02-29", "12026-01-01"],
            ["2026-W01-1", "20260101", "2026-99-99", "2026-02-29", "2026-1-1", "٢٠٢٦-01-01", "2026-01-01T00:00:00"],
        ),
        (
            "timestamp",
            ["2026-11-18 12:30:00", "2026-11-18 12:30:00.5", "2026-11-18T12:30:00.123456Z",
             "2026-11-18 12:30:00+02:00", "2026-11-18"],
            ["20261118T123000", "2026-W01-1 12:30:00", "2026-11-18 24:00:00", "2026-11-18 12:60:00",
             "2026-02-30 12:00:00", "2026-11-18 1٢:30:00", "2026-11-18 12:30:00+99:00"],
        ),
        (
            "decimal(5,2)",
            ["123.45", "-0.10", "1E+2", "0", "0.000", "00123.450"],
            ["1_000", "1000", "0.001", "٣", "NaN", "1E+3", " 1"],
        ),
        ("decimal(38,0)", ["9" * 38, "1" + "0" * 37], ["9" * 39, "12345678901234567890123456789.5"]),
        ("string", ["", "anything ٣"], []),
    ],
)  # fmt: skip
def test_a_partition_value_is_written_as_delta_writes_its_type(kind: str, right: list[str], wrong: list[str]) -> None:
    for value in right:
        assert misfit(json.dumps({"p": value}), {"p": kind}) is None, value
    for value in wrong:
        assert "is no" in (misfit(json.dumps({"p": value}), {"p": kind}) or ""), value
