"""The same checks for a table too large for one process: DataFrames, and Python where Spark has no function."""

from mainstem.validate.distributed.checks import CHECKS

__all__ = ["CHECKS"]
