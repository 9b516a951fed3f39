-- A table at one version. Every statement is bounded by the version, so READ COMMITTED is enough.

-- name: version_row
SELECT version, committed_at, kind, content_sha256 FROM dl_table_versions
WHERE table_id = :table_id AND version = :version;

-- name: version_at  (the newest version at or before a moment)
SELECT version, committed_at, kind, content_sha256 FROM dl_table_versions
WHERE table_id = :table_id AND committed_at <= :moment
ORDER BY committed_at DESC, version DESC
LIMIT 1;

-- name: version_after  (the next version that is there; not the next number, where a checkpoint bridged a clean-up)
SELECT min(version) AS version FROM dl_table_versions WHERE table_id = :table_id AND version > :version;

-- name: still_readable  (a version that was read, as it is now: gone, expired, or replaced by a forced import)
SELECT v.committed_at, v.content_sha256 FROM dl_table_versions AS v
JOIN dl_table_heads AS h ON h.table_id = v.table_id
WHERE v.table_id = :table_id AND v.version = :version AND h.min_readable_version <= :version;

-- name: version_range
SELECT min(version) AS first_version, max(version) AS last_version,
       min(committed_at) AS first_time, max(committed_at) AS last_time
FROM dl_table_versions
WHERE table_id = :table_id AND version >= :min_readable_version;

-- name: version_of_tag
SELECT m.version FROM dl_tag_members AS m WHERE m.tag = :tag AND m.table_id = :table_id;

-- name: head_row  (with the version that it names, so that opening the newest one is not a second question)
SELECT h.current_version, h.published_version, h.min_readable_version, v.version, v.committed_at, v.content_sha256
FROM dl_table_heads AS h
LEFT JOIN dl_table_versions AS v ON v.table_id = h.table_id AND v.version = h.current_version
WHERE h.table_id = :table_id;

-- name: metadata_at
SELECT version, seq, metadata_id, name, description, format, schema_json, partition_columns, table_properties,
       created_time, extra
FROM dl_metadata_updates
WHERE table_id = :table_id AND version <= :version
ORDER BY version DESC
LIMIT 1;

-- name: protocol_at
SELECT version, seq, min_reader_version, min_writer_version, reader_features, writer_features, extra
FROM dl_protocol_updates
WHERE table_id = :table_id AND version <= :version
ORDER BY version DESC
LIMIT 1;

-- name: opened_at_head  (the newest version and all that a snapshot says before anybody asks for its files)
-- One statement shows one moment, so nothing has to be asked a second time. The first row has the table's; those of
-- domains and applications follow, as `registered_at` has them.
SELECT 'table' AS kind, CAST(NULL AS {{text}}) AS name, CAST(NULL AS {{text}}) AS said, CAST(NULL AS bigint) AS number,
       t.table_id, h.min_readable_version, v.version, v.committed_at, v.content_sha256,
       m.seq AS m_seq, m.metadata_id AS m_metadata_id, m.name AS m_name, m.description AS m_description,
       m.format AS m_format, m.schema_json AS m_schema_json, m.partition_columns AS m_partition_columns,
       m.table_properties AS m_table_properties, m.created_time AS m_created_time, m.extra AS m_extra,
       p.seq AS p_seq, p.min_reader_version AS p_min_reader_version, p.min_writer_version AS p_min_writer_version,
       p.reader_features AS p_reader_features, p.writer_features AS p_writer_features, p.extra AS p_extra
FROM dl_tables AS t
JOIN dl_table_heads AS h ON h.table_id = t.table_id
JOIN dl_table_versions AS v ON v.table_id = t.table_id AND v.version = h.current_version
LEFT JOIN dl_metadata_updates AS m ON m.table_id = t.table_id AND m.version = (
    SELECT max(version) FROM dl_metadata_updates WHERE table_id = t.table_id AND version <= h.current_version)
LEFT JOIN dl_protocol_updates AS p ON p.table_id = t.table_id AND p.version = (
    SELECT max(version) FROM dl_protocol_updates WHERE table_id = t.table_id AND version <= h.current_version)
WHERE t.name = :name
UNION ALL
SELECT 'domain', d.domain, d.configuration, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM dl_tables AS t
JOIN dl_domain_metadata AS d ON d.table_id = t.table_id
WHERE t.name = :name AND d.superseded_version IS NULL AND NOT d.removed
UNION ALL
SELECT 'application', a.app_id, NULL, a.txn_version, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM dl_tables AS t
JOIN dl_txn_actions AS a ON a.table_id = t.table_id
WHERE t.name = :name AND a.superseded_version IS NULL;

-- name: described_at  (both of the above as one row, each by its prefix)
SELECT m.seq AS m_seq, m.metadata_id AS m_metadata_id, m.name AS m_name, m.description AS m_description,
       m.format AS m_format, m.schema_json AS m_schema_json, m.partition_columns AS m_partition_columns,
       m.table_properties AS m_table_properties, m.created_time AS m_created_time, m.extra AS m_extra,
       p.seq AS p_seq, p.min_reader_version AS p_min_reader_version, p.min_writer_version AS p_min_writer_version,
       p.reader_features AS p_reader_features, p.writer_features AS p_writer_features, p.extra AS p_extra
