# %% [markdown]
# # On Databricks
#
# Written for a notebook that is given its `spark`. It uses DataFrames and SQL alone, no py4j, so it runs on Spark Connect:
# serverless, shared clusters, `databricks-connect`. `make notebooks` runs it against a Connect server from a process that
# has no Java.
#
# **Before:** Databricks brings Spark and Delta. Install the rest on the cluster:
# `%pip install --no-deps mainstem`, then the other packages of `docs/dependencies.md`, first table.
#
# **Where things are** comes from the cluster's environment, so that no password is in a notebook:
#
# | variable | for example |
# |---|---|
# | `MAINSTEM_CATALOG` | `postgresql://etl:${LAKE_PASSWORD}@db.example.org/lake?schema=lake&sslmode=require` |
# | `LAKE_PASSWORD` | `{{secrets/lake/password}}`: the cluster fills it in from its secret scope |
# | `LAKE_FOLDER` | `/Volumes/main/lake/tables`, or a URI of a bucket |

# %%
import os

from pyspark.sql import functions as F

from mainstem import open_catalog

lake = os.environ.get("LAKE_FOLDER", "/Volumes/main/lake/tables")
catalog = open_catalog(spark=spark)
catalog.migrate()
print(f"a session of {type(spark).__module__}, a catalog on {catalog.engine.title}")

# %% [markdown]
# The password is in no text that the library shows: messages, logs, plans and `repr` have `***` in its place. Every setting
# knows where it came from:

# %%
{setting.name: setting.source for setting in catalog.settings.explain() if setting.source != "default"}

# %% [markdown]
# ## A table that is there already
#
# Any Delta table by its path. It goes on being written by whoever writes it; the catalog follows.

# %%
sensors = f"{lake}/sensors"
spark.range(0, 2000, 1, 2).selectExpr(
    "id", "id % 4 AS sensor", "date_add(DATE'2026-11-01', cast(id / 500 AS int)) AS day", "rand(1) * 40 AS celsius"
).write.format("delta").partitionBy("day").save(sensors)

done = catalog.import_table(sensors, name="iot.sensors")
print(f"version {done.version}, {done.files} live files")

# %%
readings = catalog.table("iot.sensors")
spark.sql(f"DELETE FROM delta.`{sensors}` WHERE id < 10")
print(f"{readings.follow().versions} version came in")
readings.read(where="day = DATE'2026-11-02'").groupBy("sensor").agg(F.round(F.avg("celsius"), 1).alias("mean")).show()

# %% [markdown]
# ## Files as a DataFrame
#
# `files()` is a DataFrame like any other. With `engine="spans"` the executors read the catalog over JDBC, in slices; the
# cluster needs the JDBC driver for that, which `spark-defaults.conf` names.

# %%
snapshot = readings.snapshot()
snapshot.files(where="day = '2026-11-02'", engine="spans").select("partition_values", "num_records", "version").show(
    truncate=False
)

# %% [markdown]
# ## Lead, and commit two tables at once
#
# From the cut-over on the catalog decides. Both tables change together, or neither does, and the job that did it is in the
# history of both.

# %%
readings.cutover()
catalog.create_table("iot.daily", location=f"{lake}/daily", schema="day DATE, sensor BIGINT, mean DOUBLE")

late = spark.range(2000, 2100).selectExpr("id", "id % 4 AS sensor", "DATE'2026-11-05' AS day", "21.5D AS celsius")
with catalog.transaction(committer="databricks", info={"job_name": "late readings"}) as tx:
    tx.table("iot.sensors").append(late)
    tx.sql(
        "INSERT INTO {daily} SELECT day, sensor, avg(celsius) FROM {sensors} GROUP BY day, sensor",
        daily="iot.daily",
        sensors="iot.sensors",
    )
    tx.require_stats("iot.sensors", rows=(1, None), null_rate={"celsius": 0.0}, ranges={"celsius": (-60, 60)})
{name: committed.version for name, committed in tx.committed.items()}

# %%
catalog.table("iot.daily").read(where="day = DATE'2026-11-05'").orderBy("sensor").show()

# %% [markdown]
# ## Views for SQL
#
# `views()` gives every table of the catalog as a temporary view, all of one moment, for cells in `%sql`.

# %%
catalog.views(prefix="lake_")
spark.sql("SELECT count(*) AS readings, min(day) AS first, max(day) AS last FROM lake_iot_sensors").show()

# %% [markdown]
# ## And everybody else
#
# The published log is an ordinary one: Unity Catalog, Databricks SQL and every other reader see what was committed.

# %%
published = spark.read.format("delta").load(sensors)
assert published.count() == readings.read().count() == 2090
assert readings.validate().success
catalog.close()
