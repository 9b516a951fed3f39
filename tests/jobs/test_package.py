"""What a user installs or submits: the wheel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = folder.glob("mainstem-*.whl")
    return found


def test_the_wheel_carries_its_sql_its_defaults_and_its_suites(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {f"mainstem/sql/{file.relative_to(ROOT / 'sql')}" for file in (ROOT / "sql").rglob("*.sql")}
    assert shipped <= names
    assert {"mainstem/spark-defaults.conf", "mainstem/conf/mainstem.ini", "mainstem/py.typed"} <= names


def test_the_package_works_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    """As executors and --py-files see it: zipped, with the checkout out of reach."""
    script = (
        "import mainstem, sys; assert '.whl' in mainstem.__file__, mainstem.__file__\n"
        "from mainstem import open_catalog, session\n"
        "assert 'io.delta' in session.defaults()['spark.jars.packages']\n"
        "print(open_catalog(sys.argv[1]).migrate().after)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, f"sqlite:///{tmp_path}/lake.db"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        check=True,
    )
    assert int(done.stdout) == len(list((ROOT / "sql" / "sqlite").glob("*.down.sql")))


def test_spark_submit_runs_the_migrate_job(wheel: Path, tmp_path: Path) -> None:
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(submit), "--properties-file", str(ROOT / "spark-defaults.conf"), "--py-files", str(wheel)]
    command += [str(ROOT / "jobs" / "migrate.py"), "--catalog", f"sqlite:///{tmp_path}/x.db"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])["version"] > 0
    failed = subprocess.run([*command[:-2], "--catalog", "nonsense"], capture_output=True, text=True, env=environment)
    assert failed.returncode == 2
    assert json.loads(failed.stdout.splitlines()[-1])["error"]["code"] == "usage"
