-- The history as plain SQL: who did what and when, which commit touched a file, how a table grew, where it is NULL.
-- All of it comes from the same rows that snapshots are made of; nothing here is stored a second time.

-- Operations between two times: WHERE name = … AND committed_at BETWEEN … AND …
CREATE VIEW vw_operations AS
SELECT t.name, t.table_id, v.version, v.committed_at, v.operation, v.committer, v.kind, v.operation_params, v.txn_id,
       v.group_id, v.commit_info
FROM dl_table_versions AS v
JOIN dl_tables AS t ON t.table_id = v.table_id;

-- Which commit added or removed a file: WHERE name = … AND path = …
CREATE VIEW vw_file_history AS
SELECT t.name, t.table_id, a.path, a.dv_id, a.version, a.seq, a.action, a.size_bytes, a.data_change, v.committed_at,
       v.operation, v.committer
FROM (
    SELECT table_id, path, dv_id, version, seq, 'add' AS action, size_bytes, data_change FROM dl_add_files
    UNION ALL
    SELECT table_id, path, dv_id, version, seq, 'remove' AS action, size_bytes, data_change FROM dl_remove_files
) AS a
JOIN dl_tables AS t ON t.table_id = a.table_id
JOIN dl_table_versions AS v ON v.table_id = a.table_id AND v.version = a.version;

-- Files, bytes and rows of each version, as running sums over what each version added and ended. Rows that a deletion
-- vector marks are not counted. records is NULL for a version in which some live file does not say how many it has.
CREATE VIEW vw_size_by_version AS
SELECT name, table_id, version, committed_at, operation, files, size_bytes,
       CASE WHEN without_records = 0 THEN records END AS records
FROM (
    SELECT t.name, v.table_id, v.version, v.committed_at, v.operation,
           CAST(sum(coalesce(c.files, 0)) OVER w AS BIGINT) AS files,
           CAST(sum(coalesce(c.size_bytes, 0)) OVER w AS BIGINT) AS size_bytes,
           CAST(sum(coalesce(c.records, 0)) OVER w AS BIGINT) AS records,
           sum(coalesce(c.without_records, 0)) OVER w AS without_records
    FROM dl_table_versions AS v
    JOIN dl_tables AS t ON t.table_id = v.table_id
    LEFT JOIN (
        SELECT table_id, version, sum(files) AS files, sum(size_bytes) AS size_bytes, sum(records) AS records,
               sum(without_records) AS without_records
        FROM (
            SELECT table_id, version, 1 AS files, size_bytes,
                   num_records - coalesce(TRY_CAST(deletion_vector ->> '$.cardinality' AS BIGINT), 0) AS records,
                   CASE WHEN num_records IS NULL THEN 1 ELSE 0 END AS without_records
            FROM dl_add_files
            UNION ALL
            SELECT table_id, removed_version, -1, -size_bytes,
                   coalesce(TRY_CAST(deletion_vector ->> '$.cardinality' AS BIGINT), 0) - num_records,
                   CASE WHEN num_records IS NULL THEN -1 ELSE 0 END
            FROM dl_add_files
            WHERE removed_version IS NOT NULL
        ) AS changes
        GROUP BY table_id, version
    ) AS c ON c.table_id = v.table_id AND c.version = v.version
    WINDOW w AS (PARTITION BY v.table_id ORDER BY v.version)
) AS sized;

-- A table as each day left it, in UTC.
CREATE VIEW vw_growth_by_day AS
SELECT name, table_id, day, version, commits, files, size_bytes, records
FROM (
    SELECT sized.*, CAST(committed_at AS DATE) AS day,
           count(*) OVER (PARTITION BY table_id, CAST(committed_at AS DATE)) AS commits,
           row_number() OVER (PARTITION BY table_id, CAST(committed_at AS DATE) ORDER BY version DESC) AS place
    FROM vw_size_by_version AS sized
) AS days
WHERE place = 1;

-- How much of each column is NULL at each version, from the statistics of the files that say so. Nested columns are
-- named by their path. Counts come from before deletion vectors: rows that one marks still count here.
CREATE VIEW vw_null_rates AS
WITH counts AS (
    SELECT a.table_id, a.version, a.removed_version, a.num_records,
           replace(substr(e.fullkey, 13), '"', '') AS column_name, TRY_CAST(e.atom AS BIGINT) AS nulls
    FROM dl_add_files AS a, json_tree(a.stats, '$.nullCount') AS e
    WHERE a.num_records IS NOT NULL AND TRY_CAST(e.atom AS BIGINT) IS NOT NULL
), changes AS (
    SELECT table_id, version, column_name, nulls, num_records AS records FROM counts
    UNION ALL
    SELECT table_id, removed_version, column_name, -nulls, -num_records FROM counts WHERE removed_version IS NOT NULL
), sums AS (
    SELECT table_id, column_name, version,
           CAST(sum(sum(nulls)) OVER (PARTITION BY table_id, column_name ORDER BY version) AS BIGINT) AS nulls,
           CAST(sum(sum(records)) OVER (PARTITION BY table_id, column_name ORDER BY version) AS BIGINT) AS records,
           lead(version) OVER (PARTITION BY table_id, column_name ORDER BY version) AS next_version
    FROM changes
    GROUP BY table_id, column_name, version
)
SELECT t.name, v.table_id, v.version, v.committed_at, s.column_name, s.nulls, s.records,
       s.nulls * 1.0 / s.records AS null_rate
FROM dl_table_versions AS v
JOIN dl_tables AS t ON t.table_id = v.table_id
JOIN sums AS s ON s.table_id = v.table_id AND s.version <= v.version
              AND (s.next_version IS NULL OR s.next_version > v.version)
WHERE s.records > 0;
