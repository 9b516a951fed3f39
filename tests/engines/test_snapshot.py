"""A snapshot is the table exactly as it was at one version, or an error that says why not."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from catalogs import change, paths, replayed, state
from logs import SCHEMA, Log, add, domain, info, metadata, protocol, remove, stats, txn, vector
from pyspark.sql.types import LongType, StringType, StructField, StructType
from telemetry import Telemetry

from mainstem import Catalog, open_catalog, snapshot
from mainstem.columns import FILE_COLUMN_NAMES, FILE_COLUMNS, arrow_schema
from mainstem.errors import CorruptCatalog, CorruptLog, UnsupportedFeature, UsageError, VersionNotFound
from mainstem.resolve import resolve
from mainstem.snapshot import Snapshot
from mainstem.table import Table

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def commit(log: Log, minute: int, *actions: dict[str, Any]) -> None:
    """A version whose file is of that minute."""
    log.commit(*actions, at_ms=int(at(minute).timestamp() * 1000))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Five versions, ten minutes apart."""
    log = Log(tmp_path / "t")
    partitioned = metadata(partitionColumns=["part"])
    first = [add(f"a{n}", partitionValues={"part": "x"}, stats=stats(n, minValues={"id": n})) for n in range(4)]
    commit(log, 0, info(), protocol("deletionVectors"), partitioned, *first)
    commit(
        log, 10, add("b", partitionValues={"part": "y"}, deletionVector=vector("one")), txn("app", 1), domain("d", "1")
    )
    commit(log, 20, remove("a0"), txn("app", 2), txn("other", 9), domain("d", "2"))
    changed = metadata(partitionColumns=["part"], configuration={"k": "v"}, name="orders", description="all of them")
    commit(log, 30, changed, domain("d", removed=True))
    commit(log, 40, add("c", partitionValues={"part": None}), remove("a1"))
    return log


@pytest.fixture
def table(catalog: Catalog, log: Log) -> Table:
    catalog.import_table(log.location, name="t")
    return catalog.table("t")


FILES = [
    {"a0", "a1", "a2", "a3"},
    {"a0", "a1", "a2", "a3", "b"},
    {"a1", "a2", "a3", "b"},
    {"a1", "a2", "a3", "b"},
    {"a2", "a3", "b", "c"},
]


def expire(catalog: Catalog, name: str, floor: int) -> None:
    """Make versions below `floor` unreadable and delete what only they needed, in one transaction."""
    table_id = catalog.table(name).info().table_id
    of_table = "table_id = :table_id"
    change(
        catalog,
        f"UPDATE dl_table_heads SET min_readable_version = :floor WHERE {of_table}",
        f"DELETE FROM dl_add_files WHERE {of_table} AND removed_version <= :floor",
        f"DELETE FROM dl_remove_files WHERE {of_table} AND version <= :floor",
        f"DELETE FROM dl_txn_actions WHERE {of_table} AND superseded_version <= :floor",
        f"DELETE FROM dl_domain_metadata WHERE {of_table} AND superseded_version <= :floor",
        f"DELETE FROM dl_metadata_updates WHERE {of_table} AND version < "
        f"(SELECT max(version) FROM dl_metadata_updates WHERE {of_table} AND version <= :floor)",
        f"DELETE FROM dl_protocol_updates WHERE {of_table} AND version < "
        f"(SELECT max(version) FROM dl_protocol_updates WHERE {of_table} AND version <= :floor)",
        f"DELETE FROM dl_table_versions WHERE {of_table} AND version < :floor",
        table_id=table_id,
        floor=floor,
    )


def test_every_version_is_there_and_the_head_is_the_default(table: Table) -> None:
    assert [paths(table.snapshot(version=version)) for version in range(5)] == FILES
    head = table.snapshot()
    assert (head.version, head.timestamp, head.is_head) == (4, at(40), True)
    assert table.snapshot(version=np.int64(3)).version == 3


@pytest.mark.parametrize("version", [-1, 5, 2**63 - 1, 2**63, 10**30])
def test_a_version_that_is_not_there_names_the_range(table: Table, version: int) -> None:
    with pytest.raises(VersionNotFound, match=f"no version {version}") as caught:
        table.snapshot(version=version)
    assert "versions 0 to 4, committed from 2026-01-01T00:00:00+00:00 to 2026-01-01T00:40:00+00:00" in str(caught.value)
    assert (caught.value.details["first_version"], caught.value.details["last_version"]) == (0, 4)


