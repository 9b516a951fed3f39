"""What Airflow hands over, as values of ours: a run as commit info, a connection as a catalog's URI.

Airflow itself is not imported: its context and its connections are asked for their attributes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from mainstem.errors import UsageError

_KEY: Final = "airflow"
_VARIABLES: Final = {
    "dag_id": "AIRFLOW_CTX_DAG_ID",
    "task_id": "AIRFLOW_CTX_TASK_ID",
    "run_id": "AIRFLOW_CTX_DAG_RUN_ID",
    "try_number": "AIRFLOW_CTX_TRY_NUMBER",
}
# The same as a template, for what is rendered by Airflow and read by a job on another machine.
COMMIT_INFO_TEMPLATE: Final = (
    '{{ {"airflow": {"dag_id": ti.dag_id, "task_id": ti.task_id, "run_id": ti.run_id, '
    '"try_number": ti.try_number, "map_index": ti.map_index} } | tojson }}'
)
_ENGINES: Final = {"postgres": "postgresql", "postgresql": "postgresql", "sqlite": "sqlite", "duckdb": "duckdb"}


def run_info(context: Mapping[str, Any]) -> dict[str, Any]:
    """The DAG, task and run of a task's context, for `catalog.transaction(info=…)`."""
    task = context["ti"]
    names = ("dag_id", "task_id", "run_id", "try_number", "map_index")
    return {_KEY: {name: getattr(task, name) for name in names}}


def run_info_of(environ: Mapping[str, str]) -> dict[str, Any]:
    """The same from the variables that Airflow sets for what a task starts; nothing where it has not."""
    found: dict[str, Any] = {name: environ[key] for name, key in _VARIABLES.items() if environ.get(key)}
    if "dag_id" not in found:
        return {}
    if found.get("try_number", "").isdecimal():
        found["try_number"] = int(found["try_number"])
    return {_KEY: found}


def connection_uri(connection: Any) -> str:
    """A catalog's URI from an Airflow connection: of type postgres, sqlite or duckdb, or with a `uri` in its extra.

    In a connection to Postgres `schema` is the database, as Airflow has it, and `schema` in its extra is the catalog's.
    """
    extra: dict[str, Any] = dict(connection.extra_dejson or {})
    if "uri" in extra:
        return str(extra["uri"])
    scheme = _ENGINES.get(str(connection.conn_type))
    if scheme is None:
        raise UsageError(
            f"the Airflow connection {connection.conn_id} is of type {connection.conn_type}, which is no catalog.",
            hint='Make it one of type postgres or sqlite, or give it the extra {"uri": "duckdb:///…"}.',
        )
    if scheme != "postgresql":
        return f"{scheme}:///{quote(str(connection.host or connection.schema or ''), safe='/')}"
    user = quote(str(connection.login or ""), safe="")
    password = f":{quote(str(connection.password), safe='')}" if connection.password else ""
    port = f":{connection.port}" if connection.port else ""
    query = urlencode({key: str(value) for key, value in extra.items()}, quote_via=quote)
    place = f"{connection.host or 'localhost'}{port}/{quote(str(connection.schema or ''), safe='')}"
    return f"postgresql://{user}{password}{'@' if user else ''}{place}{'?' if query else ''}{query}"
