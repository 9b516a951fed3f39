"""A command as a Spark job: the same flags, the session of spark-submit, the report as the last line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mainstem.cli import main
from mainstem.session import build_session


def run(command: str, arguments: Sequence[str] | None = None) -> None:
    """Run a command of `mainstem` in the session that spark-submit gave, and exit with its code."""
    spark = build_session(f"mainstem {command}")
    try:
        code = main([command, *(sys.argv[1:] if arguments is None else arguments)], job=True, spark=spark)
    finally:
        spark.stop()
    sys.exit(code)
