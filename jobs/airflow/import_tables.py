"""By hand: bring many Delta tables into the catalog, some at a time, one job and one task each.

Trigger it with `{"tables": {"sales.orders": "s3://lake/orders", …}}`. A table that the catalog has is left alone, so
that what failed can be triggered again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Param, dag, get_current_context, task

from mainstem import open_catalog
from mainstem.airflow import Alert, submit


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"tables": Param({}, type="object", description="location by name")},
    default_args={"on_failure_callback": Alert(), "execution_timeout": timedelta(hours=2)},
    tags=["mainstem"],
)
def import_tables():
    @task
    def missing() -> list[list[str]]:
        """The arguments of a job for each table that the catalog has not. No JVM."""
        wanted = get_current_context()["params"]["tables"]
        with open_catalog() as catalog:
            known = {table.name for table in catalog.tables()}
        return [[location, "--name", name] for name, location in sorted(wanted.items()) if name not in known]

    SparkSubmitOperator.partial(
        task_id="import_table", max_active_tis_per_dag=4, map_index_template="{{ task.application_args[-1] }}",
        **submit("import_table"),
    ).expand(application_args=missing())  # fmt: skip


import_tables()
