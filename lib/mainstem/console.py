"""What a command says: tables and sentences for people, JSON for programs, and one report a command."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from mainstem.errors import MainstemError, mask

Advance = Callable[[str], None]
Count = Callable[[int, int], None]
_SECONDS_BETWEEN_LINES = 2.0
_WIDE = 10_000


# What moves the cursor, changes colours or turns a line around; and half of a surrogate pair, which cannot be printed.
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Text of a log or of a user as a terminal may have it: passwords masked, what is unseen written as its escape."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], mask(text))


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return str(value)


def to_json(value: object) -> str:
    """One line of JSON, with passwords masked and times in ISO 8601."""
    try:
        text = orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS).decode()
    except orjson.JSONEncodeError:  # half of a surrogate pair, or a number beyond 64 bits: an escape says the one
        text = json.dumps(value, default=_plain, separators=(",", ":"))
    return mask(text)


class Output:
    """Where a command's words go.

    People get sentences and tables on standard output. With `as_json` standard output is one JSON document and
    nothing else, so that a pipe can read it; progress goes to standard error. A job ends with its report as one line.
    """

    def __init__(self, *, as_json: bool = False, job: bool = False) -> None:
        self.as_json = as_json
        self.job = job
        self._out = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        if not self._out.is_terminal:
            self._out.width = _WIDE  # a pipe or a log has no width: nothing is cut
        self._err = Console(file=sys.stderr, highlight=False, soft_wrap=True)

    def say(self, sentence: str) -> None:
        """A sentence for people; programs do not get it."""
        if not self.as_json:
            self._out.print(escape(visible(sentence)))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
        """Rows for people; programs get the same from the report."""
        if self.as_json:
            return
        folding = [Column(column, overflow="fold") for column in columns]
        grid = Table(*folding, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for row in rows:
            grid.add_row(*(escape(visible(_shown(cell)).replace("\n", "\\n")) for cell in row))
        self._out.print(grid)

    def report(self, facts: object) -> None:
        """What the command did, as data: printed with `--json`, and as the last line of a job."""
        if self.as_json or self.job:
            self._out.out(to_json(facts))

    def error(self, error: MainstemError) -> None:
        """One sentence, and the next step; with `--json` the same as data."""
        if not self.as_json:
            self._err.print(f"[bold red]error:[/] {escape(visible(error.message))}")
            if error.hint:
                self._err.print(f"[bold]next:[/] {escape(visible(error.hint))}")
        if self.as_json or self.job:
            self._out.out(to_json({"error": error.as_dict()}))

    @contextmanager
    def progress(self, what: str, *, total: int | None = None) -> Iterator[Advance]:
        """A bar on a terminal, a plain line a step elsewhere; call the result with a word for each step done."""
        if not self._err.is_terminal:

            def line(step: str) -> None:
                self._err.print(escape(visible(f"{what}: {step}")))

            yield line
            return
        with Progress(*_bar(), console=self._err, transient=True) as bar:
            task = bar.add_task(escape(what), total=total)

            def move(step: str) -> None:
                bar.update(task, advance=1, description=escape(visible(f"{what}: {step}")))

            yield move

    @contextmanager
    def counting(self, what: str) -> Iterator[Count]:
        """A bar on a terminal, a line now and then elsewhere; call the result with how many of how many are done."""
        if not self._err.is_terminal:
            said = time.monotonic()

            def line(done: int, total: int) -> None:
                nonlocal said
                if time.monotonic() - said >= _SECONDS_BETWEEN_LINES:
                    said = time.monotonic()
                    self._err.print(escape(visible(f"{what}: {done} of {total}")))

            yield line
            return
        with Progress(*_bar(), console=self._err, transient=True) as bar:
            task = bar.add_task(escape(visible(what)), total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar() -> tuple[ProgressColumn, ...]:
    return TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()


def _shown(cell: object) -> str:
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ", timespec="seconds")
    return "" if cell is None else str(cell)
