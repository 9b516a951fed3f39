"""Write what was committed into the tables' logs: `mainstem publish` under spark-submit."""

from mainstem.job import run

if __name__ == "__main__":
    run("publish")
