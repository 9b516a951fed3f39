"""Whether a table has come to a version: for those who wait for one."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Literal, Self

from mainstem.catalog import open_catalog
from mainstem.errors import UsageError
from mainstem.store import Store

State = Literal["ratified", "published"]
_COLUMNS: Final = {"ratified": "current_version", "published": "published_version"}


class Watch:
    """One table that somebody waits for. A question costs one query by the table's name, and no JVM.

    `ratified` is that the catalog has the version, `published` that the table's log has it, for every Delta engine.
    """

    def __init__(
        self, table: str, *, version: int, state: State = "ratified", catalog: str | None = None, **flags: Any
    ) -> None:
        if state not in _COLUMNS:
            raise UsageError(f"{state!r} is nothing that a version can be.", hint="Give ratified or published.")
        self.table, self.version, self.state = table, version, state
        self._catalog = open_catalog(catalog, **flags)
        # Not the catalog's own store, which looks at the schema first: that is a question more.
        self._store = Store(self._catalog.engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self._catalog.close()

    def reached(self) -> int | None:
        """The table's version in that state, if it is the one waited for or a later one. Raises `TableNotFound`."""
        now = int(self._store.table(self.table)[_COLUMNS[self.state]])
        return now if now >= self.version else None
