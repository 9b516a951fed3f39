"""How long validation takes in Spark, and in how much memory: `python -m mainstem.bench.validation make|run LIVE …`.

Not a race: nobody else does it. Each size is made once, on a server that is given, and then measured by itself.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from mainstem import session
from mainstem.bench.catalogwriter import write_catalog
from mainstem.bench.generator import Generator
from mainstem.bench.logwriter import write_log
from mainstem.bench.recipe import Recipe
from mainstem.catalog import open_catalog

TABLE = "bench.t"
_SPARK = {"spark.driver.memory": "2g", "spark.log.level": "ERROR"}


def recipe_of(live: int) -> Recipe:
    """A log with so many live files: 1.4 adds and 0.4 removes of each, 200 live files a commit."""
    return Recipe(adds=live * 14 // 10, removes=live * 4 // 10, commits=live // 200)


def make(uri: str, live: int, folder: Path) -> None:
    """The table: its log, its data files with the recorded sizes (of holes), and its catalog."""
    recipe = recipe_of(live)
    write_log(recipe, folder)
    generator = Generator(recipe)
    files = recipe.live_at(recipe.last)
    paths, sizes = generator.paths(files), generator.size(files)
    for day in {path.split(b"/")[0] for path in paths.tolist()}:
        (folder / day.decode()).mkdir(exist_ok=True)
    for path, size in zip(paths.tolist(), sizes.tolist(), strict=True):
        with open(os.path.join(folder, path.decode()), "wb") as file:
            file.truncate(size)
    with open_catalog(uri) as catalog:
        catalog.migrate()
        write_catalog(recipe, catalog.store, name=TABLE, location=str(folder))
        if not catalog.engine.capabilities.file:
            with catalog.engine.reading() as connection:
                connection.execute("VACUUM ANALYZE")


def run(uri: str) -> dict[str, Any]:
    """One validation in a session of 2 GB: its report in numbers, and the most memory of the processes."""
    spark = session.build_session("mainstem validation", **_SPARK)
    try:
        with open_catalog(uri, spark=spark) as catalog:
            began = time.monotonic()
            report = catalog.table(TABLE).validate(engine="spark")
            taken = time.monotonic() - began
            files = catalog.table(TABLE).snapshot().size().files
        heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()  # type: ignore[union-attr]
        return {
            "files": files,
            "seconds": round(taken, 1),
            "success": report.success,
            "findings": [(found.check, found.severity, found.message) for found in report.findings[:5]],
            "checks": {name: round(each, 1) for name, each in report.seconds.items()},
            "jvm_heap_mb": heap // 2**20,
            "python_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "python_workers_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        }
    finally:
        spark.stop()


def _main(arguments: list[str]) -> None:
    what, uri, folder, *sizes = arguments
    for live in map(int, sizes):
        own = f"{uri}{'&' if '?' in uri else '?'}schema=live_{live}"
        if what == "make":
            make(own, live, Path(folder) / f"live_{live}")
        else:
            sys.stdout.write(orjson.dumps(run(own)).decode() + "\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
