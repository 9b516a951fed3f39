"""Migrations on real databases: up, down, drift, two at once, half-applied."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from mainstem import Catalog, MainstemError, SchemaDrift, UsageError, migrations, open_catalog, sqltext
from mainstem.engines import EngineError

ENGINES = ("postgres", "sqlite", "duckdb")
LATEST = len([file for file in sqltext.root().joinpath("sqlite").iterdir() if ".down." not in file.name])
NEXT = f"{LATEST + 1:04d}"


@pytest.fixture
def empty(catalog_uri: str) -> Iterator[Catalog]:
    with open_catalog(catalog_uri) as catalog:
        yield catalog


@pytest.fixture
def own_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's SQL that a test may change."""

    def copy(source: Traversable, target: Path) -> None:
        target.mkdir()
        for entry in source.iterdir():
            if entry.is_dir():
                copy(entry, target / entry.name)
            else:
                (target / entry.name).write_text(entry.read_text())

    folder = tmp_path / "sql"
    copy(sqltext.root(), folder)
    monkeypatch.setattr(sqltext, "root", lambda: folder)
    monkeypatch.setattr(migrations, "_shipped", migrations._shipped.__wrapped__)  # read anew after every change
    return folder


def tables(catalog: Catalog) -> set[str]:
    with catalog.engine.reading() as connection:
        return catalog.engine.tables(connection)


def add_table(catalog: Catalog) -> None:
    with catalog.store.writing() as queries:
        queries.connection.execute(
            "INSERT INTO dl_tables (table_id, name, location, authority, created_at, protocol_min_reader, "
            f"protocol_min_writer) VALUES ('{uuid4()}', 't', 'l', 'log', '2026-11-18T00:00:00Z', 1, 2)"
        )


def test_a_new_catalog_gets_every_table_and_says_which_steps_it_took(empty: Catalog) -> None:
    done = empty.migrate()
    assert (done.before, done.after) == (0, len(done.applied))
    assert tables(empty) == {
        "dl_migrations",
        "dl_tables",
        "dl_table_heads",
        "dl_table_versions",
        "dl_add_files",
        "dl_remove_files",
        "dl_metadata_updates",
        "dl_protocol_updates",
        "dl_txn_actions",
        "dl_domain_metadata",
        "dl_cdc_files",
        "dl_other_actions",
        "dl_mirror_status",
        "dl_leases",
        "dl_tags",
        "dl_tag_members",
        "dl_validation_runs",
        "dl_snapshot_images",
    }
    assert empty.tables() == []


def test_a_second_migration_changes_nothing(catalog: Catalog) -> None:
    done = catalog.migrate()
    assert (done.applied, done.reverted) == ((), ())


