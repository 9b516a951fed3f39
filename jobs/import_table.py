"""Bring a Delta table into a catalog: `mainstem import` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("import")
