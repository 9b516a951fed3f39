"""Add the rows of a file to a table: `mainstem append` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("append")