def test_the_three_engines_have_the_same_steps_tables_and_columns(
    postgres_uri: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    schema = f"same_{uuid4().hex[:8]}"
    uris = [f"{postgres_uri}?schema={schema}", f"sqlite:///{tmp_path}/a.db", f"duckdb:///{tmp_path}/a.duckdb"]
    shapes = []
    for uri in uris:
        with open_catalog(uri) as catalog:
            done = catalog.migrate()
            with catalog.engine.reading() as connection:
                views = {"vw_latest_action_per_path", "vw_active_files"}
                columns = {
                    table: [column[0] for column in connection.execute(f"SELECT * FROM {table}").description]
                    for table in catalog.engine.tables(connection) | views
                }
            shapes.append((done.applied, columns))
            catalog.migrate(to=0)
    assert shapes[0] == shapes[1] == shapes[2]


def test_down_to_nothing_leaves_no_table_and_up_again_works(catalog: Catalog) -> None:
    done = catalog.migrate(to=0)
    assert done.after == 0
    assert tables(catalog) == set()
    with pytest.raises(EngineError), catalog.engine.reading() as connection:
        connection.execute("SELECT * FROM vw_active_files")
    catalog.migrate()
    assert "dl_add_files" in tables(catalog)


def test_going_down_is_refused_with_a_count_of_what_would_be_lost(catalog: Catalog) -> None:
    add_table(catalog)
    with pytest.raises(UsageError, match="1 rows of dl_tables") as caught:
        catalog.migrate(to=0)
    assert caught.value.details["lost"] == {"dl_tables": 1}
    assert len(tables(catalog)) == 18
    catalog.migrate(to=0, allow_data_loss=True)
    assert tables(catalog) == set()


def test_a_step_down_that_loses_nothing_needs_no_permission(catalog: Catalog) -> None:
    add_table(catalog)
    done = catalog.migrate(to=LATEST - 1)
    assert done.reverted == ("0009_partitions",)
    assert catalog.migrate().applied == ("0009_partitions",)


@pytest.mark.parametrize("target", [-1, 99])
def test_a_migration_that_does_not_exist_is_a_usage_error(catalog: Catalog, target: int) -> None:
    with pytest.raises(UsageError, match="no migration"):
        catalog.migrate(to=target)


def test_an_empty_catalog_says_how_to_begin(empty: Catalog) -> None:
    with pytest.raises(SchemaDrift, match="mainstem migrate"):
        empty.tables()


def test_a_changed_file_is_drift_and_names_the_step(catalog: Catalog, own_sql: Path) -> None:
    file = own_sql / catalog.engine.name / "0003_actions.sql"
    file.write_text(file.read_text() + "\n-- an afterthought\n")
    with pytest.raises(SchemaDrift, match="0003_actions"):
        catalog.migrate()
    with pytest.raises(SchemaDrift, match="0003_actions"):
        open_catalog(catalog.settings.catalog).tables()


def test_a_newer_catalog_is_refused_in_words(catalog: Catalog, own_sql: Path) -> None:
    for name in (f"{NEXT}_more.sql", f"{NEXT}_more.down.sql"):
        (own_sql / catalog.engine.name / name).write_text("SELECT 1;")
    catalog.migrate()
    for name in (f"{NEXT}_more.sql", f"{NEXT}_more.down.sql"):
        (own_sql / catalog.engine.name / name).unlink()
    with pytest.raises(SchemaDrift, match="Upgrade mainstem"):
        catalog.migrate()


def test_a_step_that_fails_half_way_leaves_nothing_of_itself(catalog: Catalog, own_sql: Path) -> None:
    before = tables(catalog)
    (own_sql / catalog.engine.name / f"{NEXT}_half.sql").write_text(
        "CREATE TABLE dl_half (x integer);\nINSERT INTO dl_half VALUES (1);\nCREATE TABLE dl_half (x integer);\n"
    )
    (own_sql / catalog.engine.name / f"{NEXT}_half.down.sql").write_text("DROP TABLE dl_half;")
    with pytest.raises(MainstemError, match=f"{NEXT}_half failed"):
        catalog.migrate()
    assert tables(catalog) == before
    assert migrations.current(catalog.engine) == LATEST


def test_a_gap_in_the_numbers_is_refused(empty: Catalog, own_sql: Path) -> None:
    (own_sql / empty.engine.name / "0003_actions.sql").unlink()
    with pytest.raises(SchemaDrift, match="gap"):
        empty.migrate()


def _migrate(uri: str, gate: object, results: object) -> None:
    gate.wait()  # type: ignore[attr-defined]
    with open_catalog(uri) as catalog:
        results.put(len(catalog.migrate().applied))  # type: ignore[attr-defined]


def test_processes_that_migrate_at_once_each_end_well_and_each_step_runs_once(empty: Catalog) -> None:
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(3), context.Queue()
    workers = [context.Process(target=_migrate, args=(empty.settings.catalog, gate, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    taken = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert sum(taken) == len(migrations.known(empty.engine))
    migrations.require_current(empty.engine)


@pytest.mark.parametrize("schema", ["lake", "my lake", 'a"; drop schema public;--', "Größe"])
def test_postgres_keeps_a_catalog_in_its_schema(postgres_uri: str, schema: str) -> None:
    from urllib.parse import quote

    with open_catalog(f"{postgres_uri}?schema={quote(schema)}") as catalog:
        catalog.migrate()
        with psycopg.connect(postgres_uri) as connection:
            found = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'dl_leases'").fetchall()
        assert (schema,) in found
        catalog.migrate(to=0)
        with catalog.engine.writing() as connection:
            connection.execute(psycopg.sql.SQL("DROP SCHEMA {}").format(psycopg.sql.Identifier(schema)))


def test_roles_let_writers_write_and_readers_read_and_no_more(postgres_uri: str) -> None:
    schema = f"roles_{uuid4().hex[:8]}"
    script = sqltext.root().joinpath("postgres", "roles.sql").read_text()
    may = {
        "mainstem_writer": ["INSERT INTO dl_tags VALUES ('a', now(), NULL, NULL)", "DELETE FROM dl_tags"],
        "mainstem_reader": ["SELECT * FROM dl_tables", "SELECT * FROM vw_active_files", "DELETE FROM dl_leases"],
        "mainstem_owner": ["CREATE TABLE dl_more (x integer)", "DROP TABLE dl_more"],
    }
    may_not = {
        "mainstem_writer": ["CREATE TABLE x (y integer)", "DROP TABLE dl_tags", "DELETE FROM dl_migrations"],
        "mainstem_reader": ["DELETE FROM dl_tables", "UPDATE dl_table_heads SET current_version = 0"],
    }
    with open_catalog(f"{postgres_uri}?schema={schema}") as catalog:
        catalog.migrate()
        with catalog.engine.reading() as connection:
            for _ in range(2):  # running it again changes nothing
                connection.execute(script)
            for role, statements in may.items():
                connection.execute(f"SET ROLE {role}")
                for statement in statements:
                    connection.execute(statement)
            for role, statements in may_not.items():
                connection.execute(f"SET ROLE {role}")
                for statement in statements:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(statement)
            connection.execute("RESET ROLE")
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
