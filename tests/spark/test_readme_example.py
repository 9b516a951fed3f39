"""The ten lines of the README are a program that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_example_of_the_readme_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    rows = spark.range(5)
    rows.write.format("delta").save(str(tmp_path / "orders"))
    names = {"spark": spark, "new_orders": rows}
    exec(compile(example, "README.md", "exec"), names)
    assert capsys.readouterr().out.strip() == "6"
    assert spark.read.format("delta").load(str(tmp_path / "items")).count() == 5
    names["catalog"].close()
