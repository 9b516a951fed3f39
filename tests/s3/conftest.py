"""A Spark session that speaks S3, and a store for it: not those of other tests, so that `make s3` is its own run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from s3server import S3, s3_server

from mainstem import build_session
from mainstem.session import defaults

# Without the bundle of every service of Amazon's, 686 MB, that hadoop-aws asks for: these are 18.
_SDK = "2.35.4"
_JARS = ["org.apache.hadoop:hadoop-aws:3.5.0"] + [
    f"software.amazon.awssdk:{name}:{_SDK}" for name in ("s3", "s3-transfer-manager", "sts")
]


@pytest.fixture(scope="session")
def store() -> Iterator[S3]:
    """The store of this run. obstore and delta-rs find it by the environment."""
    with s3_server() as server:
        before = {name: os.environ.get(name) for name in server.environment}
        os.environ.update(server.environment)
        yield server
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="session")
def spark(store: S3) -> Iterator[SparkSession]:
    """The session of this run."""
    conf = {
        **store.hadoop,
        "spark.jars.packages": ",".join([defaults()["spark.jars.packages"], *_JARS]),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.sql.shuffle.partitions": "2",
    }
    session = build_session("mainstem on S3", master="local[2]", **conf)
    yield session
    session.stop()
