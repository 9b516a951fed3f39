-- Rows on their way in from many executors. Names of staging tables are made by us; each row carries the attempt that
-- wrote it, because Spark may run a task twice: only attempts whose answer reached the driver count.

-- name: staging_create
CREATE {{unlogged}} TABLE {{staging}} AS
SELECT CAST('' AS {{text}}) AS attempt, {{columns}} FROM {{target}} WHERE 1 = 0;

-- name: staging_attempts
CREATE {{unlogged}} TABLE {{staging}} AS SELECT CAST('' AS {{text}}) AS attempt WHERE 1 = 0;

-- name: staging_times
CREATE {{unlogged}} TABLE {{staging}} AS SELECT version, committed_at FROM dl_table_versions WHERE 1 = 0;

-- name: staging_checked  (the files of a checkpoint that the commits before it must leave live)
CREATE {{unlogged}} TABLE {{staging}} AS
SELECT CAST('' AS {{text}}) AS attempt, file_key, path FROM dl_add_files WHERE 1 = 0;

-- name: staging_drop
DROP TABLE IF EXISTS {{staging}};

-- name: staging_publish  (rows without a span)
INSERT INTO {{target}} (table_id, {{columns}})
SELECT CAST(:table_id AS {{uuid}}), {{columns}} FROM {{staging}} AS s JOIN {{attempts}} AS k ON k.attempt = s.attempt;

-- name: staging_publish_adds  (an add ends with the next action of its file, also of its own version)
INSERT INTO dl_add_files (table_id, removed_version, {{columns}})
SELECT CAST(:table_id AS {{uuid}}), spans.ended, {{qualified}}
FROM (
    SELECT version AS at_version, seq AS at_seq, is_add,
           lead(version) OVER (PARTITION BY file_key ORDER BY version, seq, is_add) AS ended
    FROM (
        SELECT s.version, s.seq, s.file_key, 1 AS is_add FROM {{staging}} AS s JOIN {{attempts}} AS k ON k.attempt = s.attempt
        UNION ALL
        SELECT s.version, s.seq, s.file_key, 0 AS is_add FROM {{removes}} AS s JOIN {{attempts}} AS k ON k.attempt = s.attempt
    ) AS actions
) AS spans
JOIN {{staging}} AS s ON s.version = spans.at_version AND s.seq = spans.at_seq
JOIN {{attempts}} AS k ON k.attempt = s.attempt
WHERE spans.is_add = 1;

-- name: staging_publish_keyed  (application transactions and domains end with the next action of their key)
INSERT INTO {{target}} (table_id, superseded_version, {{columns}})
SELECT CAST(:table_id AS {{uuid}}), lead(s.version) OVER (PARTITION BY s.{{key}} ORDER BY s.version, s.seq), {{qualified}}
FROM {{staging}} AS s JOIN {{attempts}} AS k ON k.attempt = s.attempt;

-- name: staging_publish_versions
INSERT INTO dl_table_versions
    (table_id, version, committed_at, kind, committer, operation, operation_params, commit_info, content_sha256)
SELECT CAST(:table_id AS {{uuid}}), s.version, t.committed_at, s.kind, s.committer, s.operation, s.operation_params,
       s.commit_info, s.content_sha256
FROM {{staging}} AS s
JOIN {{attempts}} AS k ON k.attempt = s.attempt
JOIN {{times}} AS t ON t.version = s.version;

-- name: staging_contradicts  (how many files a checkpoint has, and how many of them are not live by the commits)
SELECT count(*) AS theirs, count(*) - count(a.version) AS missing,
       min(CASE WHEN a.version IS NULL THEN s.path END) AS example
FROM {{checked}} AS s
JOIN {{attempts}} AS k ON k.attempt = s.attempt
LEFT JOIN dl_add_files AS a
  ON a.table_id = :table_id AND a.file_key = s.file_key AND a.version <= :version
  AND (a.removed_version IS NULL OR a.removed_version > :version);

-- name: staging_rows
SELECT {{columns}} FROM {{staging}} AS s JOIN {{attempts}} AS k ON k.attempt = s.attempt ORDER BY version;
