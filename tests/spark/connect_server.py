"""Run by test_connect.py in a process of its own: a Spark Connect server, until its input ends.

It says its port on the first line of its output.
"""

from __future__ import annotations

import sys
from typing import Any

from mainstem import build_session

CONF = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.port": "0",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # to compile costs more than so few rows can gain
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def main() -> None:
    spark = build_session("a Connect server", master="local[2]", **CONF)
    assert spark._jvm is not None
    service: Any = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    print(f"PORT {service.__getattr__('MODULE$').localPort()}", flush=True)  # noqa: T201  the answer
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
