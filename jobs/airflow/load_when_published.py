"""When a table has come to a version: append a file to another one, once.

The sensor defers: while it waits, it holds neither a worker nor a JVM. The append names DAG, task and run in its
commit, and is known by the version that it was made for: triggered twice for one, it happens once. Each version is
an application of its own, so that an older one which comes later is loaded, too.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Param, dag

from mainstem.airflow import Alert, TableVersionSensor, submit


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={
        "after": Param("sales.orders", type="string", description="the table to wait for"),
        "version": Param(0, type="integer", description="the version that it must have published"),
        "into": Param("sales.loaded", type="string", description="the table to append to"),
        "source": Param("", type="string", description="a Parquet file or folder"),
    },
    default_args={"on_failure_callback": Alert(), "execution_timeout": timedelta(hours=2)},
    tags=["mainstem"],
)
def load_when_published():
    wait = TableVersionSensor(
        task_id="wait",
        table="{{ params.after }}",
        version="{{ params.version }}",
        state="published",
        poke_interval=10,
        timeout=6 * 60 * 60,
    )
    append = SparkSubmitOperator(
        task_id="append",
        application_args=[
            "{{ params.into }}", "--source", "{{ params.source }}",
            "--txn", "{{ dag.dag_id }} {{ params.after }} {{ params.version }}:0", "--committer", "airflow",
        ],
        **submit("append"),
    )  # fmt: skip
    wait >> append


load_when_published()
