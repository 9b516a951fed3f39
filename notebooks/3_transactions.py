# %% [markdown]
# # Transactions over several tables
#
# Plain Delta commits to one table at a time. Here a commit spans as many as it needs: all heads move, or none. This
# notebook commits to two tables at once, lets two writers collide, and puts a quality gate in front of a commit.

# %%
import json
import os
import tempfile
import textwrap

import great_expectations as gx
import pandas as pd

from mainstem import ConflictError, GateFailed, build_session, open_catalog

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
spark = build_session("transactions")
catalog = open_catalog("sqlite:///lake.db", spark=spark)
catalog.migrate()

# %%
catalog.create_table(
    "sales.orders", location="orders", schema="id BIGINT, day DATE, amount DOUBLE", partition_by=["day"]
)
catalog.create_table("sales.items", location="items", schema="order_id BIGINT, sku STRING, quantity INT")


def orders(first, last, day="2026-11-17", amount="round(id % 90 + 9.99D, 2)"):
    return spark.range(first, last, 1, 1).selectExpr("id", f"DATE'{day}' AS day", f"{amount} AS amount")


def items(first, last):
    return spark.range(first, last, 1, 1).selectExpr("id AS order_id", "'pen' AS sku", "1 AS quantity")


def heads():
    return {table.name: table.version for table in catalog.tables()}


heads()

# %% [markdown]
# ## Both, or neither
#
# What is staged in a transaction is seen by nobody else. Leaving the block commits it, in one database transaction.

# %%
with catalog.transaction(committer="notebook", info={"ticket": "SHOP-12"}) as tx:
    tx.table("sales.orders").append(orders(0, 100))
    tx.table("sales.items").append(items(0, 100))
heads()

# %% [markdown]
# The two versions carry one `group_id`, and the commitInfo of both says what the caller wanted it to say.

# %%
newest = {name: catalog.table(name).history(limit=1)[0] for name in heads()}
pd.DataFrame(newest.values(), index=newest)[["version", "operation", "committer", "group_id"]]

# %%
{name: json.loads(entry.commit_info)["ticket"] for name, entry in newest.items()}

# %% [markdown]
# An exception anywhere in the block leaves nothing behind, neither in one table nor in the other.

# %%
try:
    with catalog.transaction() as tx:
        tx.table("sales.orders").append(orders(100, 200))
        raise RuntimeError("the second source is not there")
except RuntimeError as error:
    print(error)
heads()

# %% [markdown]
# ## SQL, and reading your own writes
#
# In `tx.sql` a `{name}` is a table of the catalog or a DataFrame. A query in the transaction sees what is staged.

# %%
with catalog.transaction(committer="notebook") as tx:
    tx.sql("UPDATE {orders} SET amount = amount * 2 WHERE id < 10", orders="sales.orders")
    tx.sql("INSERT INTO {items} SELECT order_id, 'ink', 1 FROM {new}", items="sales.items", new=items(0, 10))
    inside = tx.sql("SELECT count(*) AS n FROM {items} WHERE sku = 'ink'", items="sales.items").first().n
    outside = catalog.table("sales.items").read(where="sku = 'ink'").count()
print(f"ink inside of the transaction: {inside}, outside at the same time: {outside}")

# %% [markdown]
# ## Two writers
#
# Conflicts are judged by Delta's own rules, at the level of files and partitions. Two writers that touch different days do
# not conflict: the later one is *rebased*, and gets the next version without doing its work again.

# %%
catalog.table("sales.orders").append(orders(100, 200, day="2026-11-18"))

with catalog.transaction(committer="slow") as slow:
    slow.table("sales.orders").delete("day = DATE'2026-11-17' AND id < 5")
    catalog.table("sales.orders").delete("day = DATE'2026-11-18' AND id < 105", committer="quick")

pd.DataFrame(catalog.table("sales.orders").history(limit=2))[["version", "operation", "committer"]]

