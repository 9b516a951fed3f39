# %% [markdown]
# # A tour
#
# Mainstem keeps the transaction log of Delta tables in a SQL database. The tables stay ordinary Delta tables: this tour
# begins with one that plain Delta wrote, brings it into a catalog, lets the catalog take the lead, and ends with a proof
# that both say the same.
#
# Everything happens in a temporary folder, with a catalog in one SQLite file.

# %%
import os
import sqlite3
import tempfile

import pandas as pd

from mainstem import build_session, open_catalog

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
spark = build_session("tour")

# %% [markdown]
# ## A table that was there before
#
# Two days of orders, written by Delta Spark. Nothing of Mainstem is involved yet.

# %%
def orders(first, last, day):
    return spark.range(first, last, 1, 2).selectExpr(
        "id", f"DATE'{day}' AS day", "id % 7 AS customer", "round(id % 90 + 9.99D, 2) AS amount"
    )


for first, day in ((0, "2026-11-16"), (1000, "2026-11-17")):
    orders(first, first + 1000, day).write.format("delta").mode("append").partitionBy("day").save("orders")

# %% [markdown]
# ## Into the catalog
#
# `migrate` creates the `dl_*` tables. `import_table` reads the whole readable history. The table's log goes on leading:
# Mainstem only follows it, and never writes to it.

# %%
catalog = open_catalog("sqlite:///lake.db", spark=spark)
catalog.migrate()
done = catalog.import_table("orders", name="sales.orders")
print(f"versions {done.first_version} to {done.version}, {done.files} live files")

# %% [markdown]
# What Delta keeps in files is now rows. Every data file has a *span*: from the version that added it to the version that
# took it away. A file without an end is live.

# %%
lake = sqlite3.connect("lake.db")
spans = "SELECT partition_values, num_records, version, removed_version FROM dl_add_files"
pd.read_sql(spans, lake).convert_dtypes()

# %% [markdown]
# ## Follow
#
# Other engines keep writing, and the catalog follows. The delete below rewrites files, so spans get an end.

# %%
orders(2000, 3000, "2026-11-18").write.format("delta").mode("append").save("orders")
spark.sql(f"DELETE FROM delta.`{folder.name}/orders` WHERE day = DATE'2026-11-16' AND id < 10")

table = catalog.table("sales.orders")
followed = table.follow()
print(f"{followed.versions} versions came in; the head is {followed.version}")

# %%
pd.read_sql(spans, lake).convert_dtypes()

# %% [markdown]
# ## Any version, any predicate
#
# A snapshot is a table exactly as it was at one version. Opening it is a query; so is finding the files that a predicate
# can match. Neither starts a Spark job.

# %%
snapshot = table.snapshot(version=1)
print(f"version {snapshot.version} had {snapshot.size().records} rows in {snapshot.size().files} files")
table.snapshot().to_arrow(where="day = '2026-11-17' AND id < 1100", columns=["partition_values", "stats"]).to_pandas()

# %%
table.read(version=1).groupBy("day").count().orderBy("day").toPandas()

# %% [markdown]
# ## The catalog takes the lead
#
# After `cutover` commits are decided by the database. Delta's own engine still does the work on the data: Mainstem lays a
# log over the table's folder, lets Delta run its operation there, and takes what Delta commits as a proposal.

# %%
table.cutover(committer="tour")
changed = orders(2990, 3010, "2026-11-18").selectExpr("id", "day", "customer", "amount + 1000 AS amount")
committed = (
    table.merge(changed, on="t.id = s.id AND t.day = s.day AND t.day = DATE'2026-11-18'", committer="tour")
    .when_matched_update_all()
    .when_not_matched_insert_all()
    .execute()
)
print(f"version {committed.version}, published: {committed.published}")

# %%
pd.DataFrame(table.history())[["version", "operation", "committer", "committed_at"]]

# %% [markdown]
# *Published* means that the commit is in `_delta_log` as well. Every other engine sees it there; here are Delta Spark and
# delta-rs, which know nothing of the catalog.

# %%
from deltalake import DeltaTable

pd.DataFrame(
    {
        "engine": ["through the catalog", "Delta Spark", "delta-rs"],
        "rows": [
            table.read().count(),
            spark.read.format("delta").load("orders").count(),
            DeltaTable("orders").to_pyarrow_dataset().count_rows(),
        ],
    }
)

# %% [markdown]
# ## A name for one moment of all tables
#
# A tag names the version that each table has now. It never moves, and it holds what it names: nothing of it expires.

# %%
catalog.create_table("sales.items", location="items", schema="order_id BIGINT, sku STRING")
catalog.table("sales.items").append(spark.range(3000).selectExpr("id AS order_id", "'pen' AS sku"))
catalog.tag("eod-2026-11-18", remark="end of day")

table.delete("day = DATE'2026-11-17'")

then = catalog.read_as_of("eod-2026-11-18", ["sales.orders", "sales.items"])
now = {name: catalog.table(name).read() for name in then}
pd.DataFrame({"at the tag": {n: f.count() for n, f in then.items()}, "now": {n: f.count() for n, f in now.items()}})

# %% [markdown]
# ## Proof
#
# `validate` compares the catalog's rows with the published log and with the files on disk.

# %%
reports = [catalog.table(name).validate() for name in then]
pd.DataFrame(
    [{"table": r.table, "version": r.version, "checks": len(r.checks), "findings": len(r.findings)} for r in reports]
)

# %%
assert all(report.success for report in reports)
catalog.close()
spark.stop()

# %% [markdown]
# Next: [time travel and audit](2_time_travel_and_audit.ipynb), [transactions](3_transactions.ipynb),
# [large logs](4_large_logs.ipynb), [on Databricks](5_databricks.ipynb).
