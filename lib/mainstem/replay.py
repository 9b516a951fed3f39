"""Which files are live, computed from the log's rows by Spark. Pure: DataFrames in, a DataFrame out, no session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def actions(adds: DataFrame, removes: DataFrame) -> DataFrame:
    """Adds and removes as one frame, with `is_add`. Both have the file's key, `version` and `seq`."""
    from pyspark.sql import functions as F  # noqa: N812  as every user of Spark calls it

    return adds.withColumn("is_add", F.lit(True)).unionByName(removes.withColumn("is_add", F.lit(False)))


def newest_first() -> Sequence[Column]:
    """How the actions of one file are ranked: the newest wins, and within one version the last."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.desc("version"), F.desc("seq"), F.desc("is_add")


def live_places(
    actions: DataFrame, *, file: str = "file_key", ranking: Callable[[], Sequence[Column]] = newest_first
) -> DataFrame:
    """The `place` of every add that is the latest action of its file.

    All actions of a file must be there; a frame of one partition is not shuffled. Tests give another `file` or
    `ranking`, to prove that any other choice would be found out.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    of_one_file = Window.partitionBy(file).orderBy(*ranking())
    ranked = actions.withColumn("rank", F.row_number().over(of_one_file))
    return ranked.where((F.col("rank") == 1) & F.col("is_add")).select(_place())


def ends(actions: DataFrame, *, file: str = "file_key") -> DataFrame:
    """Every add with `ends_at`, the version of the next action on its file: where its span has to end.

    All actions of a file must be there; a frame of one partition is not shuffled.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    oldest_first = Window.partitionBy(file).orderBy("version", "seq", "is_add")
    return actions.withColumn("ends_at", F.lead("version").over(oldest_first)).where("is_add")


def files_at(places: DataFrame, adds: DataFrame) -> DataFrame:
    """Those rows of `adds`, with all their columns, that stand at one of the places."""
    # Places are narrow and few beside the rows: hashing them spares the rows, with their statistics, a sort.
    return adds.withColumn("place", _place()).join(places.hint("shuffle_hash"), "place", "left_semi").drop("place")


def _place() -> Column:
    """Where an add stands in the log, as one number: a join on it takes half the time of one on two columns.

    No two places share it up to version 2**31; beyond, Spark's arithmetic overflows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    return (F.col("version") * F.lit(2**32) + F.col("seq")).alias("place")
