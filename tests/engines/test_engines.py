"""What every engine promises, on real databases."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import uuid4

import pytest

from mainstem import Catalog, EngineBusy, MainstemError, UsageError, open_catalog
from mainstem.engines import EngineError, Outcome
from mainstem.store import Queries, as_utc

TABLE = {
    "name": "sales.orders",
    "location": "file:/lake/orders",
    "authority": "log",
    "protocol_min_reader": 1,
    "protocol_min_writer": 2,
}
INSERT = (
    "INSERT INTO dl_tables (table_id, name, location, authority, created_at, protocol_min_reader, protocol_min_writer) "
    "VALUES (:table_id, :name, :location, :authority, :created_at, :protocol_min_reader, :protocol_min_writer)"
)
NOW = datetime(2026, 11, 18, 12, 30, 15, 123456, tzinfo=UTC)


def insert(queries: Queries, **values: object) -> str:
    row = {**TABLE, "table_id": str(uuid4()), "created_at": NOW, **values}
    queries.engine.execute(queries.connection, INSERT, row)
    return str(row["table_id"])


def names(catalog: Catalog) -> list[str]:
    with catalog.engine.reading() as connection:
        return [row[0] for row in connection.execute("SELECT name FROM dl_tables ORDER BY name").fetchall()]


def value(catalog: Catalog, sql: str, **values: object) -> object:
    with catalog.engine.reading() as connection:
        return catalog.engine.execute(connection, sql, values).fetchone()[0]


@pytest.mark.parametrize(
    "text",
    ["", "it's", 'a"; drop table dl_tables;--', "' OR 1=1 --", "50% :name $1 ?", "\n\t\\", "naïve 🦆", "x" * 5000],
)
def test_text_comes_back_as_it_was(catalog: Catalog, text: str) -> None:
    with catalog.store.writing() as queries:
        insert(queries, location=text)
    assert value(catalog, "SELECT location FROM dl_tables WHERE location = :text", text=text) == text


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
def test_a_moment_comes_back_in_utc_to_the_microsecond(catalog: Catalog, zone: timezone) -> None:
    with catalog.store.writing() as queries:
        insert(queries, created_at=NOW.astimezone(zone))
    assert as_utc(value(catalog, "SELECT created_at FROM dl_tables")) == NOW  # type: ignore[arg-type]


def test_moments_compare_as_time_does(catalog: Catalog) -> None:
    with catalog.store.writing() as queries:
        for second in (9, 10, 59):
            insert(queries, name=f"t{second}", created_at=NOW.replace(second=second))
    found = value(catalog, "SELECT count(*) FROM dl_tables WHERE created_at <= :moment", moment=NOW.replace(second=10))
    assert found == 2


def test_a_block_that_raises_leaves_nothing(catalog: Catalog) -> None:
    with pytest.raises(RuntimeError, match="no"), catalog.store.writing() as queries:
        insert(queries)
        raise RuntimeError("no")
    assert names(catalog) == []


def test_the_second_of_one_key_loses_and_leaves_nothing(catalog: Catalog) -> None:
    with catalog.store.writing() as queries:
        insert(queries)
    with pytest.raises(EngineError) as caught, catalog.store.writing() as queries:
        insert(queries, name="sales.items")
        insert(queries)
    assert caught.value.outcome is Outcome.LOST
    assert names(catalog) == ["sales.orders"]


def test_a_row_without_its_table_is_refused(catalog: Catalog) -> None:
    with pytest.raises(EngineError), catalog.store.writing() as queries:
        queries.connection.execute(
            "INSERT INTO dl_table_heads (table_id, current_version, published_version, min_readable_version) "
            f"VALUES ('{uuid4()}', 0, -1, 0)"
        )


def test_a_wrong_statement_is_fatal_and_not_repeated(catalog: Catalog) -> None:
    with pytest.raises(EngineError) as caught, catalog.engine.reading() as connection:
        connection.execute("SELECT nonsense FROM nowhere")
    assert caught.value.outcome is Outcome.FATAL
    assert not caught.value.retryable


def test_a_bug_of_the_caller_is_not_taken_for_the_databases(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.engine.reading():
        raise ZeroDivisionError


def test_many_rows_are_copied_with_every_type(catalog: Catalog) -> None:
    with catalog.store.writing() as queries:
        table_id = insert(queries)
        columns = ("table_id", "version", "size_bytes", "modification_time", "seq", "path_bucket", "data_change")
        columns += ("file_key", "path", "partition_values", "stats")
        rows = (
            (table_id, 0, 2**62, -5, n, n % 256, n % 2 == 0, bytes([n % 256]) * 16, f"p={n}/\t\\N'\"", "{}", None)
            for n in range(60_000)
        )
        assert queries.copy("dl_add_files", columns, rows) == 60_000
    sql = "SELECT path, file_key, data_change, stats, size_bytes FROM dl_add_files WHERE table_id = :id AND seq = :seq"
    with catalog.engine.reading() as connection:
        found = catalog.engine.execute(connection, sql, {"id": table_id, "seq": 59_999}).fetchone()
    assert (found[0], bytes(found[1]), bool(found[2]), found[3], found[4]) == (
        "p=59999/\t\\N'\"",
        bytes([59_999 % 256]) * 16,
        False,
        None,
        2**62,
    )


def test_a_change_says_how_many_rows_it_touched(catalog: Catalog) -> None:
    with catalog.store.writing() as queries:
        insert(queries)
        insert(queries, name="sales.items")
        cursor = catalog.engine.execute(
            queries.connection,
            "UPDATE dl_tables SET authority = :to WHERE name = :name",
            {"to": "catalog", "name": "x"},
        )
        assert catalog.engine.affected(cursor) == 0
        cursor = catalog.engine.execute(queries.connection, "UPDATE dl_tables SET authority = :to", {"to": "catalog"})
        assert catalog.engine.affected(cursor) == 2


def test_a_table_with_rows_can_be_changed_and_moved_on(catalog: Catalog) -> None:
    """DuckDB turns some updates into delete and insert, which a foreign key refuses: ours must not be among them."""
    with catalog.store.writing() as queries:
        table_id = insert(queries)
        queries.change(
            "head_insert", table_id=table_id, current_version=0, published_version=-1, min_readable_version=0
        )
    for version in range(1, 4):
        with catalog.store.writing() as queries:
            queries.connection.execute(f"UPDATE dl_table_heads SET current_version = {version}")
            queries.connection.execute(
                f"UPDATE dl_tables SET properties = '{{\"v\": {version}}}', authority = 'catalog'"
            )
    assert catalog.tables()[0].version == 3


def test_the_clock_is_the_databases_and_moves_within_a_transaction(catalog: Catalog) -> None:
    with catalog.store.writing() as queries:
        first, second = queries.now(), queries.now()
    assert first.tzinfo is not None
    assert first < second
    assert abs(datetime.now(UTC) - first) < timedelta(minutes=5)


def test_threads_that_write_wait_for_each_other_and_lose_nothing(catalog: Catalog) -> None:
    gate = threading.Barrier(4)
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            gate.wait()
            for n in range(5):
                with catalog.store.writing() as queries:
                    insert(queries, name=f"w{worker}.t{n}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(names(catalog)) == 20


def test_a_reader_sees_only_what_is_committed(catalog: Catalog) -> None:
    written, seen = threading.Event(), threading.Event()

    def work() -> None:
        with catalog.store.writing() as queries:
            insert(queries)
            written.set()
            seen.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    assert written.wait(30)
    before = names(catalog)
    seen.set()
    thread.join()
    assert (before, names(catalog)) == ([], ["sales.orders"])


def test_a_closed_catalog_opens_again(catalog: Catalog) -> None:
    assert catalog.tables() == []
    catalog.close()
    assert catalog.tables() == []


def test_the_password_of_a_catalog_is_in_no_text_of_it(catalog: Catalog) -> None:
    password = catalog.uri.password.reveal() if catalog.uri.password else "no-password"
    shown = f"{catalog!r} {catalog.uri!r} {catalog.uri} {catalog.engine.jdbc()!r} {catalog.settings!r} {vars(catalog)}"
    assert password not in shown
    with pytest.raises(EngineError) as caught, catalog.engine.reading() as connection:
        connection.execute("SELECT nonsense")
    assert password not in f"{caught.value} {caught.value!r} {caught.value.as_dict()}"


def test_a_connection_that_the_server_ended_is_replaced(postgres_uri: str) -> None:
    with open_catalog(postgres_uri) as catalog:
        with catalog.engine.reading() as connection:
            first = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
        with open_catalog(postgres_uri) as other, other.engine.reading() as connection:
            connection.execute(f"SELECT pg_terminate_backend({first}, 10000)")
        with catalog.engine.reading() as connection:
            assert connection.execute("SELECT pg_backend_pid()").fetchone()[0] != first


def test_a_connection_lost_in_the_middle_is_unknown(postgres_uri: str) -> None:
    with open_catalog(postgres_uri) as catalog, open_catalog(postgres_uri) as other:
        with pytest.raises(EngineError) as caught, catalog.engine.writing() as connection:
            pid = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
            with other.engine.reading() as killer:
                killer.execute(f"SELECT pg_terminate_backend({pid}, 10000)")
            connection.execute("SELECT 1")
        assert caught.value.outcome is Outcome.UNKNOWN
        with catalog.engine.reading() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_wrong_password_is_said_at_once_and_not_shown(postgres_uri: str) -> None:
    with open_catalog(postgres_uri) as good:
        address = f"postgresql://{good.uri.user}:s3ntinel@{good.uri.host}:{good.uri.port}/postgres"
    with open_catalog(address, reconnect_attempts=50) as catalog, pytest.raises(EngineError) as caught:
        catalog.tables()
    assert caught.value.outcome is Outcome.FATAL
    assert "s3ntinel" not in f"{caught.value} {caught.value.__cause__}"


def test_a_server_that_does_not_answer_is_tried_as_often_as_the_settings_say() -> None:
    with (
        open_catalog("postgresql://u@127.0.0.1:1/db", reconnect_attempts=2, reconnect_max_wait=0.01) as catalog,
        pytest.raises(EngineBusy, match="2 times"),
    ):
        catalog.tables()


def test_more_readers_than_connections_wait_and_then_hear_why(postgres_uri: str) -> None:
    with (
        open_catalog(postgres_uri, pool_size=1, busy_timeout=0.1) as catalog,
        catalog.engine.reading(),
        pytest.raises(EngineBusy, match="pool_size"),
        catalog.engine.reading(),
    ):
        pass


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_file_in_a_folder_that_is_not_there_is_a_usage_error(engine: str, tmp_path: object) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        open_catalog(f"{engine}:///{tmp_path}/no/such/folder/lake.db").tables()


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_file_that_is_something_else_is_refused_and_left_alone(engine: str, tmp_path: object) -> None:
    path = f"{tmp_path}/letter.txt"
    with open(path, "w") as file:
        file.write("Dear friend, this is no database at all. " * 50)
    with pytest.raises(MainstemError):
        open_catalog(f"{engine}:///{path}").migrate()
    with open(path) as file:
        assert file.read().startswith("Dear friend")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_catalog_that_could_not_be_created_for_want_of_room_can_be_created_later(engine: str, tmp_path: Path) -> None:
    """The process may make files and write no byte into them, as on a full disk."""
    uri = f"{engine}:///{tmp_path}/lake.db"
    code = f"from mainstem import open_catalog; open_catalog({uri!r}, busy_timeout=1).migrate()"
    full = [sys.executable, "-c", f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); {code}"]
    failed = subprocess.run(full, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "lake.db" in failed.stderr.splitlines()[-1]
    with open_catalog(uri) as catalog:
        assert catalog.migrate().applied
        assert catalog.tables() == []


def test_a_file_that_spark_reads_is_let_go_as_soon_as_a_write_is_done(tmp_path: Path) -> None:
    """A frame is read at any later moment, and DuckDB shuts the JVM out while this process may write."""
    path = tmp_path / "lake.duckdb"
    with open_catalog(f"duckdb:///{path}") as catalog:
        catalog.migrate()
        catalog.engine.jdbc()
        for _ in range(3):
            catalog.migrate()
            with catalog.engine.writing() as connection:
                connection.execute("SELECT 1")
            assert not [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink() and _target(link) == path]


def _target(link: Path) -> Path | None:
    try:
        return link.readlink()
    except FileNotFoundError:
        return None  # the handle that lists this very folder
