-- Do the catalog's rows contradict each other?

-- name: versions_known  (without what is long: there may be very many)
SELECT version, committed_at, kind, txn_id, content_sha256 FROM dl_table_versions
WHERE table_id = :table_id AND version BETWEEN :first AND :last
ORDER BY version;

-- name: spans_differ  (adds whose span does not end where the next action on their file stands)
SELECT version, seq, path, removed_version, ends_at FROM (
    SELECT version, seq, path, is_add,
           CASE WHEN removed_version <= :version THEN removed_version END AS removed_version,
           lead(version) OVER (PARTITION BY file_key ORDER BY version, seq, is_add) AS ends_at
    FROM (
        SELECT file_key, version, seq, path, removed_version, TRUE AS is_add FROM dl_add_files
        WHERE table_id = :table_id AND version <= :version
        UNION ALL
        SELECT file_key, version, seq, path, CAST(NULL AS bigint) AS removed_version, FALSE AS is_add
        FROM dl_remove_files
        WHERE table_id = :table_id AND version <= :version
    ) AS actions
) AS followed
WHERE is_add AND ((removed_version IS NULL) <> (ends_at IS NULL) OR removed_version <> ends_at)
ORDER BY version, seq;

-- name: registered_differ  (the same for domains and application transactions)
SELECT version, seq, kind, name, superseded_version, ends_at FROM (
    SELECT version, seq, kind, name,
           CASE WHEN superseded_version <= :version THEN superseded_version END AS superseded_version,
           lead(version) OVER (PARTITION BY kind, own_key ORDER BY version, seq) AS ends_at
    FROM (
        SELECT app_key AS own_key, version, seq, app_id AS name, superseded_version, 'application' AS kind
        FROM dl_txn_actions
        WHERE table_id = :table_id AND version <= :version
        UNION ALL
        SELECT domain_key AS own_key, version, seq, domain AS name, superseded_version, 'domain' AS kind
        FROM dl_domain_metadata
        WHERE table_id = :table_id AND version <= :version
    ) AS actions
) AS followed
WHERE (superseded_version IS NULL) <> (ends_at IS NULL) OR superseded_version <> ends_at
ORDER BY version, seq;

-- name: files_named  (every file that any version names)
SELECT path, deletion_vector FROM dl_add_files WHERE table_id = :table_id
UNION ALL
SELECT path, deletion_vector FROM dl_remove_files WHERE table_id = :table_id
UNION ALL
SELECT path, CAST(NULL AS {{text}}) AS deletion_vector FROM dl_cdc_files WHERE table_id = :table_id;

-- name: jdbc_actions  (for Spark: the actions of one kind)
SELECT {{columns}} FROM {{target}}
WHERE table_id = :table_id AND version BETWEEN :first AND :last
  AND ({{condition}});
