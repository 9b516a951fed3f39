"""The conflict matrix: every rule at both levels, with the verdict that Delta gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conflict_cases import (
    BLIND_A,
    CAN_DELETE,
    DELETE_A1,
    FIELDS,
    LEGACY,
    LEVELS,
    MAPPED,
    NESTED,
    NESTED_MAPPED,
    OTHER_A,
    OTHER_B,
    Case,
    Json,
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

CA, CDR, CDD = "ConcurrentAppend", "ConcurrentDeleteRead", "ConcurrentDeleteDelete"
PC, MC, CT = "ProtocolChanged", "MetadataChanged", "ConcurrentTransaction"
READ_A = {"where": ("part = 'a'",), "files": frozenset({"a1", "a2"})}
READ_ALL = {"where": ("id = 5",), "files": frozenset({"a1", "a2", "b1"})}
FLAT: Json = {"metadata": metadata(partitions=())}

FILE_CASES = (
    Case("append after append", (add("n"),), (BLIND_A,)),
    Case("append after everything was removed", (add("n"),),
         ((info("DELETE", blind=False), *map(remove, ("a1", "a2"))),)),
    Case("append after an update", (add("n"),), (OTHER_A,)),
    Case("blind append into the partition that was read and written", (remove("a1"), add("n")), (BLIND_A,), (CA, None),
         **READ_A),
    Case("an add by an update into the partition that was read and written", (remove("a1"), add("n")), (OTHER_A,),
         (CA, CA), **READ_A),
    Case("an add by a commit that does not say what it is", (remove("a1"), add("n")), ((info(), add("w")),), (CA, CA),
         **READ_A),
    Case("an add by a commit without commitInfo", (remove("a1"), add("n")), ((add("w"),),), (CA, CA), **READ_A),
    Case("an add into another partition", (remove("a1"), add("n")), (OTHER_B,), **READ_A),
    Case("blind append into another partition", (remove("a1"), add("n")), ((info(blind=True), add("w", "b")),),
         **READ_A),
    Case("an add into a partition that was read by a commit that writes nothing", (), (OTHER_A,), **READ_A),
    Case("an add into a partition that was read by a commit that writes elsewhere", (add("n", "b"),), (OTHER_A,),
         (CA, CA), **READ_A),
    Case("blind append where a commit read to write elsewhere", (add("n", "b"),), (BLIND_A,), (CA, None), **READ_A),
    Case("an add where a commit only notes its application", (txn("app"),), (OTHER_A,), (CA, CA), **READ_A),
    Case("an update by rewriting, in a partition that was read", (remove("a1"), add("n")),
         ((info("OPTIMIZE", blind=False), remove("b1", "b", change=False), add("w", "a", change=False)),), (CA, CA),
         **READ_A),
    Case("a null partition that was read", (remove("a1"), add("n")), ((info("UPDATE", blind=False), add("w", None)),),
         (CA, CA), where=("part IS NULL",)),
    Case("a null partition beside the one that was read", (remove("a1"), add("n")),
         ((info("UPDATE", blind=False), add("w", None)),), **READ_A),
    Case("one of several partitions that were read", (add("n"),), (OTHER_B,), (CA, CA),
         where=("part = 'a'", "part IN ('b', 'c')"), files=frozenset({"a1", "a2", "b1"})),
    Case("an add beside a predicate on data", (remove("a1"), add("n")), (OTHER_B,), (CA, CA), **READ_ALL),
    Case("a predicate on a partition and on data", (remove("a1"), add("n")), (OTHER_B,),
         where=("part = 'a' AND id = 5",), files=frozenset({"a1", "a2"})),
    Case("a predicate that mixes partition and data by OR", (remove("a1"), add("n")), (OTHER_B,), (CA, CA),
         where=("part = 'a' OR id = 5",), files=frozenset({"a1", "a2", "b1"})),
    Case("a partition in every branch of an OR over data", (remove("a1"), add("n")), (OTHER_B,), (CA, CA),
         where=("(part = 'a' AND id = 5) OR (part = 'a' AND id = 6)",), files=frozenset({"a1", "a2", "b1"})),
    Case("a range of partitions", (remove("a1"), add("n")), ((info("UPDATE", blind=False), add("w", "c")),), (CA, CA),
         where=("part > 'b'",)),
    Case("whole table read, an add", (add("n"),), (OTHER_B,), (CA, CA), whole=True),
    Case("whole table read, a blind append", (add("n"),), (BLIND_A,), (CA, None), whole=True),
    Case("whole table read, a remove", (add("n"),), (DELETE_A1,), (CDR, CDR), whole=True),
    Case("a read file was removed", (add("n"),), (DELETE_A1,), (CDR, CDR), **READ_A),
    Case("a read file was removed, nobody says from where", (add("n"),),
         ((info("DELETE", blind=False), bare_remove("a1")),), (CDR, CDR), **READ_A),
    Case("a file beside those that were read was removed", (add("n"),),
         ((info("DELETE", blind=False), remove("b1", "b")),), **READ_A),
    Case("the same file removed twice", (remove("a1"),), (DELETE_A1,), (CDD, CDD)),
    Case("two files removed", (remove("a2"),), (DELETE_A1,)),
    Case("one file with two deletion vectors", (remove("a1"), add("a1", **dv("one"))),
         ((info("DELETE", blind=False), remove("a1"), add("a1", **dv("two"))),), (CDD, CDD), protocol=CAN_DELETE,
         metadata=metadata(delta__enableDeletionVectors="true")),
    Case("a file rewritten that got a deletion vector", (remove("a1"), add("n")),
         ((info("DELETE", blind=False), remove("a1"), add("a1", **dv("two"))),), (CA, CA), protocol=CAN_DELETE,
         metadata=metadata(delta__enableDeletionVectors="true"), **READ_A),
    Case("no partitions: a remove that read nothing after an add", (remove("a1"),), (OTHER_A,), (CA, CA), **FLAT),
    Case("no partitions: a remove that read nothing after a blind append", (remove("a1"),), (BLIND_A,), (CA, None),
         **FLAT),
    Case("no partitions: append after an add", (add("n"),), (OTHER_A,), **FLAT),
    Case("no partitions: a remove of another file", (remove("a2"),), (DELETE_A1,), **FLAT),
    Case("optimize after append", (remove("a1", change=False), remove("a2", change=False), add("n", change=False)),
         (OTHER_A,), operation="OPTIMIZE", **READ_A),
    Case("optimize after a delete of the same file", (remove("a1", change=False), add("n", change=False)),
         (DELETE_A1,), (CDR, CDR), operation="OPTIMIZE", **READ_A),
    Case("optimize after a delete of the same file, nothing read",
         (remove("a1", change=False), add("n", change=False)), (DELETE_A1,), (CDD, CDD), operation="OPTIMIZE"),
    Case("optimize after optimize of other files", (remove("a1", change=False), add("n", change=False)),
         ((info("OPTIMIZE", blind=False), remove("b1", "b", change=False), add("w", "b", change=False)),),
         operation="OPTIMIZE", where=("part = 'a'",), files=frozenset({"a1", "a2"})),
    Case("a truncate that calls its files unchanged", (remove("a1", change=False), remove("a2", change=False)),
         (OTHER_A,), (None, CA), operation="TRUNCATE", **READ_A),
    Case("the second of two winners", (add("n"),), (OTHER_B, DELETE_A1), (CDR, CDR), **READ_A),
    Case("the first of two winners", (remove("a1"), add("n")), (OTHER_A, DELETE_A1), (CA, CA), **READ_A),
)  # fmt: skip

WIDER = [*FIELDS, {"name": "more", "type": "long", "nullable": True, "metadata": {}}]
PLAIN = {"delta__x": "1"}


def _enabling(
    name: str, feature: Json, after: Json, verdict: tuple[str | None, str | None] = (None, None), **more: Any
) -> Case:
    """A table whose protocol already has the feature, and a winner that sets properties."""
    return Case(name, (add("n"),), ((info("SET TBLPROPERTIES", blind=True), after),), verdict, protocol=feature, **more)


TRACKED = protocol("rowTracking", "domainMetadata", *LEGACY)
TRACKING = {
    "delta__enableRowTracking": "true",
    "delta__rowTracking__materializedRowIdColumnName": "_row-id-col-1",
    "delta__rowTracking__materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
CAN_MAP = protocol(*LEGACY, readers=("columnMapping",))
CAN_CHECK = protocol(*LEGACY, readers=("v2Checkpoint",))
CAN_STAMP = protocol("inCommitTimestamp", *LEGACY)
MAPPING = {"delta__columnMapping__mode": "name", "delta__columnMapping__maxColumnId": "2"}
STAMPS = {
    "delta__enableInCommitTimestamps": "true",
    "delta__inCommitTimestampEnablementVersion": "1",
    "delta__inCommitTimestampEnablementTimestamp": "5",
}

METADATA_CASES = (
    Case("a new column", (add("n"),), ((info("ADD COLUMNS", blind=True), metadata(fields=WIDER)),), (MC, MC)),
    Case("a new column after a new column", (metadata(fields=WIDER),),
         ((info("ADD COLUMNS", blind=True), metadata(fields=WIDER)),), (MC, MC)),
    Case("a new column after an append", (metadata(fields=WIDER),), (BLIND_A,)),
    Case("a new schema for what was read, after a blind append", (metadata(fields=WIDER), remove("a1"), add("n")),
         (BLIND_A,), (CA, CA), **READ_A),
    _enabling("a property of one's own", protocol(), metadata(**PLAIN), (MC, MC)),
    _enabling("the same metadata again", protocol(), metadata()),
    _enabling("a property taken away", protocol(), metadata(), (MC, MC), metadata=metadata(**PLAIN)),
    _enabling("a new description", protocol(), metadata(description="new"), (MC, MC)),
    _enabling("append only", protocol(), metadata(delta__appendOnly="true"), (MC, MC)),
    _enabling("deletion vectors enabled", CAN_DELETE, metadata(delta__enableDeletionVectors="true")),
    _enabling("deletion vectors enabled with a property of one's own", CAN_DELETE,
              metadata(delta__enableDeletionVectors="true", **PLAIN), (MC, MC)),
    _enabling("deletion vectors disabled", CAN_DELETE, metadata(delta__enableDeletionVectors="false"), (MC, MC),
              metadata=metadata(delta__enableDeletionVectors="true")),
    _enabling("v2 checkpoints", CAN_CHECK, metadata(delta__checkpointPolicy="v2")),
    _enabling("classic checkpoints again", CAN_CHECK, metadata(delta__checkpointPolicy="classic"), (MC, MC),
              metadata=metadata(delta__checkpointPolicy="v2")),
    _enabling("row tracking enabled", TRACKED, metadata(**TRACKING)),
    _enabling("row tracking disabled", TRACKED, metadata(**{**TRACKING, "delta__enableRowTracking": "false"}), (MC, MC),
              metadata=metadata(**TRACKING)),
    _enabling("in-commit timestamps enabled", CAN_STAMP, metadata(**STAMPS)),
    _enabling("column mapping enabled", CAN_MAP, metadata(fields=MAPPED, **MAPPING)),
    _enabling("column mapping enabled over a struct", CAN_MAP,
              metadata(fields=[MAPPED[0], {**MAPPED[1], "type": NESTED_MAPPED}], **MAPPING), (MC, MC),
              metadata=metadata(fields=[FIELDS[0], {**FIELDS[1], "type": NESTED}])),
    _enabling("column mapping enabled with a new column", CAN_MAP,
              metadata(fields=[*MAPPED, {**MAPPED[1], "name": "more"}], **MAPPING), (MC, MC)),
    _enabling("column mapping enabled with a comment", CAN_MAP,
              metadata(fields=[MAPPED[0], {**MAPPED[1], "metadata": {**MAPPED[1]["metadata"], "comment": "c"}}],
              **MAPPING), (MC, MC)),
    Case("high water marks of identity columns", (add("n"),),
         ((info(blind=False, tags={"delta.identity.schemaUpdate": "true"}), metadata(**PLAIN), add("w")),)),
    Case("high water marks of identity columns after a new column", (metadata(fields=WIDER),),
         ((info(blind=False, tags={"delta.identity.schemaUpdate": "true"}), metadata(**PLAIN), add("w")),), (MC, MC)),
    Case("deletion vectors enabled with their protocol", (add("n"),),
         ((info("SET TBLPROPERTIES", blind=True), CAN_DELETE, metadata(delta__enableDeletionVectors="true")),)),
    Case("two steps that only enable", (add("n"),),
         ((info("SET TBLPROPERTIES", blind=True), CAN_DELETE, metadata(delta__enableDeletionVectors="true")),
          (info("SET TBLPROPERTIES", blind=True), metadata(delta__enableDeletionVectors="true",
          delta__checkpointPolicy="classic"))), (MC, MC)),
)  # fmt: skip

PROTOCOL_CASES = (
    Case("append after an upgrade", (add("n"),), ((info("UPGRADE PROTOCOL", blind=True), CAN_DELETE),)),
    Case("upgrade after an upgrade", (CAN_DELETE,), ((info("UPGRADE PROTOCOL", blind=True), CAN_DELETE),), (PC, PC)),
    Case("upgrade after an append", (CAN_DELETE,), (BLIND_A,)),
    Case("append after a feature was dropped", (add("n"),), ((info("DROP FEATURE", blind=True), protocol(*LEGACY)),),
         (PC, PC), protocol=CAN_DELETE),
    Case("append after a version gave way to fewer names", (add("n"),),
         ((info("DROP FEATURE", blind=True), protocol("appendOnly")),), (PC, PC)),
    Case("append after a feature that nobody knows", (add("n"),),
         ((info("UPGRADE PROTOCOL", blind=True), protocol(*LEGACY, "x-new")),), (PC, PC)),
)  # fmt: skip

WITH_DOMAINS = protocol("domainMetadata", *LEGACY)
OTHER_CASES = (
    Case("the same domain", (domain("my.domain"), add("n")), ((info(blind=True), domain("my.domain")),), (CT, CT),
         protocol=WITH_DOMAINS),
    Case("two domains", (domain("my.domain"), add("n")), ((info(blind=True), domain("your.domain")),),
         protocol=WITH_DOMAINS),
    Case("the same application", (txn("app", 2), add("n")), ((info(blind=True), txn("app", 2)),), (CT, CT),
         apps=frozenset({"app"})),
    Case("another application", (txn("app", 2), add("n")), ((info(blind=True), txn("other", 2)),),
         apps=frozenset({"app"})),
    Case("the same application, never asked for", (txn("app", 2), add("n")), ((info(blind=True), txn("app", 1)),)),
)  # fmt: skip

NUMBERED = (
    mark(8),
    *(add(name, baseRowId=base, defaultRowCommitVersion=0) for name, base in (("a1", 0), ("a2", 3), ("b1", 6))),
)
RENUMBERED = (
    info("ROW TRACKING BACKFILL", blind=False),
    mark(8),
    *(
        add(name, change=False, baseRowId=at, defaultRowCommitVersion=1)
        for name, at in (("a1", 0), ("a2", 3), ("b1", 6))
    ),
)
APPEND_9 = (info(blind=True), mark(11), add("w", baseRowId=9, defaultRowCommitVersion=1))
APPEND_12 = (info(blind=True), mark(14), add("w2", baseRowId=12, defaultRowCommitVersion=2))
WITH_VECTOR = {**dv("one"), "baseRowId": 0, "defaultRowCommitVersion": 0}
TRACKED_DELETE = protocol("rowTracking", "domainMetadata", *LEGACY, readers=("deletionVectors",))
STAMPED: Json = {
    "protocol": CAN_STAMP,
    "metadata": metadata(delta__enableInCommitTimestamps="true"),
    "created": info("CREATE TABLE", inCommitTimestamp=1),
}
STAMPED_LATER: Json = {**STAMPED, "metadata": metadata(**{**STAMPS, "delta__inCommitTimestampEnablementVersion": "0"})}
FUTURE = 4102444800000
WIDENED = {"toType": "long", "fromType": "integer", "tableVersion": 1}

# What may follow, but not as it is: its numbers depend on the winners.
REBASE_CASES = (
    Case("rows were numbered", (add("n"), add("o", records=4)), (APPEND_9,), protocol=TRACKED, present=NUMBERED),
    Case("rows were numbered twice", (add("n"),), (APPEND_9, APPEND_12), protocol=TRACKED, present=NUMBERED),
    Case("rows were numbered while others were removed", (remove("b1", "b"),), (APPEND_9,), protocol=TRACKED,
         present=NUMBERED),
    Case("rows that keep their numbers", (remove("a1"), add("a1", **WITH_VECTOR), add("n")), (APPEND_9,),
         protocol=TRACKED_DELETE, metadata=metadata(delta__enableDeletionVectors="true"), present=NUMBERED),
    Case("rows were removed while others were numbered", (add("n"),),
         ((info("DELETE", blind=False), remove("b1", "b")),), protocol=TRACKED, present=NUMBERED),
    Case("rows are numbered from now on", (add("n"),), ((info("UPGRADE PROTOCOL", blind=True), TRACKED),)),
    Case("rows were numbered again by a backfill", (remove("a1"), add("n")), (RENUMBERED,), protocol=TRACKED, **READ_A),
    Case("an in-commit timestamp in the future", (add("n"),),
         ((info(blind=True, inCommitTimestamp=FUTURE), add("w")),), **STAMPED),
    Case("two in-commit timestamps", (add("n"),), ((info(blind=True, inCommitTimestamp=FUTURE), add("w")),
         (info(blind=True, inCommitTimestamp=FUTURE + 7), add("w2"))), **STAMPED),
    Case("in-commit timestamps turned on after an append", (metadata(delta__enableInCommitTimestamps="true"),),
         (BLIND_A,), protocol=CAN_STAMP),
    Case("in-commit timestamps that were turned on earlier",
         (metadata(fields=WIDER, delta__enableInCommitTimestamps="true"),),
         ((info(blind=True, inCommitTimestamp=9), add("w")),), **STAMPED_LATER),
    Case("a type widened after an append",
         (metadata(fields=[FIELDS[0], {**FIELDS[1], "metadata": {"delta.typeChanges": [WIDENED]}}],
         delta__enableTypeWidening="true"),), (BLIND_A,), protocol=protocol(*LEGACY, readers=("typeWidening",)),
         metadata=metadata(fields=[FIELDS[0], {**FIELDS[1], "type": "integer"}], delta__enableTypeWidening="true")),
)  # fmt: skip

CASES = (*FILE_CASES, *METADATA_CASES, *PROTOCOL_CASES, *OTHER_CASES, *REBASE_CASES)


def verdicts() -> list[Any]:
    """Every case at every level, with the rule that it breaks."""
    return [(case, level, case.verdict[at]) for case in CASES for at, level in enumerate(LEVELS)]


def case(name: str, **changes: Any) -> Case:
    """A case by its name."""
    [found] = [found for found in CASES if found.name == name]
    return replace(found, **changes) if changes else found
