"""Measure Mainstem beside Delta Spark and delta-rs: `mainstem bench` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("bench")
