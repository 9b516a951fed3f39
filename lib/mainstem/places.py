"""One folder, one table: of what the catalog leads, a second name would not see the files of the first."""

from __future__ import annotations

from collections.abc import Iterable

from mainstem.deltalog.location import place_of
from mainstem.errors import UsageError
from mainstem.store import Row


def refuse_second_name(tables: Iterable[Row], location: str, *, name: str, leads: bool) -> None:
    """Raise `UsageError` if another of the catalog's tables is at this location, and the catalog leads one of the two.

    `leads` says whether it shall lead the table `name`. Of a log that leads, two names only tell the same twice.
    """
    place = place_of(location)
    for other in tables:
        second = other["name"] != name and (leads or other["authority"] == "catalog")
        if second and place_of(other["location"]) == place:
            raise UsageError(
                f"the catalog has the table at {location} already, as {other['name']}.",
                hint="Nothing was written. Use that name: the catalog leads a table under one name only.",
                table=name,
                location=location,
            )
