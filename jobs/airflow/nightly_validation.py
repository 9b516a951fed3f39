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

    @task
    def tag_as_good(checked: dict[str, int]) -> dict[str, int]:
        """Name the versions of this moment, which are those that were checked or later ones."""
        name = f"good-{get_current_context()['dag_run'].run_after:%Y-%m-%d}"
        with open_catalog() as catalog:
            known = {tag.name: tag for tag in catalog.tags()}
            tag = known.get(name) or catalog.tag(name, remark=f"validated at {checked}")
            return dict(tag.versions)

    checked = heads()
    checked >> validate >> tag_as_good(checked)


nightly_validation()
