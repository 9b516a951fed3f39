"""Tables in an object store: the same promises as on a disk, kept by conditional put."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from deltalake import DeltaTable
from s3server import S3, s3_server
from tables import SCHEMA, add, paths, remove

from mainstem import Catalog, ForeignCommit, Table, UsageError, open_catalog
from mainstem.recorded import recorded

LOCATION = "s3://lake/sales/orders"
LOG = "lake/sales/orders/_delta_log"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    with s3_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def table(catalog: Catalog, store: S3) -> Table:
    return catalog.create_table("sales.orders", location=LOCATION, schema=SCHEMA, partition_by=["day"])


def commits(store: S3) -> dict[str, bytes]:
    found = {name.rpartition("/")[2]: each.data for name, each in sorted(store.objects.items())}
    return {name: data for name, data in found.items() if name.endswith(".json") and name[:20].isdigit()}


def require_equal(catalog: Catalog, table: Table, store: S3) -> None:
    """The log has what the catalog has, byte for byte."""
    info = table.info()
    with catalog.store.reading() as queries:
        known = recorded(queries, info.table_id, first=0, last=info.version)
    assert commits(store) == {f"{each.version:020d}.json": each.commit_file(table=table.name) for each in known}
    assert info.published_version == info.version


def test_a_table_lives_in_an_object_store(catalog: Catalog, table: Table, store: S3) -> None:
    assert table.location == LOCATION
    table.commit([add("a"), add("b")], operation="WRITE")
    assert table.commit([remove("a"), add("c")], operation="DELETE").published
    require_equal(catalog, table, store)
    assert paths(table) == {"b", "c"}
    theirs = DeltaTable(LOCATION)
    assert theirs.version() == 2
    assert {uri.rpartition("/")[2] for uri in theirs.file_uris()} == {"b.parquet", "c.parquet"}
    with pytest.raises(UsageError, match="_delta_log already"):
        catalog.create_table("again", location=LOCATION, schema=SCHEMA)


def test_a_checkpoint_goes_into_the_object_store_and_delta_rs_reads_it(
    catalog: Catalog, table: Table, store: S3
) -> None:
    for number in range(11):
        table.commit([add(f"f{number}")], operation="WRITE")
    assert f"{LOG}/{10:020d}.checkpoint.parquet" in store.objects
    for version in range(10):
        del store.objects[f"{LOG}/{version:020d}.json"]
    theirs = DeltaTable(LOCATION)
    assert theirs.version() == 11
    assert len(theirs.file_uris()) == 11


def test_of_several_publishers_one_writes_each_file(
    catalog: Catalog, catalog_uri: str, table: Table, store: S3
) -> None:
    with open_catalog(catalog_uri, publish_on_commit=False) as quiet:
        for number in range(12):
            quiet.table(table.name).commit([add(f"f{number}")], operation="WRITE")
    store.conditional.update(won=0, lost=0)
    gate = threading.Barrier(4)
    written: list[int] = []

    def publish() -> None:
        gate.wait()
        written.append(table.publish().written)

    publishers = [threading.Thread(target=publish) for _ in range(4)]
    for each in publishers:
        each.start()
    for each in publishers:
        each.join()
    assert (len(written), sum(written)) == (4, 12)
    assert store.conditional["won"] == 12
    require_equal(catalog, table, store)
    assert table.publish().written == 0


def test_a_foreign_commit_is_seen_and_never_overwritten(catalog: Catalog, table: Table, store: S3) -> None:
    foreign = b'{"commitInfo":{"operation":"WRITE","engineInfo":"another engine"}}\n'
    name = f"{LOG}/{1:020d}.json"
    store.objects[name] = store.objects[f"{LOG}/{0:020d}.json"]._replace(data=foreign)
    done = table.commit([add("a")], operation="WRITE")
    assert not done.published
    assert "mainstem resolve sales.orders" in str(done.publish_error)
    assert store.objects[name].data == foreign
    with pytest.raises(ForeignCommit):
        table.commit([add("b")], operation="WRITE")
    assert store.objects[name].data == foreign


def test_a_store_that_does_not_answer_leaves_the_commit_to_be_published_later(
    catalog: Catalog, catalog_uri: str, table: Table, store: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = store.RequestHandlerClass.do_PUT

    def refuse(handler: object) -> None:
        handler._body()
        handler._refuse(403, "AccessDenied")

    with monkeypatch.context() as broken:
        broken.setattr(store.RequestHandlerClass, "do_PUT", refuse)
        with open_catalog(catalog_uri, publish_attempts=1) as hasty:
            done = hasty.table(table.name).commit([add("a")], operation="WRITE")
    assert not done.published
    assert done.publish_error
    assert store.RequestHandlerClass.do_PUT is taken
    assert table.publish().written == 1
    require_equal(catalog, table, store)


def test_a_log_is_rebuilt_in_the_object_store(catalog: Catalog, table: Table, store: S3) -> None:
    for number in range(11):
        table.commit([add(f"f{number}")], operation="WRITE")
    before = commits(store)
    with pytest.raises(UsageError, match="is not empty"):
        catalog.rebuild_log("sales.orders")
    for name in [name for name in store.objects if name.startswith(LOG)]:
        del store.objects[name]
    done = catalog.rebuild_log("sales.orders")
    assert (done.version, done.exact, done.checkpoints) == (11, 12, (10,))
    assert commits(store) == before
    assert len(DeltaTable(LOCATION).file_uris()) == 11
    assert catalog.rebuild_log("sales.orders", to="s3://lake/copy").files == 11
    assert DeltaTable("s3://lake/copy").version() == 11
    with pytest.raises(UsageError, match="is not empty"):
        catalog.rebuild_log("sales.orders", to="s3://lake/copy")
