-- The log rows as the definition of a snapshot: spans must say the same at every version.
--
-- The newest action of each file wins; within one version the last, as Delta reads a commit file.
-- vw_active_files answers for the head. For an older version V put "WHERE version <= V" into the window's input, as the
-- query replay_at_version in sql/queries/ does: a view takes no argument.
CREATE VIEW vw_latest_action_per_path AS
SELECT table_id, file_key, path, dv_id, path_bucket, version, seq, is_add
FROM (
    SELECT actions.*,
           row_number() OVER (PARTITION BY table_id, file_key ORDER BY version DESC, seq DESC, is_add DESC) AS rank
    FROM (
        SELECT table_id, file_key, path, dv_id, path_bucket, version, seq, TRUE AS is_add FROM dl_add_files
        UNION ALL
        SELECT table_id, file_key, path, dv_id, path_bucket, version, seq, FALSE AS is_add FROM dl_remove_files
    ) AS actions
) AS ranked
WHERE rank = 1;

CREATE VIEW vw_active_files AS
SELECT files.*
FROM vw_latest_action_per_path AS latest
JOIN dl_add_files AS files
  ON files.table_id = latest.table_id AND files.version = latest.version AND files.seq = latest.seq
WHERE latest.is_add;
