"""A connection lost at COMMIT: whether it took effect is looked up, not guessed, and it happens once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from proxy import Lost, Proxy
from tables import SCHEMA, add, create, paths

from mainstem import Catalog, CommitUnknown, open_catalog
from mainstem.committing import Committed
from mainstem.creation import first_actions
from mainstem.errors import EngineBusy
from mainstem.tablestate import new_table


@pytest.fixture
def proxy(postgres_uri: str) -> Iterator[Proxy]:
    parts = urlsplit(postgres_uri)
    proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 5432)
    yield proxy
    proxy.close()


@pytest.fixture
def address(postgres_uri: str, proxy: Proxy) -> Iterator[str]:
    """A new catalog, reached through the proxy."""
    parts = urlsplit(postgres_uri)
    user = f"{parts.username}:{parts.password}@" if parts.password else ""
    schema = f"test_{uuid4().hex[:12]}"
    through = urlunsplit((parts.scheme, f"{user}127.0.0.1:{proxy.port}", parts.path, f"schema={schema}", ""))
    yield through
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.fixture
def catalog(address: str) -> Iterator[Catalog]:
    with open_catalog(address) as opened:
        opened.migrate()
        yield opened


@pytest.mark.parametrize("lost", ["question", "answer"])
def test_a_commit_whose_connection_broke_is_looked_up_and_happens_once(
    catalog: Catalog, proxy: Proxy, tmp_path: Path, lost: Lost
) -> None:
    table = create(catalog, tmp_path)
    proxy.lose(lost)
    done = table.commit([add("a")], operation="WRITE")
    assert proxy.hung_up == 1
    assert (done.version, done.attempts, done.repeated) == (1, 2, lost == "answer")
    assert done.published
    assert table.commit([add("b")], operation="WRITE").version == 2
    assert paths(table) == {"a", "b"}
    assert len(table.history()) == 3


@pytest.mark.parametrize("earlier", [0, 8], ids=["as text", "prepared"])
@pytest.mark.parametrize("lost", ["question", "answer"])
def test_a_transaction_over_two_tables_whose_connection_broke_happens_once_in_both(
    catalog: Catalog, address: str, proxy: Proxy, tmp_path: Path, lost: Lost, earlier: int
) -> None:
    """The driver prepares what it is given often: from then on COMMIT travels under another name."""
    tables = [create(catalog, tmp_path, name=name) for name in ("sales.orders", "sales.items")]
    with open_catalog(address) as fresh:

        def commit(file: str) -> dict[str, Committed]:
            with fresh.transaction() as changes:
                for table in tables:
                    changes.table(table.name).stage([add(file)], operation="WRITE")
            return changes.committed

        for number in range(earlier):
            commit(f"e{number}")
        proxy.lose(lost)
        done = commit("a")
        assert (proxy.hung_up, proxy.prepared) == (1, earlier > 0)
        after = commit("b")
    assert {(each.version, each.attempts, each.repeated) for each in done.values()} == {
        (earlier + 1, 2, lost == "answer")
    }
    assert all(each.published for each in done.values())
    assert {each.version for each in after.values()} == {earlier + 2}
    histories = [table.history() for table in tables]
    assert [len(history) for history in histories] == [earlier + 3] * 2
    groups = [[entry.group_id for entry in history[:2]] for history in histories]
    assert groups[0] == groups[1]
    assert None not in groups[0]
    for table in tables:
        assert paths(table) == {"a", "b", *(f"e{number}" for number in range(earlier))}


def test_a_connection_that_is_never_found_again_leaves_the_outcome_open_and_the_token_decides(
    catalog: Catalog, address: str, proxy: Proxy, tmp_path: Path
) -> None:
    table = create(catalog, tmp_path)
    with open_catalog(address, reconnect_attempts=1) as hasty:
        impatient = hasty.table(table.name)
        proxy.lose("answer")
        with pytest.raises(CommitUnknown, match="same txn_id"):
            impatient.commit([add("a")], operation="WRITE", txn_id="job-7")
    again = table.commit([add("a")], operation="WRITE", txn_id="job-7")
    assert (again.version, again.repeated) == (1, True)
    assert paths(table) == {"a"}


def test_a_database_that_is_gone_for_good_after_commit_was_sent_leaves_the_outcome_open(
    catalog: Catalog, address: str, postgres_uri: str, proxy: Proxy, tmp_path: Path
) -> None:
    """That it could not be looked up is no reason to say that nothing was written."""
    table = create(catalog, tmp_path)
    proxy.lose("answer", for_good=True)
    with (
        open_catalog(address, reconnect_attempts=2, reconnect_max_wait=0.01, connect_timeout=2) as impatient,
        pytest.raises(CommitUnknown) as caught,
    ):
        impatient.table(table.name).commit([add("a")], operation="WRITE", txn_id="job-7")
    assert "Nothing was written" not in str(caught.value)
    assert "'job-7', and it commits once" in str(caught.value)
    assert caught.value.as_dict()["txn_id"] == "job-7"
    schema = urlsplit(address).query
    with open_catalog(f"{postgres_uri}?{schema}") as direct:
        again = direct.table(table.name).commit([add("a")], operation="WRITE", txn_id="job-7")
    assert (again.version, again.repeated, again.published) == (1, True, True)


@pytest.mark.parametrize("lost", ["question", "answer"])
def test_a_table_whose_making_lost_its_connection_is_made_once_and_published(
    catalog: Catalog, proxy: Proxy, tmp_path: Path, lost: Lost
) -> None:
    proxy.lose(lost)
    table = create(catalog, tmp_path)
    assert proxy.hung_up == 1
    assert (table.version, table.info().published_version, len(table.history())) == (0, 0, 1)
    proxy.lose(lost)
    with catalog.transaction() as tx:
        state = new_table(catalog.store, "items", str(tmp_path / "items"))
        first = first_actions(SCHEMA, partition_by=["day"], properties={}, now_ms=1)
        tx.create(state).stage(first, operation="CREATE TABLE")
        tx.table("items").stage([add("a")], operation="WRITE")
        tx.table(table.name).stage([add("a")], operation="WRITE")
    assert proxy.hung_up == 2
    assert {name: (done.version, done.published) for name, done in tx.committed.items()} == {
        "items": (1, True),
        table.name: (1, True),
    }
    assert {done.repeated for done in tx.committed.values()} == {lost == "answer"}
    assert paths(catalog.table("items")) == paths(table) == {"a"}


def test_a_session_that_the_server_ends_before_commit_leaves_nothing(
    catalog: Catalog, postgres_uri: str, tmp_path: Path
) -> None:
    """Before COMMIT was sent there is no doubt: nothing was written, and the caller may do it again."""
    table = create(catalog, tmp_path)
    with pytest.raises(EngineBusy, match="Nothing was written"), catalog.store.writing() as queries:
        pid = queries.connection.execute("SELECT pg_backend_pid()").fetchone()[0]
        with psycopg.connect(postgres_uri, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [pid])
        queries.rows("tables_all")
    assert table.commit([add("a")], operation="WRITE").version == 1
