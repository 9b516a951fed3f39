"""Where a catalog is, as a value that never shows its password."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote

from mainstem.uri.parts import checked

Engine = Literal["postgres", "sqlite", "duckdb"]


class Secret:
    """A text that shows itself only to `reveal()`; equal secrets are equal, also after pickling.

    Not a dataclass on purpose: `dataclasses.asdict` of whatever holds it would open it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself, for the driver and for nobody else."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)


class _Options(Mapping[str, str]):
    """A read-only mapping that, unlike `MappingProxyType`, can be hashed and pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, str]) -> None:
        self._items = tuple(sorted(items.items()))

    def __getitem__(self, key: str) -> str:
        return dict(self._items)[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(dict(self._items))


@dataclass(frozen=True, slots=True, repr=False)
class CatalogUri:
    """One catalog, and perhaps one table of it. Equal values mean the same place, whichever form was written.

    `database` is a database's name, or for the file engines an absolute path. `options` are for the driver as they
    are; `overrides` are settings that hold for this catalog alone (`Settings.for_uri` lays them over). `str`, `repr`
    and `masked` show the canonical form with `***` for the password; without a password it parses back to an equal
    value.
    """

    engine: Engine
    database: str
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: Secret | None = None
    schema: str = "public"
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _Options(self.options))
        object.__setattr__(self, "overrides", _Options(self.overrides))

    @property
    def masked(self) -> str:
        """The canonical form, safe to log."""
        schema = self.schema if self.engine == "postgres" else None
        query = {"schema": schema, "table": self.table, **self.options, **self.overrides}
        tail = "&".join(f"{key}={quote(value, safe='/')}" for key, value in query.items() if value is not None)
        return self._place() + (f"?{tail}" if tail else "")

    def _place(self) -> str:
        if self.engine != "postgres":
            return f"{self.engine}:///{quote(self.database, safe='/')}"
        host = self.host or ""
        shown = f"[{quote(host, safe=':')}]" if ":" in host else quote(host, safe=",")
        user = "" if self.user is None else quote(self.user, safe="") + (":***" if self.password else "") + "@"
        return f"postgresql://{user}{shown}:{self.port}/{quote(self.database, safe='')}"

    def __str__(self) -> str:
        return self.masked

    def __repr__(self) -> str:
        return f"CatalogUri({self.masked!r})"

    def same_catalog(self, other: CatalogUri) -> bool:
        """Whether both lead to the same rows, whoever asks and with whatever options."""
        places = ("engine", "database", "host", "port", "schema")
        return all(getattr(self, place) == getattr(other, place) for place in places)

    def without_table(self) -> CatalogUri:
        """The catalog alone."""
        return replace(self, table=None)

    def with_table(self, name: str) -> CatalogUri:
        """The same catalog, with the table of that Mainstem name (`schema.table`)."""
        return replace(self, table=checked(name, "table"))
