"""The `mainstem` command. Each command parses, makes one call of the library, and reports."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mainstem.cli.frame import Frame, app
from mainstem.errors import MainstemError, UsageError
from mainstem.session import is_spark_error

# Each registers its commands, in the order in which `--help` shows them.
# isort: off
from mainstem.cli import schema, logs, reading, writing, leading, maintaining, recovering, machine, measuring  # noqa: F401

# isort: on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INTERRUPTED = 130
_LONGEST = 500
# By these Spark says that it was asked for something that is not there, or that it does not understand.
_ASKED_WRONGLY = {"AnalysisException", "ParseException", "IllegalArgumentException"}


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
        told = _told(error)
        if told is None:
            raise
        logging.getLogger("mainstem").debug("%s", told.message, exc_info=error)
        frame.output.error(told)
        return told.exit_code
    if code == _INTERRUPTED:  # by the handler above, or by click's own, which says nothing
        frame.output.error(MainstemError("interrupted.", hint="What was committed stays; nothing is half-written."))
    return code if isinstance(code, int) else 0


def _told(error: Exception) -> MainstemError | None:
    """An error of somebody else, in words; None for one that can only be a fault of ours."""
    shown = getattr(error, "format_message", None)  # click's own errors know how to say themselves
    if shown is not None:
        return UsageError(shown(), hint="mainstem --help lists commands and options.")
    if isinstance(error, OSError):
        what = error.strerror or str(error) or type(error).__name__
        return MainstemError(
            f"the system refused it: {what}{f': {error.filename}' if error.filename else ''}.",
            hint="Check that it is there and that this user may read and write it. --help says what the command takes.",
        )
    if "pyspark" in sys.modules and is_spark_error(error):
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        asked = type(error).__name__ in _ASKED_WRONGLY
        return (UsageError if asked else MainstemError)(
            f"Spark refused it: {first[:_LONGEST]}",
            hint="Check what was asked for."
            if asked
            else "Spark's log above says more. MAINSTEM_LOG_LEVEL=DEBUG shows where.",
        )
    return None


def run() -> None:
    """The console script."""
    sys.exit(main())
