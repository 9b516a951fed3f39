"""Run by test_dags.py in Airflow's own environment: what Airflow stores of a trigger, and what it refuses, as JSON.

python stored_triggers.py TABLE VERSION
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from airflow.sdk.serde import deserialize, serialize  # type: ignore[import-not-found]

from mainstem import UsageError
from mainstem.airflow import TableVersionSensor, TableVersionTrigger


def stored(**where: Any) -> tuple[str, dict[str, Any]]:
    """A trigger as Airflow keeps it, and the events of the one that is made from it again."""
    name, given = TableVersionTrigger(
        table=sys.argv[1], version=int(sys.argv[2]), poll_interval=0.1, **where
    ).serialize()
    assert name == f"{TableVersionTrigger.__module__}.{TableVersionTrigger.__qualname__}"
    text = json.dumps(serialize(given))
    again = TableVersionTrigger(**deserialize(json.loads(text)))
    return text, asyncio.run(_first(again))


async def _first(trigger: TableVersionTrigger) -> dict[str, Any]:
    return dict((await anext(trigger.run())).payload)


def refused(make: Any, **given: Any) -> str:
    try:
        make(table="t", version=1, **given)
    except UsageError as error:
        return str(error)
    return "not refused"


def main() -> None:
    secret = "postgresql://etl:s3cret@127.0.0.1:1/db"
    found = {
        "by environment": stored(),
        "by variable": stored(catalog="${LAKE}"),
        "by connection": stored(conn_id="lake"),
        "another state": stored(state="published"),
        "no such table": asyncio.run(_first(TableVersionTrigger(table="nobody", version=1)))["error"],
        "trigger with a password": refused(TableVersionTrigger, catalog=secret),
        "both places": refused(TableVersionSensor, task_id="wait", catalog="${LAKE}", conn_id="lake"),
    }
    print("CAME OF IT " + json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
