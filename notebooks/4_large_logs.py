# %% [markdown]
# # Large logs
#
# What does it cost to open a table whose log is long? Plain Delta reads a checkpoint and the commits since, and rebuilds
# the state of all files before it does anything. Here the state is a set of rows, and a question costs what its answer
# costs. This notebook makes a log, looks at the plans of the queries, in the database and in Spark, and measures.
#
# Times are those of the machine that ran it. Compare them with each other, not with yours; `make bench` measures with more
# care.

# %%
import contextlib
import io
import os
import re
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from deltalake import DeltaTable
from pyspark.sql import functions as F

from mainstem import build_session, open_catalog
from mainstem.bench.logwriter import write_log
from mainstem.bench.recipe import Recipe
from mainstem.bench.sides import clear_delta_cache, delta_files
from mainstem.engines.postgres_server import start_postgres_server

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
spark = build_session("large logs", **{"spark.default.parallelism": "4"})

# %% [markdown]
# ## A log
#
# 144,000 files came in 2,000 commits and 43,176 of them went again, as in a table that is compacted as it grows. There
# is no data behind it: only the log counts here. The catalog is a Postgres of our own, on a free port.

# %%
recipe = Recipe(adds=144_000, removes=43_176, commits=2_000)
log = write_log(recipe, Path("events").absolute())
size = sum(file.stat().st_size for file in (log / "_delta_log").iterdir())
print(f"{recipe.commits:,} commits, {recipe.live:,} live files, {size / 1e6:.0f} MB of log")

# %%
server = start_postgres_server(settings={"shared_buffers": "256MB"})
catalog = open_catalog(f"{server.uri()}?schema=lake", spark=spark)
catalog.migrate()

began = time.perf_counter()
done = catalog.import_table(str(log), name="web.events")
seconds = time.perf_counter() - began
print(f"{done.actions:,} actions imported in {seconds:.0f} s, compared with Delta's own state before the commit")

# %% [markdown]
# ## One row, one file, one span
#
# A file is live at version *V* if it came by then and has not gone by then. That is the whole query for a snapshot: no
# window over the log and no join. So time travel has the price of the head, and a short answer has the price of its rows.
# Here is the plan for what was live at version 100, early in the life of the table.

# %%
events = catalog.table("web.events")
with catalog.engine.reading() as connection:
    connection.execute("ANALYZE")
    plan = catalog.engine.execute(
        connection,
        """
        EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF)
        SELECT path, size_bytes FROM dl_add_files
        WHERE table_id = :table_id AND version <= :version
          AND (removed_version IS NULL OR removed_version > :version)
        """,
        {"table_id": events.info().table_id, "version": 100},
    ).fetchall()
for line in plan:
    print(line[0].replace(events.info().table_id, "…"))

# %% [markdown]
# ## Slices
#
# A table too large for one process is read by Spark, over JDBC. Every row has a `path_bucket` from 0 to 255, a hash of its
# path that the writer has stored. A task reads one range of buckets over a connection of its own, with the version bound
# inside of its query: together the slices are one snapshot, whatever is committed meanwhile.

# %%
snapshot = events.snapshot()
spans = snapshot.files(engine="spans")
spans.groupBy(F.spark_partition_id().alias("task")).agg(
    F.count("*").alias("files"), F.round(F.sum("size_bytes") / 1e9, 1).alias("GB of data")
).orderBy("task").toPandas()

# %% [markdown]
# ## Two plans, one answer
#
# `spans` trusts `removed_version`. `replay` does not: it takes the newest action of each file from the log's rows alone,
# by a window, and is what spans are verified against. Its plan, with two slices to keep it short:

# %%
def plan(frame):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        frame.explain(mode="formatted")
    tree = said.getvalue().split("\n\n")[0]  # the operators; their details follow
    return re.sub(r"JDBCRelation\(\(.*?UNION ALL\s+SELECT (.*?)\s+FROM (\w+).*?rows_of_query\)", r"\2 (\1)", tree, flags=re.DOTALL)


with open_catalog(f"{server.uri()}?schema=lake", spark=spark, jdbc_slices=2) as two:
    print(plan(two.table("web.events").snapshot().files(engine="replay")))

# %% [markdown]
# All actions of one path are in one slice, so a task ranks what it has read itself: below each `Window` there is a sort and
# no exchange. What is live then meets its wide rows, statistics and all, in one join. For spans the plan is a scan:

# %%
replay = snapshot.files(engine="replay")
print(plan(spans))

# %%
assert spans.select("path").exceptAll(replay.select("path")).isEmpty()
print(f"{spans.count():,} files by spans, {replay.count():,} by replay, {recipe.live:,} expected")

# %% [markdown]
# ## Prune in the database
#
# Partition values and statistics are looked at by SQL. A predicate fetches the files that may match, and not the state of
# all files to find them in.

# %%
where = "date = '2025-07-01' AND amount > 10"
day = snapshot.to_arrow(where=where, columns=["path", "num_records"])
print(f"{day.num_rows} of {recipe.live:,} files may match {where!r}")

# %% [markdown]
# ## Measured
#
# Who asks begins with nothing: a new connection, no cache of the table. Everybody has a turn in each round, and the bar is
# the median.

# %%
def mainstem(ask, **at):
    with open_catalog(server.uri() + "?schema=lake") as opened:
        return ask(opened.table("web.events").snapshot(**at))


def discard(frame):
    frame.write.format("noop").mode("overwrite").save()


questions = {
    "Mainstem: version, schema, protocol": lambda: mainstem(lambda s: s.columns()),
    "Mainstem: files for a predicate": lambda: mainstem(lambda s: s.to_arrow(where=where)),
    "Mainstem: all live files": lambda: mainstem(lambda s: s.to_arrow()),
    "Mainstem: all live files at version 1000": lambda: mainstem(lambda s: s.to_arrow(), version=1000),
    "Mainstem in Spark: spans": lambda: discard(snapshot.files(engine="spans")),
    "Mainstem in Spark: replay": lambda: discard(snapshot.files(engine="replay")),
    "delta-rs: all live files": lambda: DeltaTable(str(log)).get_add_actions(),
    "Delta Spark: all live files": lambda: (clear_delta_cache(spark), discard(delta_files(spark, log))),
}
times = {question: [] for question in questions}
for _ in range(4):
    for question, ask in questions.items():
        began = time.perf_counter()
        ask()
        times[question].append(1000 * (time.perf_counter() - began))
medians = pd.DataFrame(times).iloc[1:].median()  # the first round loads and compiles code
medians.round(1).to_frame("median ms")

# %%
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(figsize=(9, 3.6))
colours = ["#2a6f97" if name.startswith("Mainstem") else "#b0b0b0" for name in medians.index]
bars = axes.barh(medians.index, medians, color=colours)
axes.bar_label(bars, labels=[f"{value:,.0f} ms" for value in medians], padding=4)
axes.set(xscale="log", xlabel="milliseconds, median", title=f"{recipe.live:,} live files after {recipe.commits:,} commits")
axes.set_xlim(10, medians.max() * 4)
axes.invert_yaxis()
plt.show()

# %% [markdown]
# What to see: nothing had to be rebuilt to open the table, so its head costs a connection and a few short queries, and its
# live files arrive before either Delta engine has put them together. Time travel costs about the same. A predicate is
# judged by the database, row by row, and only what matches travels. Replay is the dear one, as dear as Delta's own: it is
# the same work, and it is there to check the others.

# %%
catalog.close()
spark.stop()
server.stop()
