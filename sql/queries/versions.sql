-- One version's rows: written by imports, by followers, by commits.

-- name: ended_create  (rows that a later version closes, by their place)
CREATE TEMP TABLE dl_ended (version bigint NOT NULL, seq integer NOT NULL, ended bigint NOT NULL);

-- name: ended_drop
DROP TABLE dl_ended;

-- name: ended_adds
UPDATE dl_add_files SET removed_version = dl_ended.ended FROM dl_ended
WHERE dl_add_files.table_id = :table_id
  AND dl_add_files.version = dl_ended.version AND dl_add_files.seq = dl_ended.seq;

-- name: ended_txns
UPDATE dl_txn_actions SET superseded_version = dl_ended.ended FROM dl_ended
WHERE dl_txn_actions.table_id = :table_id
  AND dl_txn_actions.version = dl_ended.version AND dl_txn_actions.seq = dl_ended.seq;

-- name: ended_domains
UPDATE dl_domain_metadata SET superseded_version = dl_ended.ended FROM dl_ended
WHERE dl_domain_metadata.table_id = :table_id
  AND dl_domain_metadata.version = dl_ended.version AND dl_domain_metadata.seq = dl_ended.seq;

-- name: close_adds  (the spans that a new version ends)
UPDATE dl_add_files SET removed_version = :version
WHERE table_id = :table_id AND file_key IN ({{keys}}) AND removed_version IS NULL;

-- name: any_live  (whether there is anything that a version may end)
SELECT 1 AS found FROM dl_add_files WHERE table_id = :table_id AND removed_version IS NULL LIMIT 1;

-- name: close_removed  (the same for many files: of those that the version's own rows of removes name)
-- The plus keeps planners from the index of live files, which they take for a short list where nothing has counted it
-- yet, and walk once for every new file: 5 s for 1,000 adds to 20,000 live files on SQLite, 10 ms by the files' keys.
UPDATE dl_add_files SET removed_version = :version FROM dl_remove_files AS r
WHERE r.table_id = :table_id AND r.version = :version
  AND dl_add_files.table_id = :table_id AND dl_add_files.file_key = r.file_key
  AND +dl_add_files.removed_version IS NULL AND +dl_add_files.version < :version;

-- name: close_added  (and of those that it adds again; with the plus, too)
UPDATE dl_add_files SET removed_version = :version FROM dl_add_files AS n
WHERE n.table_id = :table_id AND n.version = :version
  AND dl_add_files.table_id = :table_id AND dl_add_files.file_key = n.file_key
  AND +dl_add_files.removed_version IS NULL AND +dl_add_files.version < :version;

-- name: close_txns
UPDATE dl_txn_actions SET superseded_version = :version
WHERE table_id = :table_id AND app_key IN ({{keys}}) AND superseded_version IS NULL;

-- name: close_domains
UPDATE dl_domain_metadata SET superseded_version = :version
WHERE table_id = :table_id AND domain_key IN ({{keys}}) AND superseded_version IS NULL;

-- name: head_lock
SELECT current_version, published_version, min_readable_version FROM dl_table_heads
WHERE table_id = :table_id {{lock_rows}};

-- name: head_insert
INSERT INTO dl_table_heads (table_id, current_version, published_version, min_readable_version)
VALUES (:table_id, :current_version, :published_version, :min_readable_version);

-- name: head_advance
UPDATE dl_table_heads SET current_version = :to_version, published_version = :published_version
WHERE table_id = :table_id AND current_version = :from_version;

-- name: head_reset  (an import with --force starts the table anew)
UPDATE dl_table_heads
SET current_version = :current_version, published_version = :published_version,
    min_readable_version = :min_readable_version, foreign_version = NULL
WHERE table_id = :table_id;

-- name: table_insert
INSERT INTO dl_tables
    (table_id, name, location, authority, created_at, protocol_min_reader, protocol_min_writer, properties)
VALUES
    (:table_id, :name, :location, :authority, :created_at, :protocol_min_reader, :protocol_min_writer, :properties);

-- name: table_move  (an import with --force: whoever led before, the log leads now)
UPDATE dl_tables SET location = :location, authority = 'log' WHERE table_id = :table_id;

-- name: table_describe
UPDATE dl_tables
SET protocol_min_reader = :protocol_min_reader, protocol_min_writer = :protocol_min_writer, properties = :properties
WHERE table_id = :table_id;

-- name: table_forget_adds
DELETE FROM dl_add_files WHERE table_id = :table_id;

-- name: table_forget_removes
DELETE FROM dl_remove_files WHERE table_id = :table_id;

-- name: table_forget_txns
DELETE FROM dl_txn_actions WHERE table_id = :table_id;

-- name: table_forget_domains
DELETE FROM dl_domain_metadata WHERE table_id = :table_id;

-- name: table_forget_metadata
DELETE FROM dl_metadata_updates WHERE table_id = :table_id;

-- name: table_forget_protocol
DELETE FROM dl_protocol_updates WHERE table_id = :table_id;

-- name: table_forget_cdc
DELETE FROM dl_cdc_files WHERE table_id = :table_id;

-- name: table_forget_other
DELETE FROM dl_other_actions WHERE table_id = :table_id;

-- name: table_forget_mirror
DELETE FROM dl_mirror_status WHERE table_id = :table_id;

-- name: table_forget_versions
DELETE FROM dl_table_versions WHERE table_id = :table_id;

-- name: live_adds  (what a checkpoint is compared with)
SELECT seq, path, path_bucket, file_key, dv_id, size_bytes, partition_values, stats, data_change, modification_time,
       tags, deletion_vector, base_row_id, default_row_commit_version, clustering_provider, num_records, extra
FROM dl_add_files
WHERE table_id = :table_id AND removed_version IS NULL;

-- name: live_domains
SELECT seq, domain, domain_key, configuration, removed, extra FROM dl_domain_metadata
WHERE table_id = :table_id AND superseded_version IS NULL;

-- name: live_txns
SELECT seq, app_id, app_key, txn_version, last_updated, extra FROM dl_txn_actions
WHERE table_id = :table_id AND superseded_version IS NULL;

-- name: removed_keys
SELECT DISTINCT file_key FROM dl_remove_files WHERE table_id = :table_id;

-- name: removed_by_another_spelling
SELECT a.path FROM dl_add_files AS a
JOIN dl_remove_files AS r ON r.table_id = a.table_id AND r.version = a.removed_version AND r.file_key = a.file_key
WHERE a.table_id = :table_id AND a.path <> r.path;

-- name: live_paths
SELECT path FROM dl_add_files WHERE table_id = :table_id AND removed_version IS NULL;