# %% [markdown]
# Two writers that change the same files do. The second one is told who won and what to do, and nothing of it is committed:
# not even the change to the other table, which conflicted with nobody. The version that the orders gain is the quick one's.

# %%
before = heads()
try:
    with catalog.transaction(committer="slow") as slow:
        slow.table("sales.items").append(items(200, 210))
        slow.table("sales.orders").update(set={"amount": "amount + 1"}, where="day = DATE'2026-11-17'")
        catalog.table("sales.orders").delete("day = DATE'2026-11-17' AND id < 20", committer="quick")
except ConflictError as error:
    print(textwrap.fill(str(error), 110))
{"before": before, "after": heads()}

# %% [markdown]
# Work that can simply be done again on the new state is a function, and `catalog.run` does so.

# %%
attempts = []


def add_one(tx):
    attempts.append(tx.table("sales.orders").state.read_version)
    tx.table("sales.orders").update(set={"amount": "amount + 1"}, where="day = DATE'2026-11-17'")
    if len(attempts) == 1:  # somebody is quicker, once
        catalog.table("sales.orders").delete("day = DATE'2026-11-17' AND id < 30", committer="quick")


catalog.run(add_one, committer="patient")
print(f"tried on versions {attempts}; the head is {catalog.table('sales.orders').version}")

# %% [markdown]
# ## A gate
#
# A gate is a suite of expectations that runs on the *staged* rows, before anything is committed. The batch below has a
# negative amount, and an item whose order does not exist.

# %%
expect = gx.expectations
sane_amounts = gx.ExpectationSuite(
    "sane amounts", [expect.ExpectColumnValuesToBeBetween(column="amount", min_value=0, max_value=10_000)]
)
no_orphans = gx.ExpectationSuite("no item without its order", [expect.ExpectTableRowCountToEqual(value=0)])
orphans = "SELECT * FROM {items} i LEFT ANTI JOIN {orders} o ON o.id = i.order_id"


def load(order_rows, item_rows):
    with catalog.transaction(committer="loader") as tx:
        tx.table("sales.orders").append(order_rows)
        tx.table("sales.items").append(item_rows)
        tx.require(sane_amounts, on="sales.orders", scope="added")
        tx.require(no_orphans, query=orphans, items="sales.items", orders="sales.orders")
    return tx.committed


catalog.table("sales.items").delete("order_id < 30")  # their orders were deleted above
before = heads()

# %%
for batch in (
    (orders(300, 310, amount="CASE WHEN id = 307 THEN -1.0D ELSE 5.0D END"), items(300, 310)),
    (orders(300, 310), items(300, 311)),
):
    try:
        load(*batch)
    except GateFailed as refused:
        print(textwrap.fill(str(refused), 110), end="\n\n")
assert heads() == before

# %% [markdown]
# Both batches were refused, each for its own reason, and no version was made. A good one passes.

# %%
load(orders(300, 310), items(300, 310))
{"before": before, "after": heads()}

# %% [markdown]
# That it passed is on record beside the version which it let in. A gate on statistics alone does not even read the data:

# %%
with catalog.transaction(committer="loader") as tx:
    tx.table("sales.orders").append(orders(310, 320))
    result = tx.require_stats("sales.orders", rows=(1, 1000), null_rate={"id": 0.0}, ranges={"amount": (0, 10_000)})
print(f"{result.checked} expectations on statistics, {len(result.findings)} findings")

# %% [markdown]
# ## Once, however often it is repeated
#
# A job that is started again after a crash gives its transaction the same name, and happens once.

# %%
for attempt in range(2):
    done = catalog.table("sales.orders").append(orders(400, 410), txn=("nightly-load", 20261118))
    print(f"attempt {attempt + 1}: version {done.version}, repeated: {done.repeated}")

# %%
assert catalog.table("sales.orders").read(where="id >= 400").count() == 10
catalog.close()
spark.stop()
