"""Who waits for a version asks one question at a time."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from catalogs import ask
from tables import add, create
from telemetry import Telemetry

from mainstem import Catalog, TableNotFound, UsageError, open_catalog
from mainstem.watch import Watch


def test_a_version_is_reached_when_it_is_ratified_and_again_when_it_is_published(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    with open_catalog(catalog_uri, publish_on_commit=False) as unpublished:
        table = create(unpublished, tmp_path)
        with (
            Watch("sales.orders", version=1, catalog=catalog_uri) as ratified,
            Watch("sales.orders", version=1, state="published", catalog=catalog_uri) as published,
        ):
            assert (ratified.reached(), published.reached()) == (None, None)
            for name in ("a", "b"):
                table.commit([add(name)], operation="WRITE")
            assert (ratified.reached(), published.reached()) == (2, None)
            table.publish()
            assert (ratified.reached(), published.reached()) == (2, 2)


def test_a_question_is_one_query(catalog: Catalog, catalog_uri: str, tmp_path: Path, telemetry: Telemetry) -> None:
    create(catalog, tmp_path)
    catalog.close()
    with Watch("sales.orders", version=7, catalog=catalog_uri) as watch:
        for asked in (1, 2):
            telemetry.spans.clear()
            assert watch.reached() is None
            assert telemetry.names() == {"sql.table_by_name": 1}, asked


def test_a_table_that_is_not_there_and_a_state_that_is_none_are_told(catalog: Catalog, catalog_uri: str) -> None:
    catalog.close()
    with Watch("nobody", version=1, catalog=catalog_uri) as watch, pytest.raises(TableNotFound, match="nobody"):
        watch.reached()
    with pytest.raises(UsageError, match="'dreamt'"):
        Watch("nobody", version=1, state="dreamt", catalog=catalog_uri)  # type: ignore[arg-type]


def test_what_the_settings_say_is_in_every_commit_and_the_callers_own_wins(
    catalog: Catalog, catalog_uri: str, tmp_path: Path
) -> None:
    catalog.close()
    standing = '{"airflow": {"dag_id": "nightly", "run_id": "r 1"}, "team": "sales"}'
    with open_catalog(catalog_uri, commit_info=standing) as named:
        table = create(named, tmp_path)
        table.commit([add("a")], operation="WRITE", info={"team": "mine"})
        found = [orjson.loads(row[0]) for row in ask(named, "SELECT commit_info FROM vw_operations ORDER BY version")]
    assert [info["airflow"] for info in found] == [{"dag_id": "nightly", "run_id": "r 1"}] * 2
    assert [info["team"] for info in found] == ["sales", "mine"]
    published = (tmp_path / "sales.orders" / "_delta_log" / f"{1:020d}.json").read_text().splitlines()[0]
    assert orjson.loads(published)["commitInfo"]["airflow"]["dag_id"] == "nightly"


def test_what_the_settings_say_may_not_be_deltas_own(catalog: Catalog, catalog_uri: str, tmp_path: Path) -> None:
    catalog.close()
    with open_catalog(catalog_uri, commit_info='{"timestamp": 1}') as named:
        with pytest.raises(UsageError, match="'timestamp'"):
            create(named, tmp_path)
        assert named.tables() == []
