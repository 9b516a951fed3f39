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
           (sum(coalesce(c.files, 0)) OVER w)::bigint AS files,
           (sum(coalesce(c.size_bytes, 0)) OVER w)::bigint AS size_bytes,
           (sum(coalesce(c.records, 0)) OVER w)::bigint AS records,
           sum(coalesce(c.without_records, 0)) OVER w AS without_records
    FROM dl_table_versions AS v
    JOIN dl_tables AS t ON t.table_id = v.table_id
    LEFT JOIN (
        SELECT table_id, version, sum(files) AS files, sum(size_bytes) AS size_bytes, sum(records) AS records,
               sum(without_records) AS without_records
        FROM (
            SELECT table_id, version, 1 AS files, size_bytes,
                   num_records - coalesce((deletion_vector::json ->> 'cardinality')::bigint, 0) AS records,
                   CASE WHEN num_records IS NULL THEN 1 ELSE 0 END AS without_records
            FROM dl_add_files
            UNION ALL
            SELECT table_id, removed_version, -1, -size_bytes,
                   coalesce((deletion_vector::json ->> 'cardinality')::bigint, 0) - num_records,
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
    SELECT sized.*, (committed_at AT TIME ZONE 'UTC')::date AS day,
           count(*) OVER (PARTITION BY table_id, (committed_at AT TIME ZONE 'UTC')::date) AS commits,
           row_number() OVER (PARTITION BY table_id, (committed_at AT TIME ZONE 'UTC')::date
                              ORDER BY version DESC) AS place
    FROM vw_size_by_version AS sized
) AS days
WHERE place = 1;

-- How much of each column is NULL at each version, from the statistics of the files that say so. Nested columns are
-- named by their path. Counts come from before deletion vectors: rows that one marks still count here.
CREATE VIEW vw_null_rates AS
WITH counts AS (
    -- One level of nesting after the other; text that Postgres cannot read as JSON counts as saying nothing.
    SELECT * FROM (
        WITH RECURSIVE leaves AS (
            SELECT a.table_id, a.version, a.removed_version, a.num_records, e.key AS column_name, e.value
            FROM dl_add_files AS a
            CROSS JOIN LATERAL json_each(CASE WHEN a.num_records IS NOT NULL AND strpos(a.stats, '\u') = 0
                                               AND json_typeof(a.stats::json -> 'nullCount') = 'object'
                                              THEN a.stats::json -> 'nullCount' ELSE '{}'::json END) AS e
            UNION ALL
            SELECT l.table_id, l.version, l.removed_version, l.num_records,
                   l.column_name || '.' || e.key, e.value
            FROM leaves AS l
            CROSS JOIN LATERAL json_each(CASE json_typeof(l.value) WHEN 'object' THEN l.value ELSE '{}'::json END) AS e
        )
        SELECT table_id, version, removed_version, num_records, column_name,
               CASE WHEN value::text ~ '^[0-9]{1,18}$' THEN value::text::bigint END AS nulls
        FROM leaves
        WHERE json_typeof(value) = 'number'
    ) AS found
    WHERE nulls IS NOT NULL
), changes AS (
    SELECT table_id, version, column_name, nulls, num_records AS records FROM counts
    UNION ALL
    SELECT table_id, removed_version, column_name, -nulls, -num_records FROM counts WHERE removed_version IS NOT NULL
), sums AS (
    SELECT table_id, column_name, version,
           (sum(sum(nulls)) OVER (PARTITION BY table_id, column_name ORDER BY version))::bigint AS nulls,
           (sum(sum(records)) OVER (PARTITION BY table_id, column_name ORDER BY version))::bigint AS records,
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
