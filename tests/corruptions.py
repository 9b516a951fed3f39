"""A good table, and the ways to corrupt it, each with how it has to be told: for every form of validation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from mainstem import Catalog, Table

Corrupt = Callable[["Case"], None]


class Case:
    """A table of four versions that the catalog leads, with its data on disk, and ways to break it."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog, self.root = catalog, folder / "orders"
        for start in (0, 10):
            rows = pa.table({"id": list(range(start, start + 10))})
            write_deltalake(self.root, rows, mode="append")
        DeltaTable(self.root).delete("id = 3")
        catalog.import_table(str(self.root), name="orders")
        self.table: Table = catalog.table("orders")
        self.table.cutover()
        self.files = sorted(self.table.snapshot().to_arrow().column("path").to_pylist())
        self.table_id = self.table.info().table_id

    def files_of(self, version: int) -> list[str]:
        """The live files that a version added."""
        rows = self.table.snapshot().to_arrow(columns=["path", "version"]).to_pylist()
        return [row["path"] for row in rows if row["version"] == version]

    def sql(self, statement: str) -> None:
        with self.catalog.engine.writing() as connection:
            connection.execute(statement.replace("$ID", f"'{self.table_id}'"))

    def commit(self, version: int) -> Path:
        return self.root / "_delta_log" / f"{version:020d}.json"

    def edit(self, version: int, old: str, new: str) -> None:
        text = self.commit(version).read_text()
        assert old in text
        self.commit(version).write_text(text.replace(old, new, 1))


def flip_a_byte(case: Case) -> None:
    data = bytearray(case.commit(1).read_bytes())
    data[10] ^= 0xFF
    case.commit(1).write_bytes(bytes(data))


def drop_a_commit(case: Case) -> None:
    case.commit(1).unlink()


def drop_the_first_commit(case: Case) -> None:
    case.commit(0).unlink()


def change_a_size_in_the_log(case: Case) -> None:
    [line] = [line for line in case.commit(1).read_text().splitlines() if '"add"' in line]
    size = json.loads(line)["add"]["size"]
    case.edit(1, f'"size":{size}', f'"size":{size + 1}')


