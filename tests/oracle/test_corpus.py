"""Every table of the corpus equals Delta Spark and delta-rs at every readable version, or is refused and leaves no row.

Where one of the two cannot be asked, or says something else, the table stands in a list below with the reason.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet
from commit_lines import commits_of, expected_lines, lines_of
from corpus import ABSENT, CorpusTable, corpus_tables
from delta_oracle import DeltaRefuses, DeltaSpark
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from report import FeatureReport, Outcome
from states import State, delta_spelling, of_snapshot

from mainstem import Catalog, open_catalog
from mainstem.deltalog import serialize_commit
from mainstem.errors import CorruptLog, MainstemError, UnsupportedFeature
from mainstem.recorded import recorded

GOLDEN = "kernel-rs-golden"
TRINO = "trino/databricks73"

# Refused, by which error, and by which words of it.
REFUSED: dict[str, tuple[type[MainstemError], str]] = {
    "delta-bench/basic_catalog_managed/delta": (UnsupportedFeature, "catalogManaged"),
    "delta-rs-err/table_f": (UnsupportedFeature, "catalogOwned"),
    "delta-rs/simple_table_features": (UnsupportedFeature, "reader version 5"),
    "kernel-rs/table-with-geo": (UnsupportedFeature, "geospatial"),
    f"{GOLDEN}/deltalog-invalid-protocol-version/delta": (UnsupportedFeature, "reader version 99"),
    f"{GOLDEN}/deltalog-state-reconstruction-without-protocol/delta": (CorruptLog, "no protocol"),
    f"{GOLDEN}/deltalog-state-reconstruction-without-metadata/delta": (CorruptLog, "no metaData"),
    f"{GOLDEN}/deltalog-state-reconstruction-from-checkpoint-missing-protocol/delta": (CorruptLog, "no protocol"),
    f"{GOLDEN}/versions-not-contiguous/delta": (CorruptLog, "version 1 is missing"),
    "trino/statistics/extended_stats_with_data_size": (CorruptLog, "no commit and no complete checkpoint"),
    # Every line ends in a stray `x`. Delta's parser stops at the closing brace and never sees it; delta-rs refuses too.
    f"{TRINO}/person": (CorruptLog, r"00000000000000000000\.json, line 1"),
    f"{TRINO}/person_test_pruning": (CorruptLog, r"00000000000000000000\.json, line 1"),
    f"{TRINO}/person_without_checkpoints": (CorruptLog, r"00000000000000000000\.json, line 1"),
    f"{TRINO}/person_without_last_checkpoint": (CorruptLog, r"00000000000000000000\.json, line 1"),
    f"{TRINO}/person_without_old_jsons": (CorruptLog, r"00000000000000000011\.json, line 1"),
    f"{TRINO}/pruning/invalid_log": (CorruptLog, r"00000000000000000000\.json, line 1"),
}

# Delta Spark opens them after what is wrong around the log, and not in it, was put right in a copy.
CHECKPOINT_ALONE = {  # "Could not find any delta files for version": it wants the commit file beside its checkpoint
    "delta-rs/table-with-domain-metadata",
    "trino/statistics/parquet_struct_statistics",
    "trino/statistics/parquet_struct_statistics_nan",
}
WRONG_SIDE_FILE = {"delta-rs/cdc_ict_table"}  # Hadoop's hidden .crc file beside a commit is not that commit's

# Delta Spark does not open it, whatever is put right: its path has a raw colon, which java.net.URI takes for a scheme.
DELTA_REFUSES = {"kernel-rs-zst/timestamp-partitioned-table": "Illegal character in scheme name"}

# delta-rs fails on these, from this version on or up to it. All are limits of delta-rs: Delta Spark reads them.
DELTARS_REFUSES = {
    "delta-golden/canonicalized-paths-normal-b": (range(2), "schemaString"),  # a metaData without a schema
    "delta-golden/canonicalized-paths-special-b": (range(2), "schemaString"),
    "delta-golden/corrupted-last-checkpoint": (range(11), "schemaString"),
    "delta-rs/delta-live-table": (range(1), "schemaString"),
    "trino/deltalake/unsupported_writer_version": (range(1), "Writer features must not be present"),
    "trino/databricks153/type_widening_partition": (range(16, 19), "Failed to parse value"),
    "trino/databricks154/clone_checkpoint_version_zero/checkpoint_v2/shallow_cloned_table": (range(1), "Parquet"),
}

# delta-rs takes `/x` and `file:/x` for two files, so that a remove by the other spelling takes nothing away.
# Delta Spark removes it, and so do we.
DELTARS_KEEPS = {
    f"{GOLDEN}/canonicalized-paths-normal-b/delta": 1,
    f"{GOLDEN}/canonicalized-paths-special-b/delta": 1,
}

# The checkpoint was written without statistics as JSON, so that whoever starts from it has none. We read the commits,
# which have them; that they are right is compared at the versions before the checkpoint.
STATS_LOST_IN_CHECKPOINT = {
    "dat/no_stats/delta": 2,
    "dat/stats_as_struct/delta": 2,
    "kernel-rs/parquet_row_group_skipping": 1,
    "trino/deltalake/partition_values_parsed": 1,
}
# Here the checkpoint has them as a struct, from which Delta Spark and we make the text; delta-rs shows none.
STATS_NOT_IN_DELTARS = {
    f"{TRINO}/parquet_stats_missing": 10,
    f"{TRINO}/pruning/parquet_struct_statistics": 10,
    "trino/statistics/parquet_struct_statistics": 10,
}

# The log contradicts itself: the checkpoint of version 1 was made from another table than the commits, with another
# metaData. Delta Spark and delta-rs believe the checkpoint; we believe the commits, which also answer version 0.
CONTRADICTS_ITSELF = {"kernel-rs/parquet_row_group_skipping": 1}

# The subset that the normal run compares on all three engines: one of every kind of log that is read differently.
ON_EVERY_ENGINE = {
    "dat/no_replay/delta",
    "delta-kernel/kernel-pagination-v2-checkpoint-json",
    "delta-rs/cdc_ict_table",
    "delta-rs/table-with-domain-metadata",
    "delta-spark/partitioned-table-with-dv-large",
    "kernel-rs/app-txn-checkpoint",
    "kernel-rs/v2-parquet-sidecars-struct-stats-only",
    f"{GOLDEN}/dv-with-columnmapping/delta",
    f"{GOLDEN}/versions-not-contiguous/delta",
    "kernel-rs-zst/cdf-table-with-dv",
    "trino/deltalake/multipart_checkpoint",
    "trino/deltalake/uri",
}


def cases() -> list[ParameterSet]:
    """Every table on SQLite, and slowly on the other two; without the corpus one case, skipped, that says so."""
    if not corpus_tables():
        return [pytest.param("none", None, id="absent", marks=pytest.mark.skip(reason=ABSENT))]
    return [
        pytest.param(
            engine,
            table,
            id=f"{engine}-{table.name}",
            marks=() if engine == "sqlite" or table.name in ON_EVERY_ENGINE else pytest.mark.slow,
        )
        for table in corpus_tables()
        for engine in ("sqlite", "postgres", "duckdb")
    ]


@pytest.fixture(scope="module")
def catalogs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Catalog]]:
    """A catalog an engine, opened when it is first asked for: a new one for each table would take most of the time."""
    folder, schema = tmp_path_factory.mktemp("corpus"), f"corpus_{uuid4().hex[:12]}"

    class Opened(dict[str, Catalog]):
        def __missing__(self, engine: str) -> Catalog:
            uri = f"{engine}:///{folder}/lake.{engine}"
            if engine == "postgres":
                uri = f"{request.getfixturevalue('postgres_uri')}?schema={schema}"
            self[engine] = open_catalog(uri)
            self[engine].migrate()
            return self[engine]

    opened = Opened()
    yield opened
    for catalog in opened.values():
        catalog.close()
    if "postgres" in opened:
        with psycopg.connect(request.getfixturevalue("postgres_uri"), autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, int], State | None]:
    """What Delta Spark has said so far: it is asked once, whatever the number of engines."""
    return {}


def row_counts(catalog: Catalog) -> dict[str, int]:
    with catalog.engine.reading() as connection:
        return {
            table: connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
            for table in sorted(catalog.engine.tables(connection))
        }


@pytest.mark.spark
@pytest.mark.parametrize(("engine", "table"), cases())
def test_a_table_equals_delta_spark_and_deltars_at_every_version_or_is_refused_without_a_row(
    engine: str,
    table: CorpusTable,
    catalogs: dict[str, Catalog],
    delta: DeltaSpark,
    answers: dict[tuple[str, int], State | None],
    feature_report: FeatureReport,
    tmp_path: Path,
) -> None:
    catalog = catalogs[engine]
    if table.name in REFUSED:
        kind, words = REFUSED[table.name]
        before = row_counts(catalog)
        with pytest.raises(kind, match=words) as caught:
            catalog.import_table(str(table.root), name=table.name)
        assert type(caught.value) is kind
        assert row_counts(catalog) == before
        feature_report.add(engine, table, Outcome(refused=True))
        return

    imported = catalog.import_table(str(table.root), name=table.name)
    opened = catalog.table(table.name)
    versions = [entry.version for entry in reversed(opened.history()) if entry.version >= imported.first_version]
    assert versions == list(range(imported.first_version, imported.version + 1))
    if table.last_version is not None:
        assert imported.version == table.last_version
    missing = [version for version in versions if (table.name, version) not in answers]
    answers.update({(table.name, version): state for version, state in ask_delta(delta, table, missing, tmp_path)})

    by_delta = by_deltars = 0
    for version in versions:
        ours = of_snapshot(opened.snapshot(version=version))
        theirs = answers[table.name, version]
        if theirs is not None:
            require_equal_to_delta(table, version, ours, theirs)
            by_delta += 1
        by_deltars += require_equal_to_deltars(table, version, ours)
    assert require_commits_as_in_the_log(catalog, table) >= len(versions) - 1
    assert by_delta or by_deltars, "nobody else opens this table, so nothing was compared"
    feature_report.add(engine, table, Outcome(False, len(versions), by_delta, by_deltars))


def require_commits_as_in_the_log(catalog: Catalog, table: CorpusTable) -> int:
    """Every commit that was imported comes out of the rows again, action for action and field for field; how many."""
    info = catalog.table(table.name).info()
    with catalog.store.reading() as queries:
        found = recorded(queries, info.table_id, first=0, last=info.version)
    # A log that was cleaned up begins with a checkpoint, which stands for the commit of its version too.
    commits = found if found[0].kind == "commit" else found[1:]
    assert {each.kind for each in commits} <= {"commit"}
    files = {int(file.stem): file for file in commits_of(table) if int(file.stem) > found[-1].version - len(commits)}
    assert [each.version for each in commits] == list(files)
    for each in commits:
        written, file = serialize_commit(each.actions), files[each.version]
        assert lines_of(written) == expected_lines(file.read_bytes()), file.name
    return len(commits)


def ask_delta(
    delta: DeltaSpark, table: CorpusTable, versions: list[int], scratch: Path
) -> Iterator[tuple[int, State | None]]:
    if not versions:
        return  # another engine's run has asked already
    root = table.root
    if table.name in CHECKPOINT_ALONE | WRONG_SIDE_FILE:
        root = scratch / "copy"
        shutil.copytree(table.root / "_delta_log", root / "_delta_log", ignore=shutil.ignore_patterns(".*.crc"))
    if table.name in CHECKPOINT_ALONE:
        [version] = versions
        (root / "_delta_log" / f"{version:020d}.json").write_text('{"commitInfo":{"operation":"TEST"}}\n')
    if table.name in DELTA_REFUSES:
        with pytest.raises(DeltaRefuses, match=DELTA_REFUSES[table.name]):
            delta.states(str(root), versions)
        yield from ((version, None) for version in versions)
        return
    yield from delta.states(str(root), versions).items()


def require_equal_to_delta(table: CorpusTable, version: int, ours: State, theirs: State) -> None:
    """All of it: files with every field, metadata, protocol, domains and application transactions."""
    if CONTRADICTS_ITSELF.get(table.name) == version:
        assert ours.metadata["id"] != theirs.metadata["id"]
        theirs = replace(theirs, metadata=ours.metadata)
    assert ours.metadata == theirs.metadata
    assert ours.protocol == theirs.protocol
    assert ours.domains == theirs.domains
    assert ours.transactions == theirs.transactions
    spelled = {(delta_spelling(path), dv): file for (path, dv), file in ours.files.items()}
    assert spelled.keys() == theirs.files.keys()
    for known, file in spelled.items():
        other = theirs.files[known]
        if other.stats is None and version >= STATS_LOST_IN_CHECKPOINT.get(table.name, version + 1):
            other = replace(other, stats=file.stats)
        if file.stats != other.stats:
            # Statistics that a checkpoint has as a struct are written as text again, by Delta and by us, and a blank or
            # the order of keys may differ. What they say may not.
            assert file.meaning_of_stats == other.meaning_of_stats, known
            other = replace(other, stats=file.stats)
        assert file == other, known


def require_equal_to_deltars(table: CorpusTable, version: int, ours: State) -> bool:
    """What delta-rs shows: paths, sizes, times and row counts of files, metadata, protocol, asked-for transactions."""
    failing, words = DELTARS_REFUSES.get(table.name, (range(0), ""))
    if version in failing:
        with pytest.raises(DeltaError, match=words):
            DeltaTable(str(table.root), version=version)
        return False
    theirs = DeltaTable(str(table.root), version=version)
    files = {row["path"]: row for row in pa.table(theirs.get_add_actions()).to_pylist()}
    if DELTARS_KEEPS.get(table.name) == version:
        assert not ours.files
        assert len(files) == 1
        files = {}
    assert sorted(files) == sorted(path for path, _ in ours.files)
    without_stats = version >= min(
        STATS_LOST_IN_CHECKPOINT.get(table.name, version + 1), STATS_NOT_IN_DELTARS.get(table.name, version + 1)
    )
    for (path, _), file in ours.files.items():
        row = files[path]
        assert (row["size_bytes"], row["modification_time"]) == (file.size, file.modification_time)
        if not (row["num_records"] is None and without_stats):
            assert row["num_records"] == (file.meaning_of_stats or {}).get("numRecords")
    protocol = theirs.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version, sorted(protocol.reader_features or ())) == (
        ours.protocol["minReaderVersion"],
        ours.protocol["minWriterVersion"],
        ours.protocol["readerFeatures"] or [],  # delta-rs shows an empty list as none
    )
    assert sorted(protocol.writer_features or ()) == (ours.protocol["writerFeatures"] or [])
    assert all(theirs.transaction_version(app) == number for app, number in ours.transactions.items())
    if CONTRADICTS_ITSELF.get(table.name) == version:
        return True
    metadata = theirs.metadata()
    assert {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "partitionColumns": metadata.partition_columns,
        "configuration": metadata.configuration,
        "createdTime": metadata.created_time,
    } == {key: value for key, value in ours.metadata.items() if key not in ("format", "schemaString")}
    assert json.loads(theirs.schema().to_json()) == json.loads(ours.metadata["schemaString"])
    return True


def test_the_lists_of_exceptions_name_tables_that_are_there() -> None:
    if not corpus_tables():
        pytest.skip(ABSENT)
    named = {*REFUSED, *CHECKPOINT_ALONE, *WRONG_SIDE_FILE, *DELTA_REFUSES, *DELTARS_REFUSES, *DELTARS_KEEPS}
    named |= {*STATS_LOST_IN_CHECKPOINT, *STATS_NOT_IN_DELTARS, *CONTRADICTS_ITSELF, *ON_EVERY_ENGINE}
    assert named <= {table.name for table in corpus_tables()}
