"""A table's `_delta_log`: its files, its lines, its checkpoints."""

from mainstem.deltalog.actions import iter_commit, parse_commit
from mainstem.deltalog.serialize import serialize_action, serialize_commit

__all__ = ["iter_commit", "parse_commit", "serialize_action", "serialize_commit"]
