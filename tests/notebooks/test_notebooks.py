"""Run by `make notebooks`: every notebook from top to bottom, in a kernel and a folder of its own.

The source is `notebooks/*.py`; what a run shows is kept beside it as `.ipynb`, for those who read and do not run.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

pytestmark = pytest.mark.timeout(1800)  # a notebook takes minutes on a machine that has other work

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
DATABRICKS = "5_databricks"
JAVA_ONLY = {"_jvm", "_jsc", "_jsparkSession", "_sc", "sparkContext", "rdd"}


def run(source: Path, folder: Path, environment: Mapping[str, str], *, around: tuple[str, str] = ("", "")) -> None:
    """Execute a notebook between two cells that are not kept, and keep what it shows."""
    notebook = jupytext.read(source)
    before, after = (nbformat.v4.new_code_cell(text) for text in around)
    own, notebook.cells = notebook.cells, [before, *notebook.cells, after]
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False)
    try:
        client.execute(cwd=str(folder), env={**_environment(), **environment})
    except CellExecutionError as error:
        pytest.fail(f"{source.name}: {error.ename}: {error.evalue[:2000]}", pytrace=False)
    notebook.cells = own
    for place, cell in enumerate(own):
        cell.id = f"cell-{place}"
        # What Spark logs while it starts is not what the notebook says.
        cell.outputs = [each for each in cell.get("outputs", []) if each.get("name") != "stderr"]
        if cell.cell_type != "code":
            del cell["outputs"]
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(notebook, source.with_suffix(".ipynb"))


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAINSTEM_")}
    return {**kept, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[str]:
    """The address of a Connect server in a process of its own."""
    script = ROOT / "tests" / "spark" / "connect_server.py"
    with (tmp_path / "server.log").open("w+") as complaints:
        server = subprocess.Popen(
            [sys.executable, str(script)],
            env=_environment(),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        assert server.stdout is not None
        said = next((line for line in server.stdout if line.startswith("PORT ")), None)
        assert said is not None, (tmp_path / "server.log").read_text()[-5000:]
        yield f"sc://127.0.0.1:{said.split()[1]}"
        server.communicate(timeout=60)  # the end of its input is its end


@pytest.mark.parametrize("source", [each for each in SOURCES if each.stem != DATABRICKS], ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path, {})


def test_the_one_for_databricks_runs_over_connect_without_java(connect: str, tmp_path: Path) -> None:
    source = ROOT / "notebooks" / f"{DATABRICKS}.py"
    lake = tmp_path / "tables"
    lake.mkdir()
    environment = {
        "SPARK_REMOTE": connect,
        "JAVA_HOME": str(tmp_path / "no-java-here"),
        "MAINSTEM_CATALOG": f"sqlite:///{tmp_path}/lake.db",
        "LAKE_FOLDER": str(lake),
    }
    given = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()"
    proof = "import pyspark\nassert pyspark.SparkContext._gateway is None"
    run(source, tmp_path, environment, around=(given, proof))


def test_the_one_for_databricks_names_nothing_that_connect_lacks() -> None:
    tree = ast.parse((ROOT / "notebooks" / f"{DATABRICKS}.py").read_text())
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert named.isdisjoint(JAVA_ONLY)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_what_is_kept_of_a_notebook_names_no_place_of_this_machine(source: Path) -> None:
    kept = source.with_suffix(".ipynb").read_text()
    for place in (str(ROOT), "/tmp/", str(Path.home()) + "/"):
        assert place not in kept
