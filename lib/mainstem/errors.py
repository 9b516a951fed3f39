"""What can go wrong, with one root: every error says what, where, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

# Where a password may begin: after `scheme:/user:`; in our own schemes also behind path segments or without slashes,
# because a malformed URI (`postgres:/u:pw@h`, `deltasql://postgres/u:p/w@h`) must not show more than a right one.
_USER = re.compile(
    r"(?i)(?:\b(?:postgres(?:ql)?|deltasql):(?P<path>(?:[^\s/:@]*/)*)|:/+)(?P<user>[^\s/:@]*):",
)
_WORD = re.compile(r"\S*")
_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|[.,;:)\]}'\"`>]*$)")
_NOT_A_USER = re.compile(r"[\[\]{}'\"`,?=]")
_PASSWORD_FIELD = re.compile(
    r"(?i)(?P<head>(?:password|passwd|pwd|secret[\w.-]{0,40}|\btoken)\\{0,3}['\"]?\s*[=:]\s*)"
    r"(?:'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|[^\s&]+)"
)


def mask(text: str) -> str:
    """The same text with every password in a URI or a `password=` field replaced by `***`.

    Holds for malformed URIs too: where the end of a password is in doubt, rather too much is hidden than too little.
    """
    return _PASSWORD_FIELD.sub(r"\g<head>***", "".join(map(_mask_line, text.splitlines(keepends=True))))


def _mask_line(line: str) -> str:
    shown: list[str] = []
    at = word_end = last_in_word = 0
    last_in_line = line.rfind("@")
    # A loop and not one longer expression: each character is looked at a bounded number of times on any text.
    while found := _USER.search(line, at):
        start = end = found.end()
        if start >= word_end and (word := _WORD.match(line, start)):
            word_end, last_in_word = word.end(), line.rfind("@", start, word.end())
        if last_in_word >= start:
            end = last_in_word
        elif _lone_password(found, word_end):
            # A password with a raw space in it ends at a later `@`, else with the word.
            end = max(word_end, last_in_line)
        shown += [line[at:start], "***" if end > start else ""]
        at = end
    return "".join(shown) + line[at:]


def _lone_password(found: re.Match[str], word_end: int) -> bool:
    """Whether `://user:rest` without an `@` is rather a user and a password than a host and a port."""
    if (found["path"] or "").strip("/").lower() not in {"", "postgres"} or _NOT_A_USER.search(found["user"]):
        return False
    return found.end() < word_end and not _PORT.match(found.string, found.end(), word_end)


class MainstemError(Exception):
    """The root of all errors of this library.

    `message` says what happened and where, `hint` what to do next, `details` carries the same as data.
    `retryable` promises that the same call may succeed later and that nothing was written by this one.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        self.message = mask(message)
        self.hint = mask(hint) if hint else None
        self.details: Mapping[str, Any] = details
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def as_dict(self) -> dict[str, Any]:
        """The error as data, for `--json` and for job reports."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            **{key: mask(value) if isinstance(value, str) else value for key, value in self.details.items()},
        }


def told(error: Exception) -> str:
    """An error of any kind in words, for one who goes on without what has failed."""
    return str(error) if isinstance(error, MainstemError) else mask(f"{type(error).__name__}: {error}")


def worst_code(codes: Iterable[int]) -> int:
    """One exit code for several outcomes: 0 if all are well, and "try again" only if nothing else is wrong."""
    return max(codes, key=lambda code: (code != 0, code != EngineBusy.exit_code, code), default=0)


class UsageError(MainstemError):
    """The call itself is wrong: a malformed URI, an unknown setting, a bad predicate."""

    code = "usage"
    exit_code = 2


class ConflictError(MainstemError):
    """Another commit won, and Delta's rules do not let this one follow it. Nothing was written."""

    code = "conflict"
    exit_code = 3


class ForeignCommit(ConflictError):
    """An outside engine wrote a version into `_delta_log` that the catalog does not have."""

    code = "foreign_commit"


class ValidationFailed(MainstemError):
    """Catalog and log, or data and expectations, do not agree."""

    code = "validation_failed"
    exit_code = 4


class GateFailed(ValidationFailed):
    """A quality gate refused the staged state. Nothing was committed."""

    code = "gate_failed"


class TableNotFound(MainstemError):
    """The catalog has no table of that name."""

    code = "table_not_found"
    exit_code = 5


class VersionNotFound(MainstemError):
    """The table has no such version, or no longer has it; the message names the valid range."""

    code = "version_not_found"
    exit_code = 5


class SchemaDrift(MainstemError):
    """The catalog's `dl_*` schema is not the one that this library expects."""

    code = "schema_drift"
    exit_code = 6


class UnsupportedFeature(MainstemError):
    """The table or the session needs something that this library or its engines cannot honour."""

    code = "unsupported_feature"
    exit_code = 7


class CorruptLog(MainstemError):
    """A `_delta_log` breaks the Delta protocol; the message gives file and line."""

    code = "corrupt_log"
    exit_code = 8


class CorruptCatalog(MainstemError):
    """The `dl_*` rows contradict each other."""

    code = "corrupt_catalog"
    exit_code = 8


class EngineBusy(MainstemError):
    """The database did not answer or let us in within the configured time. Nothing was written."""

    code = "engine_busy"
    exit_code = 75
    retryable = True


class CommitUnknown(MainstemError):
    """The connection was lost during COMMIT and the outcome is not known; repeating with the same token is safe."""

    code = "commit_unknown"
    exit_code = 75
    retryable = True


class LogNotWritten(MainstemError):
    """The store refused a file of a `_delta_log`. No half of a file is ever there, and doing it again is safe."""

    code = "log_not_written"
    exit_code = 75
    retryable = True
