"""A table as a proposal reads it, or as it shall be made."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from mainstem.deltalog.files import has_log
from mainstem.deltalog.location import open_location
from mainstem.errors import TableNotFound, UsageError, VersionNotFound
from mainstem.model import Metadata, Protocol
from mainstem.naming import require_name
from mainstem.places import refuse_second_name
from mainstem.proposal import NO_VERSION, Content, TableState
from mainstem.rows import METADATA, PROTOCOL
from mainstem.store import Row, Store


def table_state(store: Store, name: str, *, version: int | None = None) -> TableState:
    """A table as a proposal reads it: at its head, or at an older version that is still readable."""
    row = store.row_to_change("table_to_change", name=name)
    if row is None:
        raise TableNotFound(f"the catalog has no table {name}.", hint="See: mainstem tables", table=name)
    metadata, protocol = METADATA.prefixed(row, "m_"), PROTOCOL.prefixed(row, "p_")
    head = int(row["current_version"])
    at = head if version is None else version
    if not row["min_readable_version"] <= at <= head:
        raise _no_version(row, at)
    content = Content.of(row)
    if at != head:
        bounds = {"table_id": row["table_id"], "version": at}
        with store.reading() as queries:
            # First of all: if the number gets another content while the rest is read, the commit finds that out.
            content = Content.of(queries.row("versions_between", table_id=row["table_id"], first=at, last=at))
            if content is None:
                raise _no_version(row, at)
            metadata_row, protocol_row = queries.row("metadata_at", **bounds), queries.row("protocol_at", **bounds)
        assert metadata_row is not None
        assert protocol_row is not None
        metadata, protocol = METADATA.action(metadata_row), PROTOCOL.action(protocol_row)
    assert isinstance(metadata, Metadata)
    assert isinstance(protocol, Protocol)
    root = root_of(row["location"])
    return TableState(name, row["table_id"], row["location"], root, at, metadata, protocol, content)


def _no_version(row: Row, version: int) -> VersionNotFound:
    return VersionNotFound(
        f"the table {row['name']} has no version {version}.",
        hint=f"It has versions {row['min_readable_version']} to {row['current_version']}.",
        table=row["name"],
    )


def root_of(location: str) -> str:
    """A table's location, as the catalog has it, as the URI by which paths are compared."""
    return Path(location).as_uri() if location.startswith("/") else location


def new_table(store: Store, name: str, location: str) -> TableState:
    """A table that shall be: a free name, and a folder or URI without a log. The folder is made if it is not there."""
    require_name(name)
    if (known := store.row("table_by_name", name=name)) is not None:
        raise UsageError(
            f"the catalog already has a table {name}, at {known['location']}.", hint="Nothing was written.", table=name
        )
    if "://" not in location and not location.startswith("file:"):
        Path(location).mkdir(parents=True, exist_ok=True)
    place = open_location(location)
    if has_log(place):
        raise UsageError(
            f"{place.uri} has a _delta_log already: it is a table.",
            hint=f"Bring it in by: mainstem import {location} --name {name}",
            table=name,
        )
    stored = str(place.local) if place.local is not None else place.uri
    refuse_second_name(store.rows("tables_all"), stored, name=name, leads=True)
    return TableState(name, str(uuid4()), stored, place.uri, NO_VERSION, None, None)