@pytest.mark.parametrize("version", ["1", 1.0])
def test_a_version_that_is_no_number_is_a_usage_error(table: Table, version: Any) -> None:
    with pytest.raises(UsageError, match="whole number"):
        table.snapshot(version=version)


@pytest.mark.parametrize(
    ("moment", "version"),
    [
        (at(0), 0),
        (at(5), 0),
        (at(10), 1),
        (at(10) - timedelta(microseconds=1), 0),
        (at(10) + timedelta(microseconds=1), 1),
        (at(40), 4),
        (at(10**6), 4),
        (at(20).astimezone(timezone(timedelta(hours=-11))), 2),
        (at(20).replace(tzinfo=None), 2),
        (at(20).isoformat(), 2),
        ("2026-01-01T00:20:00", 2),
        ("2026-01-01 01:20:00+01:00", 2),
        ("2026-01-02", 4),
        (datetime.max, 4),
    ],
)
def test_a_moment_finds_the_newest_version_up_to_it(table: Table, moment: datetime | str, version: int) -> None:
    assert table.snapshot(timestamp=moment).version == version


@pytest.mark.parametrize(
    "moment",
    [at(0) - timedelta(microseconds=1), "2025-12-31", datetime(999, 1, 1), datetime.min, "0001-01-01T00:00:00+00:00"],
)
def test_a_moment_before_the_first_version_names_the_range(table: Table, moment: datetime | str) -> None:
    with pytest.raises(VersionNotFound, match="versions 0 to 4, committed from 2026-01-01T00:00:00"):
        table.snapshot(timestamp=moment)


@pytest.mark.parametrize(
    "moment", ["", "yesterday", "2026-13-01", 5, "0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00"]
)
def test_what_is_no_moment_is_a_usage_error(table: Table, moment: Any) -> None:
    with pytest.raises(UsageError, match="timestamp"):
        table.snapshot(timestamp=moment)


def tag(catalog: Catalog, name: str, **versions: int) -> None:
    change(catalog, "INSERT INTO dl_tags (name, created_at) VALUES (:tag, :now)", tag=name, now=START)
    for table, version in versions.items():
        table_id = catalog.table(table).info().table_id
        sql = "INSERT INTO dl_tag_members (tag, table_id, version) VALUES (:tag, :table_id, :version)"
        change(catalog, sql, tag=name, table_id=table_id, version=version)


@pytest.mark.parametrize("name", ["eod-2026-11-17", "' OR 1=1 --", "\U0001f600"])
def test_a_tag_names_a_version(catalog: Catalog, table: Table, name: str) -> None:
    tag(catalog, name, t=2)
    tag(catalog, "another", t=3)
    assert table.snapshot(tag=name).version == 2


def test_a_tag_that_names_no_version_of_the_table_is_not_found(catalog: Catalog, table: Table, log: Log) -> None:
    catalog.import_table(log.location, name="u")
    tag(catalog, "of-u", u=1)
    tag(catalog, "expired", t=1)
    expire(catalog, "t", 2)
    for name in ("of-u", "nothing", "expired", "a\0b", "\ud800"):
        with pytest.raises(VersionNotFound):
            table.snapshot(tag=name)
    assert catalog.table("u").snapshot(tag="of-u").version == 1


def test_version_timestamp_and_tag_exclude_each_other(table: Table) -> None:
    given = {"version": 0, "timestamp": at(0), "tag": "x"}
    for left_out in given:
        with pytest.raises(UsageError, match="exclude each other"):
            table.snapshot(**{key: value for key, value in given.items() if key != left_out})  # type: ignore[arg-type]