FROM dl_tables AS t
LEFT JOIN dl_metadata_updates AS m ON m.table_id = t.table_id AND m.version = (
    SELECT max(version) FROM dl_metadata_updates WHERE table_id = :table_id AND version <= :version)
LEFT JOIN dl_protocol_updates AS p ON p.table_id = t.table_id AND p.version = (
    SELECT max(version) FROM dl_protocol_updates WHERE table_id = :table_id AND version <= :version)
WHERE t.table_id = :table_id;

-- name: registered_at  (domains with what they say, and applications with how far they came)
SELECT 'domain' AS kind, domain AS name, configuration AS said, CAST(NULL AS bigint) AS number
FROM dl_domain_metadata
WHERE table_id = :table_id AND version <= :version
  AND (superseded_version IS NULL OR superseded_version > :version)
  AND NOT removed
UNION ALL
SELECT 'application' AS kind, app_id AS name, CAST(NULL AS {{text}}) AS said, txn_version AS number
FROM dl_txn_actions
WHERE table_id = :table_id AND version <= :version
  AND (superseded_version IS NULL OR superseded_version > :version)
ORDER BY kind, name;

-- name: transactions_at
SELECT app_id, txn_version, last_updated FROM dl_txn_actions
WHERE table_id = :table_id AND version <= :version
  AND (superseded_version IS NULL OR superseded_version > :version)
ORDER BY app_id;

-- name: files_at_head  (nothing, unless the version is still the head when this statement runs: the index of live files)
SELECT {{columns}} FROM dl_add_files
WHERE table_id = :table_id AND removed_version IS NULL
  AND (SELECT current_version FROM dl_table_heads WHERE table_id = :table_id) = :version
  AND ({{condition}});

-- name: files_at_version
SELECT {{columns}} FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version)
  AND ({{condition}});

-- name: files_page  (keyset pagination: the next page starts after the last row of this one)
SELECT {{columns}}, seq FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version)
  AND (version, seq) > (:after_version, :after_seq)
  AND ({{condition}})
ORDER BY version, seq
LIMIT :page_size;

-- name: partition_texts  (each once, from one to the next by their index: as many steps as there are, however many files)
WITH RECURSIVE known (said, place) AS (
    SELECT (SELECT {{prefix}} FROM dl_add_files WHERE table_id = :table_id AND partition_values <> '{}'
            ORDER BY {{prefix}} LIMIT 1), 1
    UNION ALL
    SELECT (SELECT {{prefix}} FROM dl_add_files
            WHERE table_id = :table_id AND partition_values <> '{}' AND {{prefix}} > known.said
            ORDER BY {{prefix}} LIMIT 1), known.place + 1
    FROM known
    WHERE known.said IS NOT NULL AND known.place < :most
)
SELECT said FROM known WHERE said IS NOT NULL;

-- name: files_count_to  (how many files are live, counting no further than the limit)
SELECT count(*) AS files FROM (
    SELECT 1 AS one FROM dl_add_files
    WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version)
    LIMIT :most
) AS counted;

-- name: files_size  (by halves: the sum of what fits 64 bits may not, and SQLite then gives up)
SELECT count(*) AS files, count(*) - count(num_records) AS without_records,
       sum(size_bytes >> 32) AS size_high, sum(size_bytes & 4294967295) AS size_low,
       sum(num_records >> 32) AS records_high, sum(num_records & 4294967295) AS records_low
FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version);

-- name: files_since  (what came after one version and is live at another)
SELECT {{columns}} FROM dl_add_files
WHERE table_id = :table_id AND version > :since AND version <= :version
  AND (removed_version IS NULL OR removed_version > :version);

-- name: files_ended  (which rows of one version were ended up to another)
-- Found by the keys that were touched. The plus keeps planners from going through all older rows by their version.
SELECT a.version, a.seq FROM dl_add_files AS a
WHERE a.table_id = :table_id AND +a.version <= :since AND +a.removed_version > :since AND +a.removed_version <= :version
  AND a.file_key IN (
    SELECT file_key FROM dl_remove_files WHERE table_id = :table_id AND version > :since AND version <= :version
    UNION ALL
    SELECT file_key FROM dl_add_files WHERE table_id = :table_id AND version > :since AND version <= :version
  );

-- name: history
SELECT version, committed_at, kind, operation, operation_params, committer, commit_info, txn_id, group_id
FROM dl_table_versions
WHERE table_id = :table_id AND version <= :version
ORDER BY version DESC
LIMIT :most;

-- name: adds_at  (the live files of a version with all that their actions say)
SELECT seq, path, path_bucket, file_key, dv_id, size_bytes, partition_values, stats, data_change, modification_time,
       tags, deletion_vector, base_row_id, default_row_commit_version, clustering_provider, num_records, extra
FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version);
