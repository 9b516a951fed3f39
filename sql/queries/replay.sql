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
{{refusal}}
UNION ALL
SELECT {{columns}}, path_bucket FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version)
  AND ({{condition}});

-- name: jdbc_adds
{{refusal}}
UNION ALL
SELECT {{columns}}, path_bucket FROM dl_add_files
WHERE table_id = :table_id AND version <= :version
  AND ({{condition}});

-- name: jdbc_removes
{{refusal}}
UNION ALL
SELECT {{columns}}, path_bucket FROM dl_remove_files
WHERE table_id = :table_id AND version <= :version;

-- name: jdbc_refusal  (a row that is in no slice; if the version is not as it was opened, an error that says so)
-- Spark reads when it likes to: the statement that reads the rows is the only one that sees whether they are all there.
-- To find that this row is in no slice, a database has to turn into a number what may be none.
SELECT {{columns}}, {{number_or_error}} AS path_bucket FROM (
    SELECT CASE WHEN count(*) = 1 THEN '-1' ELSE
        'Mainstem: version ' || CAST(:version AS {{text}}) || ' of table ' || CAST(:table_id AS {{text}})
        || ' was expired or replaced before Spark read it. Open the table again, or hold the version by a tag.'
    END AS said
    FROM dl_table_versions AS v
    JOIN dl_table_heads AS h ON h.table_id = v.table_id
    WHERE v.table_id = :table_id AND v.version = :version AND h.min_readable_version <= :version
      AND ({{same_content}})
) AS asked
LEFT JOIN {{target}} ON 1 = 0
