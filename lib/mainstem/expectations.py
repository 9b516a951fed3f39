"""Suites of Great Expectations: as objects, as lists of expectations, or by name from JSON files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from mainstem.errors import UnsupportedFeature, UsageError

FOLDER = "expectations"


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


def _parsed(suite: str | Path) -> tuple[str, list[dict[str, Any]]]:
    path = Path(suite)
    if path.suffix == ".json":
        place: Any = path
    else:
        own = Path("conf") / FOLDER / f"{suite}.json"
        place = own if own.is_file() else files("mainstem").joinpath("conf", FOLDER, f"{suite}.json")
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
        return kind(**each.get("kwargs", {}), meta=each.get("meta"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the suite {suite} has an expectation that Great Expectations does not know: {str(each)[:200]}.",
            hint="Its type is a name such as expect_column_values_to_not_be_null.",
        ) from error