def test_a_snapshot_describes_the_table_as_it_was(table: Table) -> None:
    described = StructType([StructField("id", LongType()), StructField("part", StringType())])
    before, after = table.snapshot(version=2), table.snapshot(version=3)
    assert before.schema == after.schema == described
    assert json.loads(after.schema_json) == SCHEMA
    assert after.columns() == [("id", "long", True), ("part", "string", True)]
    assert after.partition_columns == ["part"]
    assert (before.properties, after.properties) == ({}, {"k": "v"})
    assert (before.metadata.name, after.metadata.name, after.metadata.description) == (None, "orders", "all of them")
    assert (before.protocol.min_reader_version, before.protocol.reader_features) == (3, '["deletionVectors"]')
    transactions = [dict(table.snapshot(version=version).app_transactions) for version in range(4)]
    assert transactions == [{}, {"app": 1}, {"app": 2, "other": 9}, {"app": 2, "other": 9}]
    assert [dict(table.snapshot(version=version).domains) for version in range(4)] == [{}, {"d": "1"}, {"d": "2"}, {}]


@pytest.mark.parametrize(
    "schema", [None, "", "{", "[]", "null", '{"type":"struct"}', '{"type":"struct","fields":[{"name":"x"}]}']
)
def test_a_schema_that_is_none_is_told_and_hides_no_file(catalog: Catalog, tmp_path: Path, schema: str | None) -> None:
    log = Log.begin(tmp_path / "odd", add("a"), table=metadata(schemaString=schema))
    catalog.import_table(log.location, name="odd")
    odd = catalog.table("odd").snapshot()
    for ask in (lambda: odd.schema, odd.columns, lambda: odd.schema_json, lambda: odd.to_arrow(where="id = 1")):
        with pytest.raises(CorruptLog, match="no schema at version 0"):
            ask()
    assert paths(odd) == {"a"}


