"""The classic twin of a v2 checkpoint: the same top file under the name that every reader looks for.

A reader that does not know v2 checkpoints sees none, and after a cleanup no first commit either. In the twin it finds
the protocol, and can say by itself what it lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from mainstem.checkpoint import shape
from mainstem.checkpoint.described import Described, as_table, described
from mainstem.deltalog.checkpoints import top_actions
from mainstem.deltalog.files import LogDirectory
from mainstem.deltalog.jsontext import decoded
from mainstem.deltalog.names import Checkpoint, CheckpointKind, Listing, checkpoint_name
from mainstem.deltalog.writing import LogWriter
from mainstem.model import Action, AddFile, DomainMetadata, Metadata, OtherAction, Protocol, RemoveFile, Txn


def write_twin(writer: LogWriter, listing: Listing, *, published: int) -> str | None:
    """Give the newest checkpoint its classic twin, if it is a v2 one without; the twin's name, or None."""
    newest = listing.latest_checkpoint(published)
    if newest is None or newest.kind is not CheckpointKind.V2 or _has_classic(listing, newest):
        return None
    rows = _rows(list(top_actions(LogDirectory(writer.location), newest)))
    if rows is None:
        return None
    name = checkpoint_name(newest.version)
    with TemporaryDirectory(prefix="mainstem-") as scratch:
        path = Path(scratch) / name
        pq.write_table(as_table(rows, shape.top_schema()), path, store_schema=False)
        writer.upload(name, path)
    return name


def _has_classic(listing: Listing, newest: Checkpoint) -> bool:
    return any(
        found.version == newest.version and found.kind is CheckpointKind.CLASSIC for found in listing.checkpoints
    )


def _rows(actions: Sequence[Action]) -> list[Described] | None:
    """The rows of a top file; None for one that holds files itself, which is no small thing to repeat."""
    protocol = next((action for action in actions if isinstance(action, Protocol)), None)
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    if protocol is None or metadata is None or any(isinstance(action, AddFile | RemoveFile) for action in actions):
        return None
    others: list[Described] = [
        {action.name: decoded(action.body)}
        for action in actions
        if isinstance(action, OtherAction) and action.name in ("checkpointMetadata", "sidecar")
    ]
    transactions = [action for action in actions if isinstance(action, Txn)]
    domains = [action for action in actions if isinstance(action, DomainMetadata)]
    return [*others, *described(protocol, metadata, transactions, domains)]
