-- Ratifying commits. The heads are locked first; what is decided on is read after that, by statements of their own:
-- in one statement with the lock, Postgres would show the other tables as they were before it waited.

-- name: table_to_change  (a table with its latest metadata and protocol, for a proposal)
SELECT t.table_id, t.name, t.location, t.authority, h.current_version, h.published_version, h.min_readable_version,
       h.foreign_version, v.committed_at, v.txn_id, v.content_sha256,
       m.seq AS m_seq, m.metadata_id AS m_metadata_id, m.name AS m_name, m.description AS m_description,
       m.format AS m_format, m.schema_json AS m_schema_json, m.partition_columns AS m_partition_columns,
       m.table_properties AS m_table_properties, m.created_time AS m_created_time, m.extra AS m_extra,
       p.seq AS p_seq, p.min_reader_version AS p_min_reader_version, p.min_writer_version AS p_min_writer_version,
       p.reader_features AS p_reader_features, p.writer_features AS p_writer_features, p.extra AS p_extra
FROM dl_tables AS t
JOIN dl_table_heads AS h ON h.table_id = t.table_id
LEFT JOIN dl_table_versions AS v ON v.table_id = t.table_id AND v.version = h.current_version
JOIN dl_metadata_updates AS m ON m.table_id = t.table_id AND m.version = (
    SELECT max(version) FROM dl_metadata_updates WHERE table_id = t.table_id AND version <= h.current_version)
JOIN dl_protocol_updates AS p ON p.table_id = t.table_id AND p.version = (
    SELECT max(version) FROM dl_protocol_updates WHERE table_id = t.table_id AND version <= h.current_version)
WHERE t.name = :name;

-- name: heads_lock  (in one order for everybody: two commits over the same tables never wait for each other in a circle)
SELECT table_id FROM dl_table_heads WHERE table_id IN ({{ids}}) ORDER BY table_id {{lock_rows}};

-- name: heads_now  (and whether a commit of this token is there already)
SELECT h.table_id, h.current_version, h.published_version, h.min_readable_version, h.foreign_version, t.name, t.authority,
       v.committed_at, v.txn_id, v.content_sha256, d.version AS repeated_version, {{clock}} AS clock
FROM dl_table_heads AS h
JOIN dl_tables AS t ON t.table_id = h.table_id
JOIN dl_table_versions AS v ON v.table_id = h.table_id AND v.version = h.current_version
LEFT JOIN dl_table_versions AS d ON d.table_id = h.table_id AND d.txn_id = :txn_id
WHERE h.table_id IN ({{ids}});

-- name: versions_of_tokens  (each commit of a transaction has one of its own)
SELECT version, committed_at, txn_id, group_id FROM dl_table_versions
WHERE table_id = :table_id AND txn_id IN ({{tokens}})
ORDER BY version;

-- name: clock_now
SELECT {{clock}} AS clock;

-- name: head_ratify  (compare and swap: no row, if the head is not where the lock left it)
UPDATE dl_table_heads SET current_version = :to_version
WHERE table_id = :table_id AND current_version = :from_version;

-- name: versions_between
SELECT version, committed_at, kind, committer, operation, commit_info, txn_id, group_id, content_sha256
FROM dl_table_versions
WHERE table_id = :table_id AND version BETWEEN :first AND :last
ORDER BY version;

-- name: kinds_between  (of which kinds of actions there are any, so that nobody asks for the others; and what they follow)
SELECT
    EXISTS (SELECT 1 FROM dl_add_files WHERE table_id = :table_id AND version BETWEEN :first AND :last) AS dl_add_files,
    EXISTS (SELECT 1 FROM dl_remove_files WHERE table_id = :table_id AND version BETWEEN :first AND :last)
        AS dl_remove_files,
    EXISTS (SELECT 1 FROM dl_txn_actions WHERE table_id = :table_id AND version BETWEEN :first AND :last)
        AS dl_txn_actions,
    EXISTS (SELECT 1 FROM dl_domain_metadata WHERE table_id = :table_id AND version BETWEEN :first AND :last)
        AS dl_domain_metadata,
    EXISTS (SELECT 1 FROM dl_metadata_updates WHERE table_id = :table_id AND version BETWEEN :first AND :last)
        AS dl_metadata_updates,
    EXISTS (SELECT 1 FROM dl_protocol_updates WHERE table_id = :table_id AND version BETWEEN :first AND :last)
        AS dl_protocol_updates,
    EXISTS (SELECT 1 FROM dl_cdc_files WHERE table_id = :table_id AND version BETWEEN :first AND :last) AS dl_cdc_files,
    EXISTS (SELECT 1 FROM dl_other_actions WHERE table_id = :table_id AND version BETWEEN :first AND :last)
        AS dl_other_actions,
    b.committed_at, b.txn_id, b.content_sha256
FROM (SELECT 1 AS one) AS asked
LEFT JOIN dl_table_versions AS b ON b.table_id = :table_id AND b.version = :first - 1;

-- name: actions_between
SELECT version, {{columns}} FROM {{target}}
WHERE table_id = :table_id AND version BETWEEN :first AND :last
ORDER BY version, seq;

-- name: closed_among  (which of these keys a version has closed)
SELECT file_key FROM dl_add_files WHERE table_id = :table_id AND removed_version = :version AND file_key IN ({{keys}});

-- name: live_among  (which of these files are live)
SELECT path FROM dl_add_files WHERE table_id = :table_id AND file_key IN ({{keys}}) AND removed_version IS NULL;

-- name: marked_beside  (the paths of a version's files that are live from before with a deletion vector)
SELECT path FROM dl_add_files
WHERE table_id = :table_id AND removed_version IS NULL AND dv_id IS NOT NULL AND version < :version
  AND path_bucket IN (SELECT path_bucket FROM dl_add_files WHERE table_id = :table_id AND version = :version)
  AND path IN (SELECT path FROM dl_add_files WHERE table_id = :table_id AND version = :version)
LIMIT :most;

-- name: txn_now  (how far an application has come)
SELECT version, txn_version FROM dl_txn_actions
WHERE table_id = :table_id AND app_key = :app_key AND superseded_version IS NULL;

-- name: domain_at
SELECT configuration, removed FROM dl_domain_metadata
WHERE table_id = :table_id AND domain_key = :domain_key AND version <= :version
  AND (superseded_version IS NULL OR superseded_version > :version);

-- name: table_authority
UPDATE dl_tables SET authority = :authority WHERE table_id = :table_id;

-- name: versions_of_group
SELECT t.name, v.version, v.committed_at FROM dl_table_versions AS v
JOIN dl_tables AS t ON t.table_id = v.table_id
WHERE v.group_id = :group_id;

-- name: versions_forget  (versions that nobody outside has seen, taken back so that they can get other numbers)
DELETE FROM {{target}} WHERE table_id = :table_id AND version > :version;

-- name: adds_reopen
UPDATE dl_add_files SET removed_version = NULL WHERE table_id = :table_id AND removed_version > :version;

-- name: txns_reopen
UPDATE dl_txn_actions SET superseded_version = NULL WHERE table_id = :table_id AND superseded_version > :version;

-- name: domains_reopen
UPDATE dl_domain_metadata SET superseded_version = NULL WHERE table_id = :table_id AND superseded_version > :version;

-- name: tags_beyond
SELECT tag, version FROM dl_tag_members WHERE table_id = :table_id AND version > :version ORDER BY version, tag;

-- name: head_back
UPDATE dl_table_heads SET current_version = :version, published_version = :version, foreign_version = NULL
WHERE table_id = :table_id;
