"""Publish, checkpoint, clean up, expire and vacuum: `mainstem maintain` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("maintain")
