-- What may be forgotten, and what must stay.

-- name: table_with_properties
SELECT t.table_id, t.name, t.location, t.authority, t.created_at, t.properties, h.current_version, h.published_version,
       h.min_readable_version, h.foreign_version
FROM dl_tables AS t
JOIN dl_table_heads AS h ON h.table_id = t.table_id
WHERE t.name = :name;

-- name: holders  (who still needs a version before this one)
SELECT 'tag' AS kind, tag AS name, version FROM dl_tag_members WHERE table_id = :table_id AND version < :version
UNION ALL
SELECT 'lease' AS kind, holder AS name, version FROM dl_leases
WHERE table_id = :table_id AND version < :version AND expires_at > {{clock}}
ORDER BY 3;

-- name: held_versions
SELECT version FROM dl_tag_members WHERE table_id = :table_id
UNION
SELECT version FROM dl_leases WHERE table_id = :table_id AND expires_at > {{clock}};

-- name: head_floor
UPDATE dl_table_heads SET min_readable_version = :version WHERE table_id = :table_id;

-- name: adds_expire
DELETE FROM dl_add_files WHERE table_id = :table_id AND removed_version <= :version;

-- name: txns_expire
DELETE FROM dl_txn_actions WHERE table_id = :table_id AND superseded_version <= :version;

-- name: domains_expire
DELETE FROM dl_domain_metadata WHERE table_id = :table_id AND superseded_version <= :version;

-- name: metadata_expire  (the one that is in force at the version stays)
DELETE FROM dl_metadata_updates WHERE table_id = :table_id AND version < (
    SELECT max(version) FROM dl_metadata_updates WHERE table_id = :table_id AND version <= :version);

-- name: protocol_expire
DELETE FROM dl_protocol_updates WHERE table_id = :table_id AND version < (
    SELECT max(version) FROM dl_protocol_updates WHERE table_id = :table_id AND version <= :version);

-- name: versions_expire
DELETE FROM dl_table_versions WHERE table_id = :table_id AND version < :version;

-- name: actions_expire
DELETE FROM {{target}} WHERE table_id = :table_id AND version < :version;

-- name: removes_expire
DELETE FROM {{target}} WHERE table_id = :table_id AND version < :version
  AND (deletion_timestamp IS NULL OR deletion_timestamp < :since);

-- name: files_needed  (live, or removed a short while ago, or removed by a version that the log does not have yet)
SELECT a.path, a.deletion_vector FROM dl_add_files AS a
WHERE a.table_id = :table_id AND (a.removed_version IS NULL OR a.removed_version > :published_version)
UNION ALL
SELECT r.path, r.deletion_vector FROM dl_remove_files AS r
WHERE r.table_id = :table_id AND r.deletion_timestamp >= :since;

-- name: files_held
SELECT path, deletion_vector FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version);

-- name: files_added_since
SELECT path, deletion_vector FROM dl_add_files WHERE table_id = :table_id AND version > :version;

-- name: files_elsewhere  (what another table names by absolute paths, as shallow clones do)
SELECT path, deletion_vector FROM dl_add_files
WHERE table_id = :table_id AND version > :version
  AND (path LIKE '/%' OR path LIKE '%:/%' OR deletion_vector LIKE '%"p"%');

-- name: properties_said  (in all versions that can still be read)
SELECT DISTINCT table_properties FROM dl_metadata_updates WHERE table_id = :table_id;