def test_a_type_that_spark_does_not_know_is_named(catalog: Catalog, tmp_path: Path) -> None:
    fields = [{"name": "x", "type": "quaternion", "nullable": False, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    log = Log.begin(tmp_path / "odd", add("a"), table=metadata(schemaString=schema))
    catalog.import_table(log.location, name="odd")
    odd = catalog.table("odd").snapshot()
    with pytest.raises(UnsupportedFeature, match="quaternion"):
        odd.schema  # noqa: B018
    assert odd.columns() == [("x", "quaternion", False)]
    assert odd.to_arrow(where="x = 1").num_rows == 1


def test_arrow_has_exactly_the_columns_that_are_asked_for(table: Table) -> None:
    opened = table.snapshot()
    assert opened.to_arrow().schema == arrow_schema(FILE_COLUMNS)
    assert opened.to_arrow(columns=["size_bytes", "path"]).column_names == ["size_bytes", "path"]
    chosen = opened.to_arrow(where="part = 'y'", columns=["dv_id", "version"])
    assert chosen.to_pylist() == [{"dv_id": "uone00000000000000000@1", "version": 1}]
    assert opened.to_arrow(columns=[]).num_columns == 0
    with pytest.raises(UsageError, match="no column 'nothing'"):
        opened.to_arrow(columns=["path", "nothing"])


ODD_PARTITIONS = {
    "x": "x",
    "quote": 'it\'s "x"',
    "null": None,
    "empty": "",
    "long": "l" * 200,
    "longer": "m" * 300,
}


def test_files_of_a_partition_are_found_however_odd_its_values_are(catalog: Catalog, tmp_path: Path) -> None:
    files = [add(name, partitionValues={"part": value}) for name, value in ODD_PARTITIONS.items()]
    more = [add(f"{name}{n}", partitionValues={"part": "abc"[n % 3]}) for n in range(9) for name in ("p", "q")]
    log = Log.begin(tmp_path / "odd", *files, *more, table=metadata(partitionColumns=["part"]))
    log.commit(remove("x"))
    catalog.import_table(log.location, name="odd")
    opened, before = catalog.table("odd").snapshot(), catalog.table("odd").snapshot(version=0)
    for name in ("quote", "long", "longer"):
        literal = ODD_PARTITIONS[name].replace("'", "\\'")
        for found in (
            opened.to_arrow(where=f"part = '{literal}'").to_pylist(),
            [*opened.iter_files(where=f"part = '{literal}'")],
        ):
            assert [row["path"] for row in found] == [name]
    assert {"null", "empty"} <= {row["path"] for row in opened.to_arrow(where="part IS NULL").to_pylist()}
    for version, where, sure in ((opened, "x", set()), (before, "x", {"x"}), (opened, "nowhere", set())):
        kept = {row["path"] for row in version.to_arrow(where=f"part = '{where}'").to_pylist()}
        assert kept == sure
    assert opened.to_arrow(where="part IN ('a', 'b')").num_rows == 12
    texts = opened.partition_texts
    if catalog.engine.file_sql.partition_prefix is None:
        assert texts is None
    else:
        assert texts == sorted(texts)
        assert len(texts) == len(ODD_PARTITIONS) + 3
        assert max(map(len, texts)) == 256


def test_more_partitions_than_are_looked_at_are_found_by_their_files(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_MOST_PARTITIONS", 3)
    files = [add(f"f{n}", partitionValues={"part": str(n)}) for n in range(5)]
    catalog.import_table(
        Log.begin(tmp_path / "t", *files, table=metadata(partitionColumns=["part"])).location, name="t"
    )
    opened = catalog.table("t").snapshot()
    assert opened.partition_texts is None
    assert [row["path"] for row in opened.to_arrow(where="part = '4'").to_pylist()] == ["f4"]


def test_a_table_without_files_has_an_empty_list_of_them(catalog: Catalog, tmp_path: Path) -> None:
    catalog.import_table(Log.begin(tmp_path / "empty").location, name="empty")
    opened = catalog.table("empty").snapshot()
    assert (opened.to_arrow().num_rows, opened.to_arrow().schema) == (0, arrow_schema(FILE_COLUMNS))
    assert opened.to_arrow(where="id = 1").num_rows == 0
    assert list(opened.iter_files()) == []
    assert (opened.size().files, opened.size().size_bytes, opened.size().records) == (0, 0, 0)


@pytest.mark.parametrize("where", [None, "id >= 2", "part = 'x'", "part IS NULL", "part = 'nothing'"])
def test_pages_of_any_size_are_the_same_files(table: Table, where: str | None) -> None:
    for version in (0, 2, 4):
        opened = table.snapshot(version=version)
        whole = sorted(opened.to_arrow(where=where).to_pylist(), key=lambda row: row["path"])
        for page_size in (1, 2, 3, len(whole) or 1, 100):
            found = list(opened.iter_files(page_size=page_size, where=where))
            assert all(tuple(row) == FILE_COLUMN_NAMES for row in found)
            assert sorted(found, key=lambda row: row["path"]) == whole, page_size


def test_pages_of_one_version_with_many_files_are_each_file_once(catalog: Catalog, tmp_path: Path) -> None:
    catalog.import_table(Log.begin(tmp_path / "many", *(add(f"f{n}") for n in range(50))).location, name="many")
    opened = catalog.table("many").snapshot()
    for page_size in (1, 7, 49, 50, 51):
        assert sorted(row["path"] for row in opened.iter_files(page_size=page_size)) == sorted(paths(opened))


@pytest.mark.parametrize("page_size", [0, -1])
def test_a_page_of_nothing_is_a_usage_error(table: Table, page_size: int) -> None:
    with pytest.raises(UsageError, match="page_size"):
        list(table.snapshot().iter_files(page_size=page_size))


def test_a_snapshot_stays_as_it_was_while_the_table_moves_on(table: Table, log: Log) -> None:
    fetched, lazy, iterated = table.snapshot(), table.snapshot(), table.snapshot()
    fetched.to_arrow()
    pages = iterated.iter_files(page_size=1)
    first = next(pages)
    commit(log, 50, remove("a2"), remove("c"), add("d"))
    table.follow()
    assert paths(fetched) == paths(lazy) == FILES[4]
    assert {first["path"], *(row["path"] for row in pages)} == FILES[4]
    assert lazy.to_arrow(where="part = 'x'", columns=["path"]).num_rows == 2
    assert lazy.size().files == 4
    assert paths(table.snapshot()) == {"a3", "b", "d"}


def test_refresh_moves_forward_by_what_came_since_and_nothing_else(
    catalog: Catalog, table: Table, log: Log, telemetry: Telemetry
) -> None:
    before = table.snapshot()
    before.to_arrow()
    commit(log, 50, remove("a2"), add("d"), txn("app", 3))
    # A file that is added again with other statistics, and one that comes and goes in between.
    commit(log, 60, add("d", stats=stats(7)), add("e"))
    commit(log, 70, remove("e"), remove("b", deletionVector=vector("one")), add("b", deletionVector=vector("two")))
    table.follow()
    scanned = telemetry.counted("rows_scanned", "query")
    telemetry.spans.clear()
    after = before.refresh()
    assert (after.version, before.version, dict(after.app_transactions)["app"]) == (7, 4, 3)
    assert state(after) == state(table.snapshot()) == replayed(catalog, "t", 7)
    assert paths(before) == FILES[4]
    now = telemetry.counted("rows_scanned", "query")
    assert now["files_since"] - scanned["files_since"] == 2  # d and b
    assert now["files_ended"] - scanned["files_ended"] == 2  # a2 and b
    names = telemetry.names()
    assert names["sql.files_at_head"] == 1, "only the snapshot that it is compared with reads all files"


def test_refresh_of_what_is_the_head_reads_no_file(table: Table, telemetry: Telemetry) -> None:
    opened = table.snapshot()
    opened.to_arrow()
    telemetry.spans.clear()
    again = opened.refresh()
    assert state(again) == state(opened)
    assert not [name for name in telemetry.names() if name.startswith("sql.files")]


def test_refresh_of_a_snapshot_without_files_fetches_none(table: Table, log: Log, telemetry: Telemetry) -> None:
    opened = table.snapshot(version=1)
    telemetry.spans.clear()
    head = opened.refresh()
    assert head.version == 4
    assert not [name for name in telemetry.names() if name.startswith("sql.files")]
    assert paths(head) == FILES[4]


def test_refresh_of_an_expired_snapshot_reads_anew(catalog: Catalog, table: Table) -> None:
    """What ended between the two has been deleted: moving forward would keep files that are gone."""
    old = table.snapshot(version=1)
    old.to_arrow()
    expire(catalog, "t", 4)
    assert paths(old.refresh()) == FILES[4]


def test_refresh_of_a_table_that_was_replaced_reads_anew(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    old = table.snapshot()
    old.to_arrow()
    other = Log(tmp_path / "other")
    commit(other, 0, info(), protocol(), metadata(), add("x"))
    for number in range(5):
        commit(other, 10 * number, add(f"y{number}"))
    catalog.import_table(other.location, name="t", force=True)
    assert paths(old.refresh()) == {"x", "y0", "y1", "y2", "y3", "y4"}
    catalog.import_table(other.location, name="t", force=True, up_to_version=0)
    assert paths(old.refresh()) == {"x"}


def test_a_version_that_expires_or_is_replaced_is_told_by_every_read(catalog: Catalog, table: Table, log: Log) -> None:
    def opened() -> list[Snapshot]:
        return [table.snapshot(version=1) for _ in range(5)]

    def read(snapshots: list[Snapshot], why: str, pages: Iterator[dict[str, Any]]) -> None:
        whole, chosen, counted, paged, _ = snapshots
        for ask in (
            whole.to_arrow,
            lambda: chosen.to_arrow(where="part = 'x'"),
            counted.size,
            lambda: list(paged.iter_files()),
            lambda: list(pages),
        ):
            with pytest.raises(VersionNotFound, match=f"version 1 of t was {why} while it was read"):
                ask()

    snapshots = opened()
    pages = snapshots[-1].iter_files(page_size=1)
    next(pages)
    expire(catalog, "t", 2)
    read(snapshots, "expired", pages)
    with pytest.raises(VersionNotFound, match="versions 2 to 4"):
        table.snapshot(version=1)
    catalog.import_table(log.location, name="t", force=True)
    snapshots = opened()
    pages = snapshots[-1].iter_files(page_size=1)
    next(pages)
    log.path(1).write_bytes(log.path(1).read_bytes() + b'{"txn":{"appId":"x","version":1}}\n')
    catalog.import_table(log.location, name="t", force=True)
    read(snapshots, "replaced", pages)


@pytest.mark.parametrize("catalog_uri", ["postgres", "sqlite"], indirect=True)
def test_an_opening_that_races_with_expiry_is_told(
    catalog: Catalog, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB lets no writer in between two statements of one reader."""

    def raced(*given: Any, **wanted: Any) -> Any:
        found = resolve(*given, **wanted)
        expire(catalog, "t", 4)
        return found

    monkeypatch.setattr(snapshot, "resolve", raced)
    with pytest.raises(VersionNotFound, match="expired while it was read"):
        table.snapshot(version=1)


def test_a_catalog_without_the_metadata_of_a_version_is_corrupt(catalog: Catalog, table: Table) -> None:
    change(catalog, "DELETE FROM dl_metadata_updates")
    with pytest.raises(CorruptCatalog, match="no metadata at version 2"):
        table.snapshot(version=2)


def test_opening_is_measured_and_every_query_has_a_span(table: Table, telemetry: Telemetry) -> None:
    def openings() -> int:
        found = telemetry.points("metadata_open_latency_ms")
        return sum(point.count for point in found if point.attributes["table"] == "t")

    opened, scanned = openings(), telemetry.counted("rows_scanned", "query")
    snapshot = table.snapshot()
    assert openings() == opened + 1
    now = telemetry.counted("rows_scanned", "query")
    assert now["opened_at_head"] - scanned["opened_at_head"] == 3  # the table, a domain, an application
    assert telemetry.names() == {"sql.opened_at_head": 1, "snapshot.open": 1}
    [span] = [span for span in telemetry.spans if span.name == "snapshot.open"]
    assert (span.attributes or {})["table"] == "t"

    telemetry.spans.clear()
    snapshot.to_arrow()
    list(snapshot.iter_files(page_size=3))
    snapshot.size()
    later = telemetry.counted("rows_scanned", "query")
    assert (later["files_at_head"] - now["files_at_head"], later["files_page"] - now["files_page"]) == (4, 4)
    names = telemetry.names()
    assert (names["sql.files_at_head"], names["sql.files_page"], names["sql.files_size"]) == (1, 2, 1)

    with pytest.raises(VersionNotFound):
        table.snapshot(version=99)
    failed = [span for span in telemetry.spans if span.name == "snapshot.open"][-1]
    assert (failed.attributes or {})["error.type"] == "version_not_found"


def test_readers_during_commits_and_expiry_see_exact_versions_or_an_error(catalog: Catalog, tmp_path: Path) -> None:
    """Each version replaces all files of the one before it and says its number everywhere: any mixture shows."""
    last, width = 16, 5

    def actions(version: int) -> list[dict[str, Any]]:
        added = [add(f"{version}-{place}", size=version) for place in range(width)]
        removed = [remove(f"{version - 1}-{place}") for place in range(width)] if version else []
        said = [txn("app", version), domain("d", str(version)), metadata(configuration={"version": str(version)})]
        return [*removed, *added, *said]

    log = Log(tmp_path / "loop")
    log.commit(info(), protocol(), *actions(0))
    catalog.import_table(log.location, name="loop")
    done, begun = threading.Event(), threading.Barrier(3)

    def require_exact(opened: Snapshot, rows: list[dict[str, Any]]) -> None:
        version = opened.version
        assert sorted(row["path"] for row in rows) == [f"{version}-{place}" for place in range(width)]
        assert {row["size_bytes"] for row in rows} == {version}
        assert (opened.properties["version"], dict(opened.domains)["d"]) == (str(version), str(version))
        assert dict(opened.app_transactions) == {"app": version}

    def read(seed: int) -> tuple[int, int]:
        chance, exact, gone = random.Random(seed), 0, 0
        with open_catalog(catalog.settings.catalog) as mine:
            table = mine.table("loop")
            kept = table.snapshot()
            kept.to_arrow()
            begun.wait(30)
            while not done.is_set() or exact == 0:
                try:
                    wanted = None if chance.random() < 0.5 else max(0, table.version - chance.randrange(4))
                    opened = table.snapshot(version=wanted)
                    require_exact(opened, opened.to_arrow().to_pylist())
                    require_exact(opened, list(opened.iter_files(page_size=2)))
                    assert opened.size().files == width
                    kept = kept.refresh()
                    require_exact(kept, kept.to_arrow().to_pylist())
                    exact += 1
                except VersionNotFound:
                    gone += 1
        return exact, gone

    def write() -> None:
        begun.wait(30)
        try:
            for version in range(1, last + 1):
                log.commit(*actions(version))
                catalog.table("loop").follow()
                if version % 3 == 0:
                    expire(catalog, "loop", version - 1)
        finally:
            done.set()

    with ThreadPoolExecutor(3) as threads:
        readers = [threads.submit(read, seed) for seed in range(2)]
        writer = threads.submit(write)
        writer.result(120)
        assert all(reader.result(60)[0] > 0 for reader in readers)
    assert catalog.table("loop").version == last
