"""Create or upgrade the schema of a catalog: `mainstem migrate` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("migrate")
