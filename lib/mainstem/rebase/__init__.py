"""What in a commit depends on its version and on the commits before it. Values in, values out: no clock."""

from mainstem.rebase.commitinfo import with_commit_info
from mainstem.rebase.proposal import rebase
from mainstem.rebase.rowids import assign_row_ids, high_water_mark

__all__ = ["assign_row_ids", "high_water_mark", "rebase", "with_commit_info"]
