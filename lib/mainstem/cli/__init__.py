"""The `mainstem` command. Each command parses, makes one call of the library, and reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mainstem.cli.frame import Frame, app
from mainstem.errors import MainstemError, UsageError

# Each registers its commands, in the order in which `--help` shows them.
# isort: off
from mainstem.cli import schema, logs, reading, writing, leading, maintaining, recovering, machine, measuring  # noqa: F401

# isort: on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None, *, job: bool = False, spark: SparkSession | None = None) -> int:
    """Run one command; its exit code. The only place that turns errors into words."""
    frame = Frame({}, job=job, spark=spark)
    given = list(sys.argv[1:] if arguments is None else arguments)
    frame.as_json = "--json" in given  # before parsing, so that an error in the arguments is JSON too
    return _guarded(lambda: app(given, obj=frame, standalone_mode=False, prog_name="mainstem"), frame)


def _guarded(call: Callable[[], Any], frame: Frame) -> int:
    try:
        code = call()
    except MainstemError as error:
        frame.output.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        return 141
    except Exception as error:
        shown = getattr(error, "format_message", None)  # click's own errors know how to say themselves
        if shown is None:
            raise
        frame.output.error(UsageError(shown(), hint="mainstem --help lists commands and options."))
        return 2
    if code == _INTERRUPTED:  # by the handler above, or by click's own, which says nothing
        frame.output.error(MainstemError("interrupted.", hint="What was committed stays; nothing is half-written."))
    return code if isinstance(code, int) else 0


def run() -> None:
    """The console script."""
    sys.exit(main())
