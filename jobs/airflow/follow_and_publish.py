"""Every few minutes: bring in what outside engines have committed, and write to the logs what waits there.

Both jobs may run at any time, twice at once, and be killed anywhere. One table that fails does not hold up the others;
its reason is in the job's report, and the task fails. Neither needs a DataFrame: where a JVM every few minutes is too
much, let a BashOperator call `mainstem follow --all` and `mainstem publish --all`, which are the same and start none.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import dag

from mainstem.airflow import Alert, submit


@dag(
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"on_failure_callback": Alert(), "execution_timeout": timedelta(minutes=30)},
    tags=["mainstem"],
)
def follow_and_publish():
    SparkSubmitOperator(task_id="follow", application_args=["--all"], **submit("follow"))
    SparkSubmitOperator(task_id="publish", application_args=["--all"], **submit("publish"))


follow_and_publish()
