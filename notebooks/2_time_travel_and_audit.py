# %% [markdown]
# # Time travel and audit
#
# With the log in SQL, the history of a table is a question and not an archaeology: how did it grow, who did what, how
# large are the files, since when is a column empty? This notebook asks all four, with plots, of a table that has a secret:
# somewhere in its three weeks of history something went wrong.

# %%
import os
import sqlite3
import tempfile
from datetime import UTC, datetime, timedelta

import matplotlib.pyplot as plt
import pandas as pd

from mainstem import build_session, open_catalog

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
spark = build_session("audit")

# %% [markdown]
# ## Three weeks in a shop
#
# Every day brings sign-ups. Every fifth day someone asks to be forgotten, and on Sundays the table is compacted. From the
# ninth day on a new release of the shop loses every third e-mail address. Nobody notices.

# %%
def sign_ups(day):
    email = "concat('user', id, '@example.org')"
    if day >= 8:
        email = f"CASE WHEN id % 3 = 0 THEN NULL ELSE {email} END"
    return spark.range(1000 * day, 1000 * day + 400 + 40 * day, 1, 4).selectExpr(
        "id", f"{email} AS email", "CASE WHEN id % 10 < 8 THEN 'DE' ELSE NULL END AS country"
    )


table = f"delta.`{folder.name}/customers`"
times = []
for day in range(21):
    release = "shop-2.0" if day >= 8 else "shop-1.9"
    sign_ups(day).write.format("delta").mode("append").option("userMetadata", release).save("customers")
    times.append((day, 9))
    if day % 5 == 4:
        spark.sql(f"DELETE FROM {table} WHERE id BETWEEN {1000 * day} AND {1000 * day + 20}")
        times.append((day, 12))
    if day % 7 == 6:
        spark.sql(f"OPTIMIZE {table}").collect()
        times.append((day, 22))

# %% [markdown]
# All of that took seconds, and a plot over seconds teaches nothing. The time of a Delta commit is the time of its file, so
# the files get the times which they would have had.

# %%
begin = datetime(2026, 10, 26, tzinfo=UTC)
for version, (day, hour) in enumerate(times):
    moment = (begin + timedelta(days=day, hours=hour)).timestamp()
    os.utime(f"customers/_delta_log/{version:020}.json", (moment, moment))

# %%
catalog = open_catalog("sqlite:///lake.db", spark=spark)
catalog.migrate()
catalog.import_table("customers", name="crm.customers")
customers = catalog.table("crm.customers")
lake = sqlite3.connect("lake.db")

# %% [markdown]
# ## Who did what
#
# `vw_operations` has one row for each commit. The whole commitInfo is kept verbatim, so what an engine has said there is
# still there: here, which release of the shop wrote.

# %%
operations = pd.read_sql(
    """
    SELECT version, committed_at, operation, json_extract(commit_info, '$.userMetadata') AS release
    FROM vw_operations WHERE name = 'crm.customers' ORDER BY version
    """,
    lake,
    parse_dates=["committed_at"],
)
operations.head(8)

# %%
plt.rcParams.update({"figure.figsize": (9, 3.2), "axes.spines.top": False, "axes.spines.right": False})
COLOURS = {"WRITE": "#2a6f97", "DELETE": "#c1553b", "OPTIMIZE": "#e0a030"}

weekly = operations.assign(week=operations.committed_at.dt.strftime("week %V")).pivot_table(
    index="week", columns="operation", values="version", aggfunc="count", fill_value=0
)
axes = weekly[list(COLOURS)].plot.barh(stacked=True, color=COLOURS, width=0.6)
axes.set(title="Commits by operation", xlabel="commits", ylabel="")
axes.invert_yaxis()
axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.14, 0))
plt.show()

# %% [markdown]
# ## How it grew
#
# `vw_size_by_version` adds up what each version brought and ended. No file is opened for it, and no snapshot is rebuilt.

# %%
growth = pd.read_sql(
    "SELECT * FROM vw_size_by_version WHERE name = 'crm.customers' ORDER BY version", lake, parse_dates=["committed_at"]
)
growth[["version", "committed_at", "operation", "files", "size_bytes", "records"]].tail(4)

# %%
figure, (rows, files) = plt.subplots(2, 1, sharex=True, figsize=(9, 5))
rows.step(growth.committed_at, growth.records, where="post", color="#555555")
files.step(growth.committed_at, growth.files, where="post", color="#555555")
for operation, colour in COLOURS.items():
    these = growth[growth.operation == operation]
    rows.scatter(these.committed_at, these.records, color=colour, label=operation, zorder=3, s=22)
    files.scatter(these.committed_at, these.files, color=colour, zorder=3, s=22)
