"""Compute a table's live files in Spark and write them as Parquet: `mainstem files --output` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("files")
