"""Every night: compare all tables with their logs, and give a name to what was found good.

The validation job exits with 4 if a table and its log do not agree, or a suite of a table's own does not hold: the task
fails, the alert goes out, and no tag is set. Who reads by the newest `good-…` tag reads nothing that was not checked.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import dag, get_current_context, task

from mainstem import open_catalog
from mainstem.airflow import Alert, submit


@dag(
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"on_failure_callback": Alert(), "execution_timeout": timedelta(hours=4)},
    tags=["mainstem"],
)
def nightly_validation():
    @task
    def heads() -> dict[str, int]:
        """What the tables are at before they are checked. No JVM."""
        with open_catalog() as catalog:
            return {table.name: table.version for table in catalog.tables()}

    validate = SparkSubmitOperator(task_id="validate", application_args=["--all"], **submit("validate"))

    @task(retries=3, retry_delay=timedelta(seconds=10))
    def tag_as_good(checked: dict[str, int]) -> dict[str, int]:
        """Name the versions that were checked. A table that has moved on since is left out: its head was not."""
        name = f"good-{get_current_context()['dag_run'].run_after:%Y-%m-%d}"
        with open_catalog() as catalog:
            now = {table.name: table.version for table in catalog.tables()}
            still = {table: version for table, version in now.items() if checked.get(table) == version}
            if not still:
                return {}
            if name in {tag.name for tag in catalog.tags()}:
                catalog.untag(name)
            tag = catalog.tag(name, tables=list(still), remark="validated")
            if tag.versions != still:
                catalog.untag(name)
                raise RuntimeError("a table moved on while it was tagged.")
            return still

    checked = heads()
    checked >> validate >> tag_as_good(checked)


nightly_validation()
