"""Data in and out: Delta's own operations on mounts, staged in a transaction."""

from mainstem.operations.changes import DataTransaction
from mainstem.operations.creating import create
from mainstem.operations.merging import Merge
from mainstem.operations.reading import Reader
from mainstem.operations.staged import DataTable
from mainstem.operations.views import make_views

__all__ = ["DataTable", "DataTransaction", "Merge", "Reader", "create", "make_views"]