rows.set(title="Growth of crm.customers", ylabel="rows")
files.set(ylabel="live files")
rows.legend(frameon=False)
figure.autofmt_xdate()
plt.show()

# %% [markdown]
# Rows grow steadily. Files saw-tooth: each day leaves four small ones, and each OPTIMIZE puts them together.
#
# ## How large the files are, and how long they live
#
# A row of `dl_add_files` says when a file came, how large it is, and when it went. Every line below is one file: the whole
# life of the table in one picture. What a vertical line at a version would cross is the table at that version.

# %%
files = pd.read_sql(
    """
    SELECT f.version, f.removed_version, f.size_bytes / 1000.0 AS kilobytes, o.operation
    FROM dl_add_files f JOIN vw_operations o ON o.table_id = f.table_id AND o.version = f.version
    """,
    lake,
)
files["until"] = files.removed_version.fillna(len(times))

figure, axes = plt.subplots(figsize=(9, 3.6))
for operation, colour in COLOURS.items():
    these = files[files.operation == operation]
    axes.hlines(these.kilobytes, these.version, these.until, color=colour, lw=1.2, label=f"added by {operation}")
axes.set(title="Files of crm.customers: size and span", xlabel="version", ylabel="kB", yscale="log")
axes.yaxis.set_major_formatter("{x:g}")
axes.legend(frameon=False, loc="center left")
plt.show()

# %% [markdown]
# Two bands: a few kilobytes each from the daily writes, and the compacted files, each larger than the last, because each
# holds all rows so far. A table of only small files would show it here long before a reader feels it.

# %% [markdown]
# ## Since when is a column empty?
#
# Delta counts nulls in the statistics of each file. `vw_null_rates` adds them up for each version and column: a profile of
# the data over time that nobody had to compute at the time.

# %%
nulls = pd.read_sql(
    "SELECT version, committed_at, column_name, null_rate FROM vw_null_rates WHERE name = 'crm.customers' ORDER BY version",
    lake,
    parse_dates=["committed_at"],
)
rates = nulls.pivot(index="version", columns="column_name", values="null_rate")
suspect = int(rates.email.gt(0).idxmax())

axes = rates.plot(color={"id": "#999999", "email": "#c1553b", "country": "#2a6f97"}, drawstyle="steps-post", lw=2)
axes.axvline(suspect, color="#c1553b", ls=":", lw=1)
axes.annotate(f"version {suspect}", (suspect, 0.23), xytext=(4, 0), textcoords="offset points", color="#c1553b")
axes.set(title="Share of nulls by version", ylabel="null rate", ylim=(-0.01, 0.3))
axes.yaxis.set_major_formatter("{x:.0%}")
axes.legend(frameon=False, title="", loc="upper left")
plt.show()

# %% [markdown]
# `country` has always been missing for a fifth of the rows: that is how the shop is. `email` was never missing, until one
# version. Which commit was that, and which release made it?

# %%
operations[operations.version.between(suspect - 1, suspect)]

# %% [markdown]
# ## Travel to the moment before
#
# A version, or a moment in time. Both are resolved once, and everything read after that is bounded by the version.

# %%
moment = operations.committed_at[suspect] - timedelta(hours=1)
before = customers.snapshot(timestamp=moment.isoformat())
print(f"an hour before it was version {before.version}, with {before.size().records} rows")

# %%
from pyspark.sql import functions as F

lost = customers.read().where("email IS NULL")
lost.select(F.count("*").alias("rows without e-mail"), F.min("id").alias("first"), F.max("id").alias("last")).toPandas()

# %% [markdown]
# The other direction works as well: which commit brought a file, and which took it away? A file of the suspicious commit:

# %%
[path, *_] = [row["path"] for row in customers.snapshot(version=suspect).iter_files() if row["version"] == suspect]
pd.read_sql("SELECT action, version, operation, committed_at FROM vw_file_history WHERE path = ?", lake, params=[path])

# %% [markdown]
# It came with the first write of release 2.0, and went with the next compaction. The rows are still without an address, and now
# it is known which ones, since when, and whom to ask.

# %%
assert operations.release[suspect] == "shop-2.0"
assert lost.count() == customers.read().where("email IS NULL AND id >= 8000").count()
catalog.close()
spark.stop()
