"""Bring in what a table's log has beyond the catalog's head: `mainstem follow` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("follow")
