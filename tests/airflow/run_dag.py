"""Run by test_dags.py in Airflow's own environment: one DAG for real, by `dag.test()`; what came of it, as JSON.

python run_dag.py DAG-ID CONF
"""

from __future__ import annotations

import json
import os
import sys

from airflow.dag_processing.dagbag import DagBag  # type: ignore[import-not-found]


def main(dag_id: str, conf: str) -> None:
    bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    assert not bag.import_errors, bag.import_errors
    run = bag.dags[dag_id].test(run_conf=json.loads(conf))
    tasks = {f"{each.task_id}[{each.map_index}]": str(each.state) for each in run.get_task_instances()}
    print("CAME OF IT " + json.dumps({"state": str(run.state), "run_id": run.run_id, "tasks": tasks}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
