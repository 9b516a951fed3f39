"""The actions that make a table what it was at an older version."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import orjson

from mainstem.datafiles import inside, missing, vector_files
from mainstem.deltalog.location import open_location
from mainstem.deltalog.protocol import FENCE, reader_features, writer_features
from mainstem.errors import UnsupportedFeature, VersionNotFound
from mainstem.identity import app_key
from mainstem.model import FIRST_SEQ, Action, AddFile, DomainMetadata, Metadata, RemoveFile
from mainstem.rows import ADDS
from mainstem.snapshot import Snapshot

_SHOWN = 3
_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
_IDENTITY = "delta.identity.highWaterMark"
_CLUSTERING = "delta.clustering"
_TIMESTAMPS = (
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)


def restored_actions(then: Snapshot, now: Snapshot, *, location: str) -> list[Action]:
    """Remove what came since, add what went since, and put metadata back where it differs; as Delta's RESTORE does.

    What must only grow stays as it is: the protocol, ids of columns, high water marks of identity columns and of rows.
    Raises `VersionNotFound` if a data file or deletion vector that must come back is gone: a vacuum has taken it. Who
    calls holds the older version by a lease, so that no vacuum takes one of them from now on.
    """
    wanted, present = _files(then), _files(now)
    back = [add for key, add in wanted.items() if key not in present]
    gone = [add for key, add in present.items() if key not in wanted]
    _require_features(then, now)
    _await_vacuum(then)
    _require_present(then, back, location)
    moment = int(time.time() * 1000)
    actions: list[Action] = []
    metadata = _metadata(then, now)
    if replace(metadata, seq=0) != replace(now.metadata, seq=0):
        actions.append(metadata)
    actions += _clustering(then, now)
    actions += [replace(add, data_change=True) for add in back]
    actions += [_removed(add, moment) for add in gone]
    return [replace(action, seq=FIRST_SEQ + place) for place, action in enumerate(actions)]


def _metadata(then: Snapshot, now: Snapshot) -> Metadata:
    """The metadata of then, with what no restore may turn back: an id or a value would be given twice."""
    wanted = dict(then.properties)
    ids = [int(each[_MAX_COLUMN_ID]) for each in (then.properties, now.properties) if _MAX_COLUMN_ID in each]
    if ids:
        wanted[_MAX_COLUMN_ID] = str(max(ids))
    # The time of a version is the catalog's: it does not become the time of a file again.
    wanted |= {key: now.properties[key] for key in _TIMESTAMPS if key in now.properties}
    text = then.metadata.table_properties if wanted == then.properties else orjson.dumps(wanted).decode()
    return replace(then.metadata, table_properties=text, schema_json=_schema(then, now))


def _schema(then: Snapshot, now: Snapshot) -> str:
    marks = {
        field["name"]: field["metadata"][_IDENTITY]
        for field in orjson.loads(now.schema_json)["fields"]
        if _IDENTITY in field.get("metadata", {})
    }
    schema = orjson.loads(then.schema_json)
    changed = False
    for field in schema["fields"]:
        mark, about = marks.get(field["name"]), field.get("metadata", {})
        further = min if about.get("delta.identity.step", 1) < 0 else max
        if mark is not None and further(mark, about.get(_IDENTITY, mark)) != about.get(_IDENTITY):
            about[_IDENTITY] = mark
            changed = True
    return orjson.dumps(schema).decode() if changed else then.schema_json


def _clustering(then: Snapshot, now: Snapshot) -> list[Action]:
    """By which columns files are clustered belongs to the version; all other domains belong to the table."""
    wanted, present = then.domains.get(_CLUSTERING), now.domains.get(_CLUSTERING)
    if wanted == present:
        return []
    gone = wanted is None
    return [DomainMetadata(FIRST_SEQ, _CLUSTERING, app_key(_CLUSTERING), (present if gone else wanted) or "", gone)]


def _require_features(then: Snapshot, now: Snapshot) -> None:
    kept = {*reader_features(now.protocol), *writer_features(now.protocol)}
    lost = sorted({*reader_features(then.protocol), *writer_features(then.protocol)} - kept - {FENCE})
    if lost:
        raise UnsupportedFeature(
            f"version {then.version} of {then.table} needs features that were dropped since: {', '.join(lost)}.",
            hint=f"Nothing was written. Add them first: SET TBLPROPERTIES ('delta.feature.{lost[0]}' = 'supported').",
            table=then.table,
            features=lost,
        )


def _files(snapshot: Snapshot) -> dict[bytes, AddFile]:
    found: dict[bytes, AddFile] = {}
    with snapshot.reading() as queries:
        rows = queries.rows("adds_at", table_id=snapshot.table_id, version=snapshot.version)
    for row in rows:
        add = ADDS.action(row)
        assert isinstance(add, AddFile)
        found[add.file_key] = add
    return found


def _await_vacuum(then: Snapshot) -> None:
    """Wait for a vacuum that began to delete before it could see the lease: it has the head locked meanwhile."""
    with then.store.writing() as queries:
        queries.row("head_lock", table_id=then.table_id)


def _require_present(then: Snapshot, adds: Sequence[AddFile], location: str) -> None:
    # A file elsewhere, named by an absolute path: whether it is there shows when it is read.
    place = open_location(location)
    wanted = {add.path: name for add in adds for name in inside(add.path, place)}
    for add in adds:
        if add.deletion_vector:
            wanted |= {path: path for path in vector_files(add.deletion_vector, place)}
    gone = set(missing(place, wanted.values()))
    lost = [path for path, name in wanted.items() if name in gone]
    if lost:
        raise VersionNotFound(
            f"version {then.version} of {then.table} cannot be restored: {len(lost)} of its files are gone, "
            f"{', '.join(lost[:_SHOWN])}.",
            hint="Nothing was written. A vacuum has removed them; restore a later version.",
            paths=lost[:_SHOWN],
        )


def _removed(add: AddFile, moment: int) -> RemoveFile:
    return RemoveFile(
        seq=add.seq,
        path=add.path,
        path_bucket=add.path_bucket,
        file_key=add.file_key,
        dv_id=add.dv_id,
        deletion_timestamp=moment,
        data_change=True,
        extended_file_metadata=True,
        partition_values=add.partition_values,
        size_bytes=add.size_bytes,
        tags=add.tags,
        deletion_vector=add.deletion_vector,
        base_row_id=add.base_row_id,
        default_row_commit_version=add.default_row_commit_version,
        stats=add.stats,
    )