def change_a_size_in_the_catalog(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET size_bytes = size_bytes + 1 WHERE table_id = $ID AND version = 1")


def delete_an_add(case: Case) -> None:
    case.sql("DELETE FROM dl_add_files WHERE table_id = $ID AND version = 1")


def delete_a_remove(case: Case) -> None:
    case.sql("DELETE FROM dl_remove_files WHERE table_id = $ID AND version = 2")


def open_a_span(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET removed_version = NULL WHERE table_id = $ID AND version = 0")


def close_a_span(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET removed_version = 2 WHERE table_id = $ID AND version = 1")


def move_the_head_back(case: Case) -> None:
    case.sql("UPDATE dl_table_heads SET current_version = 2, published_version = 2 WHERE table_id = $ID")


def drop_a_version(case: Case) -> None:
    case.sql("DELETE FROM dl_table_versions WHERE table_id = $ID AND version = 1")


def turn_time_back(case: Case) -> None:
    case.sql("UPDATE dl_table_versions SET committed_at = '2001-01-01 00:00:00' WHERE table_id = $ID AND version = 2")


def commit_from_outside(case: Case) -> None:
    case.commit(4).write_text('{"commitInfo":{"operation":"WRITE"}}\n')


def write_half_a_commit(case: Case) -> None:
    case.commit(2).write_bytes(case.commit(2).read_bytes()[:40])


def lose_a_data_file(case: Case) -> None:
    (case.root / case.files[0]).unlink()


def lose_a_file_named_by_its_whole_address(case: Case) -> None:
    file = case.root / "by address.parquet"
    body = {"path": file.as_uri(), "partitionValues": {}, "size": 9, "modificationTime": 1, "dataChange": True}
    case.table.commit([{"add": {**body, "stats": '{"numRecords":1}'}}], operation="WRITE")


def cut_a_data_file(case: Case) -> None:
    file = case.root / case.files[0]
    file.write_bytes(file.read_bytes()[:-1])


def write_a_checkpoint_that_lacks_a_file(case: Case) -> None:
    DeltaTable(case.root).create_checkpoint()
    [file] = (case.root / "_delta_log").glob("*.checkpoint.parquet")
    rows = pq.read_table(file)
    keep = [row["add"] is None or row["add"]["path"] != case.files[0] for row in rows.to_pylist()]
    pq.write_table(rows.filter(pa.array(keep)), file)


def checkpoint_with(case: Case, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """A checkpoint whose files say otherwise in what `change` makes of each."""
    DeltaTable(case.root).create_checkpoint()
    [file] = (case.root / "_delta_log").glob("*.checkpoint.parquet")
    found = pq.read_table(file)
    rows = [
        row if row["add"] is None else {**row, "add": {**row["add"], **change(row["add"])}} for row in found.to_pylist()
    ]
    pq.write_table(pa.Table.from_pylist(rows, found.schema), file)


def checkpoint_other_partition_values(case: Case) -> None:
    checkpoint_with(case, lambda add: {"partitionValues": [("id", "7")]})


def checkpoint_other_statistics(case: Case) -> None:
    def change(add: dict[str, Any]) -> dict[str, Any]:
        stats = json.loads(add["stats"])
        return {"stats": json.dumps({**stats, "maxValues": {"id": 1000}, "nullCount": {"id": 1}})}

    checkpoint_with(case, change)


def checkpoint_other_cardinality(case: Case) -> None:
    features = ["deletionVectors"]
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features,
        "writerFeatures": [*features, "appendOnly", "invariants", "inCommitTimestamp"],
    }  # fmt: skip
    [path] = case.files_of(1)
    inline = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    vector = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 40, "cardinality": 6}
    size = (case.root / path).stat().st_size
    file = {"path": path, "partitionValues": {}, "size": size, "dataChange": True}
    case.table.commit(
        [
            {"protocol": protocol}, {"remove": {**file, "deletionTimestamp": 1}},
            {"add": {**file, "modificationTime": 1, "stats": '{"numRecords":10}', "deletionVector": vector}},
        ],
        operation="DELETE",
    )  # fmt: skip

    def change(add: dict[str, Any]) -> dict[str, Any]:
        found = add["deletionVector"]
        return {"deletionVector": found and {**found, "cardinality": 5}}

    checkpoint_with(case, change)


def break_a_checkpoint(case: Case) -> None:
    DeltaTable(case.root).create_checkpoint()
    [file] = (case.root / "_delta_log").glob("*.checkpoint.parquet")
    file.write_bytes(b"PAR1 is not enough")


def lie_about_nulls(case: Case) -> None:
    case.sql("""UPDATE dl_add_files SET stats = '{"numRecords":10,"minValues":{"id":5},"maxValues":{"id":4},"""
             """"nullCount":{"id":11}}' WHERE table_id = $ID AND version = 1""")  # fmt: skip


def swap_the_protocol(case: Case) -> None:
    case.sql("UPDATE dl_protocol_updates SET min_reader_version = 3 WHERE table_id = $ID AND version = 0")


def forget_to_publish(case: Case) -> None:
    case.sql("UPDATE dl_table_heads SET published_version = 9 WHERE table_id = $ID")


def swap_a_deletion_vector(case: Case) -> None:
    inline = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    vector = f'{{"storageType":"i","pathOrInlineDv":"{inline}","sizeInBytes":40,"cardinality":6}}'
    case.sql(f"UPDATE dl_add_files SET deletion_vector = '{vector}' WHERE table_id = $ID AND version = 1")


def repeat_a_row(case: Case) -> None:
    columns = (
        "table_id, version, size_bytes, modification_time, num_records, path_bucket, data_change, file_key, path, "
        "partition_values, stats"
    )
    case.sql(
        f"INSERT INTO dl_add_files ({columns}, seq, removed_version) "
        f"SELECT {columns}, 77, 1 FROM dl_add_files WHERE table_id = $ID AND version = 1"
    )


def mix_up_buckets(case: Case) -> None:
    case.sql("UPDATE dl_remove_files SET path_bucket = (path_bucket + 1) % 256 WHERE table_id = $ID AND version = 2")


def count_rows_wrong(case: Case) -> None:
    case.sql("UPDATE dl_add_files SET num_records = 11 WHERE table_id = $ID AND version = 1")


def reword_a_commit(case: Case) -> None:
    case.edit(1, '{"add"', ' { "add"')


def reword_a_row(case: Case) -> None:
    case.sql("UPDATE dl_table_versions SET commit_info = '{}' WHERE table_id = $ID AND version = 3")


CORRUPTIONS: list[tuple[Corrupt, str, int | None, bool]] = [
    (flip_a_byte, "unreadable_commit", 1, False),
    (drop_a_commit, "missing_in_log", 1, False),
    (drop_the_first_commit, "missing_in_log", 0, False),
    (change_a_size_in_the_log, "differs", 1, True),
    (change_a_size_in_the_catalog, "differs", 1, True),
    (delete_an_add, "missing_in_catalog", 1, True),
    (delete_a_remove, "missing_in_catalog", 2, True),
    (open_a_span, "spans_equal_replay", 0, True),
    (close_a_span, "spans_equal_replay", 1, True),
    (move_the_head_back, "head_is_newest", 2, False),
    (drop_a_version, "versions_contiguous", 1, False),
    (turn_time_back, "versions_contiguous", 2, False),
    (commit_from_outside, "foreign_commit", 4, False),
    (write_half_a_commit, "unreadable_commit", 2, False),
    (lose_a_data_file, "data_file_missing", None, True),
    (lose_a_file_named_by_its_whole_address, "data_file_missing", 4, True),
    (cut_a_data_file, "data_file_size", None, True),
    (write_a_checkpoint_that_lacks_a_file, "checkpoint_lacks_file", 3, True),
    (checkpoint_other_partition_values, "checkpoint_differs", 3, True),
    (checkpoint_other_statistics, "checkpoint_differs", 3, True),
    (checkpoint_other_cardinality, "checkpoint_differs", 4, True),
    (break_a_checkpoint, "checkpoint_unreadable", 3, False),
    (lie_about_nulls, "statistics", 1, True),
    (swap_the_protocol, "differs", 0, False),
    (forget_to_publish, "head_is_newest", 9, False),
    (swap_a_deletion_vector, "differs", 1, True),
    (repeat_a_row, "missing_in_log", 1, True),
    (mix_up_buckets, "differs", 2, True),
    (count_rows_wrong, "differs", 1, True),
    (reword_a_commit, "commit_bytes", 1, True),
    (reword_a_row, "differs", 3, False),
]
