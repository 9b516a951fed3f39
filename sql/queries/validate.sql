-- Do the catalog's rows contradict each other?

-- name: spans_differ  (files that are live by their spans and not by the log's rows, or the other way round)
SELECT a.version, a.seq, a.path, a.removed_version,
       CASE WHEN a.removed_version IS NULL OR a.removed_version > :version THEN 1 ELSE 0 END AS by_spans
FROM dl_add_files AS a
LEFT JOIN (
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
) AS replayed ON replayed.version = a.version AND replayed.seq = a.seq
WHERE a.table_id = :table_id AND a.version <= :version
  AND (replayed.version IS NULL) <> (a.removed_version IS NOT NULL AND a.removed_version <= :version);
