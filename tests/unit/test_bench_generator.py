"""The benchmark's logs: the same every time, legal Delta, and the same in a catalog as by an import."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest
from deltalake import DeltaTable

from mainstem import Catalog, open_catalog
from mainstem.bench.catalogwriter import write_catalog
from mainstem.bench.generator import Generator
from mainstem.bench.logwriter import write_log
from mainstem.bench.recipe import Recipe
from mainstem.errors import UsageError
from mainstem.rows import SHAPES, VERSION_COLUMNS

RECIPE = Recipe(adds=700, removes=300, commits=64)


def digest(recipe: Recipe, folder: Path) -> str:
    found = hashlib.sha256()
    for file in sorted((write_log(recipe, folder) / "_delta_log").iterdir()):
        found.update(file.name.encode() + file.read_bytes() + str(file.stat().st_mtime_ns).encode())
    return found.hexdigest()


def test_the_same_recipe_gives_the_same_bytes(tmp_path: Path) -> None:
    first = digest(RECIPE, tmp_path / "first")
    assert digest(RECIPE, tmp_path / "again") == first
    assert digest(Recipe(adds=700, removes=300, commits=64, seed=2), tmp_path / "other") != first


def test_the_bytes_of_a_commit_are_those_that_were_measured() -> None:
    commits = b"".join(commit for chunk in Generator(RECIPE).chunks() for commit in chunk.commits())
    assert hashlib.sha256(commits).hexdigest() == "277b520d83d740bfdeeb966e250b068f7c0a3b4beb3bf414443b8bec9882d6f3"


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        Recipe(adds=100, removes=0, commits=2),
        Recipe(adds=99, removes=60, commits=100),
        Recipe(adds=20_000, removes=18_500, commits=2000, days=30),
    ],
)
def test_a_log_holds_what_its_recipe_says(recipe: Recipe) -> None:
    live: set[str] = set()
    adds = removes = versions = 0
    for chunk in Generator(recipe).chunks():
        for commit in chunk.commits():
            versions += 1
            actions = [orjson.loads(line) for line in commit.splitlines()]
            gone = [action["remove"]["path"] for action in actions if "remove" in action]
            came = [action["add"]["path"] for action in actions if "add" in action]
            assert live.issuperset(gone), "a file is removed that is not there"
            assert live.isdisjoint(came), "a file is added twice"
            live = live.difference(gone).union(came)
            adds, removes = adds + len(came), removes + len(gone)
    assert (adds, removes, versions) == (recipe.adds, recipe.removes, recipe.commits)
    expected = Generator(recipe).paths(recipe.live_at(recipe.last)).tolist()
    assert {path.encode() for path in live} == set(expected)
    assert len(expected) == recipe.live


def test_statistics_are_json_of_about_500_bytes() -> None:
    stats = Generator(RECIPE).stats(np.arange(700))
    assert all(450 <= len(text) <= 550 for text in stats.tolist())
    read = orjson.loads(bytes(stats[3]))
    assert read["minValues"]["id"] <= read["maxValues"]["id"]
    assert read["minValues"]["customer"] < read["maxValues"]["customer"]
    assert len(read["minValues"]["customer"]) == 32  # where Delta cuts a string


def test_delta_rs_opens_the_log_with_the_files_it_should_have(tmp_path: Path) -> None:
    table = DeltaTable(write_log(RECIPE, tmp_path / "table"))
    expected = Generator(RECIPE).paths(RECIPE.live_at(RECIPE.last)).tolist()
    assert table.version() == 63
    assert {action.encode() for action in table.get_add_actions()["path"].to_pylist()} == set(expected)


def test_delta_rs_agrees_with_the_commits_alone(tmp_path: Path) -> None:
    folder = write_log(RECIPE, tmp_path / "table")
    with_checkpoint = set(DeltaTable(folder).get_add_actions()["path"].to_pylist())
    for file in (folder / "_delta_log").glob("*checkpoint*"):
        file.unlink()
    assert set(DeltaTable(folder).get_add_actions()["path"].to_pylist()) == with_checkpoint


def test_a_log_may_begin_at_its_checkpoint(tmp_path: Path) -> None:
    table = DeltaTable(write_log(RECIPE, tmp_path / "table", since=RECIPE.checkpoint))
    assert len(table.get_add_actions()["path"]) == RECIPE.live


def rows(catalog: Catalog) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    shapes = [(shape.table, shape.all_columns) for shape in SHAPES] + [("dl_table_versions", VERSION_COLUMNS)]
    with catalog.store.reading() as queries:
        for table, columns in shapes:
            own = ", ".join(column for column in columns if column != "table_id")
            found = queries.connection.execute(f"SELECT {own} FROM {table} ORDER BY {own}").fetchall()
            yield table, found


def test_rows_put_into_a_catalog_are_those_of_an_import(tmp_path: Path) -> None:
    folder = write_log(RECIPE, tmp_path / "table")
    with open_catalog(f"sqlite:///{tmp_path}/direct.db") as direct, open_catalog(f"sqlite:///{tmp_path}/i.db") as other:
        direct.migrate()
        other.migrate()
        write_catalog(RECIPE, direct.store, name="t", location=str(folder))
        other.import_table(str(folder), name="t")
        assert dict(rows(direct)) == dict(rows(other))
        told = [(t.name, t.location, t.version, t.min_readable_version) for c in (direct, other) for t in c.tables()]
        assert told[0] == told[1]


@pytest.mark.parametrize(("adds", "removes", "commits"), [(5, 0, 100), (10, 11, 5), (10, -1, 5), (10, 0, 1)])
def test_what_no_log_can_hold_is_refused(adds: int, removes: int, commits: int) -> None:
    with pytest.raises(UsageError):
        Recipe(adds=adds, removes=removes, commits=commits)
