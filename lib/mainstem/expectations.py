"""Suites of Great Expectations: as objects, as lists of expectations, or by name from JSON files."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from mainstem.errors import UnsupportedFeature, UsageError

FOLDER = "expectations"
PROPERTY = "mainstem.expectations"
# Great Expectations has three words for it, this library two.
_SEVERITIES = {"error": "critical", "critical": "critical", "warning": "warning", "info": "info"}


def load_suite(suite: Any) -> Any:
    """The suite itself; one of a list of expectations; or the one in a file, or in `conf/expectations/`, by name."""
    try:
        import great_expectations as gx
    except ImportError as error:
        raise UnsupportedFeature(
            "expectations need great-expectations, which is not installed.", hint="pip install mainstem[quality]"
        ) from error
    if isinstance(suite, gx.ExpectationSuite):
        return suite
    if isinstance(suite, list | tuple):
        return gx.ExpectationSuite(name="expectations", expectations=list(suite))
    if not isinstance(suite, str | Path):
        raise UsageError(
            f"{type(suite).__name__} is no suite of expectations.", hint="Give a suite, a list, or a name."
        )
    name, parsed = _parsed(suite)
    return gx.ExpectationSuite(name=name, expectations=[_expectation(gx, each, name) for each in parsed])


def suites_of(table: str, properties: dict[str, str]) -> list[str]:
    """The suites that a table's data must meet: named in its properties, and the one in `conf/` that has its name."""
    named = [name.strip() for name in properties.get(PROPERTY, "").split(",") if name.strip()]
    if Path(table).name == table and _own(table).is_file() and table not in named:
        named.append(table)
    return named


def suites_on_frames() -> Iterator[tuple[str, str]]:
    """The suites that name a frame of the validation, each with its frame: a file in `conf/` stands for ours."""
    found = {place.name: place for place in _packaged().iterdir()} if _packaged().is_dir() else {}
    own = Path("conf") / FOLDER
    found |= {place.name: place for place in own.iterdir()} if own.is_dir() else {}
    for name in sorted(name for name in found if name.endswith(".json")):
        try:
            frame = orjson.loads(found[name].read_bytes()).get("frame")
        except (orjson.JSONDecodeError, AttributeError):
            continue  # whoever asks for that suite by its name is told
        if isinstance(frame, str):
            yield name.removesuffix(".json"), frame


def _own(suite: str) -> Path:
    return Path("conf") / FOLDER / f"{suite}.json"


def _packaged() -> Any:
    return files("mainstem").joinpath("conf", FOLDER)


def _parsed(suite: str | Path) -> tuple[str, list[dict[str, Any]]]:
    path = Path(suite)
    place: Any = path
    if path.suffix != ".json":
        place = _own(str(suite))
        place = place if place.is_file() else _packaged().joinpath(f"{suite}.json")
    try:
        parsed = orjson.loads(place.read_bytes())
        return parsed.get("name", path.stem), parsed["expectations"]
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no suite {suite}.", hint=f"Put it into conf/{FOLDER}/{path.stem}.json, or give its path."
        ) from error
    except (orjson.JSONDecodeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"the suite {suite} is not one.",
            hint='It is JSON: {"name": …, "expectations": [{"type": …, "kwargs": …}]}.',
        ) from error


def _expectation(gx: Any, each: dict[str, Any], suite: str) -> Any:
    """One expectation by Great Expectations' own name for it, such as expect_column_values_to_not_be_null."""
    try:
        kind = getattr(gx.expectations, "".join(part.title() for part in each["type"].split("_")))
        severity = _SEVERITIES[each.get("severity", "error")]
        return kind(**each.get("kwargs", {}), meta=each.get("meta"), severity=severity)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the suite {suite} has an expectation that Great Expectations does not know: {str(each)[:200]}.",
            hint="Its type is a name such as expect_column_values_to_not_be_null, its severity error or warning.",
        ) from error
