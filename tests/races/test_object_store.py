"""Tables in an object store: the same promises as on a disk, kept by conditional put."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest
from deltalake import DeltaTable
from s3server import S3, s3_server
from tables import SCHEMA, add, paths, remove

from mainstem import Catalog, ForeignCommit, Table, UsageError, open_catalog
from mainstem.deltalog.writing import LogWriter
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


def put(store: S3, name: str, data: bytes, **headers: str) -> tuple[int, bytes]:
    """The status and body of a plain request: what the server itself says, without a library between."""
    connection = HTTPConnection("127.0.0.1", store.server_address[1])
    connection.request("PUT", f"/lake/{name}", data, {key.replace("_", "-"): value for key, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_the_store_of_these_tests_keeps_the_rules_of_conditional_put(store: S3) -> None:
    """As S3 documents `If-None-Match: *`: 200 where nothing is; where something is, 412 PreconditionFailed, no change.

    Without the header an object is replaced: the store would let a careless publisher overwrite.
    """
    assert put(store, "x", b"first", If_None_Match="*")[0] == 200
    status, body = put(store, "x", b"second", If_None_Match="*")
    assert (status, b"<Code>PreconditionFailed</Code>" in body) == (412, True)
    assert store.objects["lake/x"].data == b"first"
    assert put(store, "x", b"third")[0] == 200
    assert store.objects["lake/x"].data == b"third"
    del store.objects["lake/x"]
    assert put(store, "x", b"fourth", If_None_Match="*")[0] == 200


def test_of_many_who_put_one_name_at_once_one_wins_and_its_bytes_stay(store: S3) -> None:
    gate, names = threading.Barrier(8), [f"n{number}" for number in range(25)]
    won: dict[str, list[int]] = {name: [] for name in names}

    def race(worker: int) -> None:
        writer = LogWriter.open(LOCATION)
        gate.wait()
        for name in names:
            if writer.create(name, b"%d" % worker):
                won[name].append(worker)

    racers = [threading.Thread(target=race, args=(worker,)) for worker in range(8)]
    for each in racers:
        each.start()
    for each in racers:
        each.join()
    assert all(len(winners) == 1 for winners in won.values())
    assert {name: store.objects[f"{LOG}/{name}"].data for name in names} == {
        name: b"%d" % worker for name, [worker] in won.items()
    }
    assert store.conditional == {"won": 25, "lost": 7 * 25}


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
