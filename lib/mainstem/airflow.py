"""For Airflow 3: a sensor that waits for a table's version, jobs for SparkSubmitOperator, alerts, a run as commit info.

Imported by DAGs alone; Airflow is no dependency of the library. See docs/airflow.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from airflow.sdk import BaseHook, BaseNotifier, BaseSensorOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent

from mainstem.airflowvalues import COMMIT_INFO_TEMPLATE, connection_uri, run_info
from mainstem.errors import EngineBusy, MainstemError, UsageError, mask
from mainstem.uri import holds_password
from mainstem.watch import State, Watch

__all__ = ["Alert", "TableVersionSensor", "TableVersionTrigger", "run_info", "submit"]


def submit(job: str) -> dict[str, Any]:
    """What SparkSubmitOperator needs for a job of `jobs/`, but its arguments.

    `MAINSTEM_HOME` names the folder that has `jobs/` and `spark-defaults.conf`, and the wheel in `dist/` unless the
    cluster's Python has the library. What the job commits names the DAG, the task and the run, also in cluster mode.
    """
    home = os.environ.get("MAINSTEM_HOME")
    if not home or not Path(home, "jobs", f"{job}.py").is_file():
        raise UsageError(
            f"there is no job {job} in MAINSTEM_HOME, which is {home or 'not set'}.",
            hint="Set it to a folder that has jobs/ and spark-defaults.conf, where Airflow parses and runs DAGs.",
        )
    wheels = sorted(Path(home, "dist").glob("mainstem-*.whl"))
    return {
        "application": f"{home}/jobs/{job}.py",
        "name": f"mainstem {job}",
        "properties_file": f"{home}/spark-defaults.conf",
        "py_files": str(wheels[-1]) if wheels else None,
        "conf": {"spark.mainstem.commit_info": COMMIT_INFO_TEMPLATE},
    }


# Airflow is not installed where types are checked, so its classes are Any there: hence the three that are ignored.


class Alert(BaseNotifier):  # type: ignore[misc]
    """For `on_failure_callback`: one line in the log, and one POST to the webhook whose URL is in a variable.

    The body is JSON: `text`, as chat services want it, and the run. Where the variable is not set, the line is all.
    """

    def __init__(self, *, url_variable: str = "MAINSTEM_ALERT_URL") -> None:
        super().__init__()
        self.url_variable = url_variable

    def notify(self, context: Mapping[str, Any]) -> None:
        """Send it. Airflow logs what goes wrong here, and the task has failed in any case."""
        info = run_info(context)
        run = info["airflow"]
        why = mask(" ".join(str(context.get("exception") or "").split()))[:1000]
        text = f"{run['dag_id']}.{run['task_id']} failed in {run['run_id']}, attempt {run['try_number']}: {why}"
        self.log.error("alert: %s", text)
        if url := os.environ.get(self.url_variable):
            body = json.dumps({"text": text, **info}).encode()
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=10).close()


class TableVersionTrigger(BaseTrigger):  # type: ignore[misc]
    """Looks every `poll_interval` seconds whether a table has come to a version, by one query each time.

    What is stored of it says where the catalog is without its password: as a URI with `${NAME}` in its place, as the
    name of an Airflow connection, or not at all, for MAINSTEM_CATALOG in the environment of the triggerer.
    """

    def __init__(
        self,
        *,
        table: str,
        version: int,
        state: State = "ratified",
        catalog: str | None = None,
        conn_id: str | None = None,
        poll_interval: float = 10.0,
    ) -> None:
        super().__init__()
        _require_no_password(catalog)
        self.table, self.version, self.state = table, version, state
        self.catalog, self.conn_id, self.poll_interval = catalog, conn_id, poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Its class and what it was made with."""
        names = ("table", "version", "state", "catalog", "conn_id", "poll_interval")
        return "mainstem.airflow.TableVersionTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: the version that the table has come to, or why nobody will ever know."""
        uri = self.catalog
        if self.conn_id is not None:
            uri = connection_uri(await BaseHook.aget_connection(self.conn_id))
        try:
            with Watch(self.table, version=self.version, state=self.state, catalog=uri) as watch:
                while (now := await self._look(watch)) is None:
                    await asyncio.sleep(self.poll_interval)
        except MainstemError as error:
            yield TriggerEvent({"error": str(error)})
        else:
            yield TriggerEvent({"version": now})

    async def _look(self, watch: Watch) -> int | None:
        try:
            return await asyncio.to_thread(watch.reached)  # the event loop belongs to all triggers of the process
        except EngineBusy as busy:
            self.log.warning("will look again: %s", busy)
            return None


class TableVersionSensor(BaseSensorOperator):  # type: ignore[misc]
    """Waits until a table is at a version or beyond it: `ratified` by the catalog, or `published` to its log.

    It looks once, and if it has to wait it defers: no worker, no JVM, one query every `poke_interval` seconds. The
    version that the table has come to is its XCom. `catalog` is a URI without a password, `conn_id` an Airflow
    connection; without either, MAINSTEM_CATALOG says where the catalog is.
    """

    template_fields: ClassVar[Sequence[str]] = ("table", "version", "catalog")

    def __init__(
        self,
        *,
        table: str,
        version: int | str,
        state: State = "ratified",
        catalog: str | None = None,
        conn_id: str | None = None,
        deferrable: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if catalog is not None and conn_id is not None:
            raise UsageError("catalog and conn_id exclude each other.", hint="Give one of them.")
        self.table, self.version, self.state = table, version, state
        self.catalog, self.conn_id, self.deferrable = catalog, conn_id, deferrable

    def poke(self, context: Mapping[str, Any]) -> bool:
        """One look."""
        return self._look() is not None

    def execute(self, context: Mapping[str, Any]) -> int | None:
        """Look, and defer if there is something to wait for."""
        if (now := self._look()) is None:
            if not self.deferrable:
                super().execute(context)
                return self._look()
            trigger = TableVersionTrigger(
                table=self.table, version=int(self.version), state=self.state, catalog=self.catalog,
                conn_id=self.conn_id, poll_interval=self.poke_interval,
            )  # fmt: skip
            self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))
        return now

    def execute_complete(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> int:
        """What the trigger has found."""
        if "error" in event:
            raise RuntimeError(event["error"])
        self.log.info("%s is at version %s, %s", self.table, event["version"], self.state)
        return int(event["version"])

    def _look(self) -> int | None:
        _require_no_password(self.catalog)
        uri = self.catalog if self.conn_id is None else connection_uri(BaseHook.get_connection(self.conn_id))
        with Watch(self.table, version=int(self.version), state=self.state, catalog=uri) as watch:
            return watch.reached()


def _require_no_password(catalog: str | None) -> None:
    if catalog is not None and holds_password(catalog):
        raise UsageError(
            "a password in `catalog` would be stored in Airflow's database with the trigger.",
            hint="Write ${NAME} in its place, give conn_id, or set MAINSTEM_CATALOG where Airflow runs.",
        )
