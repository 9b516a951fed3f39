"""Where and with what a run was measured."""

from __future__ import annotations

import os
import platform
import sqlite3
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = (
    "mainstem",
    "pyspark",
    "delta-spark",
    "deltalake",
    "duckdb",
    "adbc-driver-postgresql",
    "psycopg",
    "pyarrow",
)


def facts(spark: SparkSession | None, postgres: str | None) -> dict[str, str]:
    """The day, the machine and the versions; of Spark and Postgres where a run used them."""
    found = {
        "date": datetime.now(UTC).date().isoformat(),
        "load of the last minute": f"{os.getloadavg()[0]:.1f}",
        "cores": str(cores()),
        "processor": _processor(),
        "memory": _memory(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{package: _version(package) for package in _PACKAGES},
    }
    if postgres is not None:
        found["postgres"] = postgres
    if spark is not None:
        found["driver memory of Spark"] = spark.conf.get("spark.driver.memory", None) or "1g, which is Spark's default"
        found["master of Spark"] = spark.conf.get("spark.master", None) or "not known"
    return found


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    for line in known.read_text().splitlines() if known.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB"
    except (ValueError, OSError, AttributeError):
        return "not known"
