"""Checkpoints from catalog rows: the rows of a state, Parquet parts of them, and the log that they go to."""

from mainstem.checkpoint.cleanup import Cleanup, clean_log
from mainstem.checkpoint.properties import due
from mainstem.checkpoint.state import ALL_FILES, NO_FILES, Choice, State, Watcher, matching, open_state
from mainstem.checkpoint.table import write_checkpoint
from mainstem.checkpoint.upkeep import keep_up
from mainstem.checkpoint.writing import WrittenCheckpoint, write_state

__all__ = [
    "ALL_FILES",
    "NO_FILES",
    "Choice",
    "Cleanup",
    "State",
    "Watcher",
    "WrittenCheckpoint",
    "clean_log",
    "due",
    "keep_up",
    "matching",
    "open_state",
    "write_checkpoint",
    "write_state",
]
