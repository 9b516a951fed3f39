-- A snapshot from the log rows alone, and what Spark reads over JDBC.
-- The columns of the jdbc_* queries end with path_bucket, by which Spark reads in slices.

-- name: replay_at_version  (vw_active_files at an older version: the bound stands in the window's input)
SELECT {{columns}} FROM dl_add_files
WHERE table_id = :table_id AND (version, seq) IN (
    SELECT version, seq FROM (
        SELECT version, seq, is_add,
               row_number() OVER (PARTITION BY file_key ORDER BY version DESC, seq DESC, is_add DESC) AS place
        FROM (
            SELECT file_key, version, seq, TRUE AS is_add FROM dl_add_files
            WHERE table_id = :table_id AND version <= :version
            UNION ALL
            SELECT file_key, version, seq, FALSE AS is_add FROM dl_remove_files
            WHERE table_id = :table_id AND version <= :version
        ) AS actions
    ) AS ranked
    WHERE place = 1 AND is_add
) AND ({{condition}});

-- name: jdbc_spans
SELECT {{columns}}, path_bucket FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version)
  AND ({{condition}});

-- name: jdbc_adds
SELECT {{columns}}, path_bucket FROM dl_add_files
WHERE table_id = :table_id AND version <= :version
  AND ({{condition}});

-- name: jdbc_removes
SELECT {{columns}}, path_bucket FROM dl_remove_files
WHERE table_id = :table_id AND version <= :version;
