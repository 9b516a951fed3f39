"""What a command says: tables and sentences for people, JSON for programs, and one report a command."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mainstem.errors import MainstemError, mask

Advance = Callable[[str], None]


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return str(value)


def to_json(value: object) -> str:
    """One line of JSON, with passwords masked and times in ISO 8601."""
    return mask(orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS).decode())


class Output:
    """Where a command's words go.

    People get sentences and tables on standard output. With `as_json` standard output is one JSON document and
    nothing else, so that a pipe can read it; progress goes to standard error. A job ends with its report as one line.
    """

    def __init__(self, *, as_json: bool = False, job: bool = False) -> None:
        self.as_json = as_json
        self.job = job
        self._out = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._err = Console(file=sys.stderr, highlight=False, soft_wrap=True)

    def say(self, sentence: str) -> None:
        """A sentence for people; programs do not get it."""
        if not self.as_json:
            self._out.print(escape(mask(sentence)))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
        """Rows for people; programs get the same from the report."""
        if self.as_json:
            return
        grid = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for row in rows:
            grid.add_row(*(escape(mask(_shown(cell))) for cell in row))
        self._out.print(grid)

    def report(self, facts: Mapping[str, object] | Sequence[object]) -> None:
        """What the command did, as data: printed with `--json`, and as the last line of a job."""
        if self.as_json or self.job:
            self._out.out(to_json(facts))

    def error(self, error: MainstemError) -> None:
        """One sentence, and the next step; with `--json` the same as data."""
        if not self.as_json:
            self._err.print(f"[bold red]error:[/] {escape(error.message)}")
            if error.hint:
                self._err.print(f"[bold]next:[/] {escape(error.hint)}")
        if self.as_json or self.job:
            self._out.out(to_json({"error": error.as_dict()}))

    @contextmanager
    def progress(self, what: str, *, total: int | None = None) -> Iterator[Advance]:
        """A bar on a terminal, a plain line a step elsewhere; call the result with a word for each step done."""
        if not self._err.is_terminal:

            def line(step: str) -> None:
                self._err.print(escape(mask(f"{what}: {step}")))

            yield line
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._err, transient=True) as bar:
            task = bar.add_task(escape(what), total=total)

            def move(step: str) -> None:
                bar.update(task, advance=1, description=escape(mask(f"{what}: {step}")))

            yield move


def _shown(cell: object) -> str:
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ", timespec="seconds")
    return "" if cell is None else str(cell)
