"""Compare the catalog with the log and the files of tables: `mainstem validate` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("validate")
