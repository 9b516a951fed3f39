-- What is published, what is not yet, and why.

-- name: mirror_begin  (a publisher takes versions on; another one may do the same at the same time without harm)
UPDATE dl_mirror_status
SET status = 'IN_FLIGHT', attempts = attempts + 1, updated_at = {{clock}}
WHERE table_id = :table_id AND version BETWEEN :first AND :last AND status <> 'COMPLETE';

-- name: mirror_failed
UPDATE dl_mirror_status
SET status = 'FAILED', last_error = :last_error, updated_at = {{clock}}
WHERE table_id = :table_id AND version = :version AND status <> 'COMPLETE';

-- name: mirror_put_back  (versions that a publisher took on and did not come to, because one before them failed)
UPDATE dl_mirror_status
SET status = 'PENDING', updated_at = {{clock}}
WHERE table_id = :table_id AND version BETWEEN :first AND :last AND status = 'IN_FLIGHT';

-- name: mirror_complete
UPDATE dl_mirror_status
SET status = 'COMPLETE', last_error = NULL, updated_at = {{clock}}
WHERE table_id = :table_id AND version BETWEEN :first AND :last AND status <> 'COMPLETE';

-- name: head_published  (only ever forward; an outside commit that stood there is gone again)
UPDATE dl_table_heads
SET published_version = :version, foreign_version = CASE WHEN foreign_version > :version THEN foreign_version END
WHERE table_id = :table_id AND published_version < :version;

-- name: head_foreign  (no row, if that version was published or resolved meanwhile)
UPDATE dl_table_heads SET foreign_version = :version WHERE table_id = :table_id AND published_version < :version;

-- name: mirror_open  (tables that have something to publish, the oldest first, and how long it has waited)
SELECT t.name, t.table_id, h.current_version, h.published_version, h.foreign_version,
       v.committed_at AS oldest, coalesce(s.status, 'PENDING') AS status, coalesce(s.attempts, 0) AS attempts,
       coalesce(s.updated_at, v.committed_at) AS updated_at, s.last_error, {{clock}} AS clock
FROM dl_table_heads AS h
JOIN dl_tables AS t ON t.table_id = h.table_id
JOIN dl_table_versions AS v ON v.table_id = h.table_id AND v.version = (
    SELECT min(version) FROM dl_table_versions WHERE table_id = h.table_id AND version > h.published_version)
LEFT JOIN dl_mirror_status AS s ON s.table_id = v.table_id AND s.version = v.version
WHERE h.current_version > h.published_version
ORDER BY v.committed_at;

-- name: mirror_rows
SELECT version, status, attempts, last_error, created_at, updated_at FROM dl_mirror_status
WHERE table_id = :table_id AND version BETWEEN :first AND :last
ORDER BY version;

-- name: files_by_version  (how much there is to read for each; a version without files is not named)
SELECT version, count(*) AS files FROM (
    SELECT version FROM dl_add_files WHERE table_id = :table_id AND version BETWEEN :first AND :last
    UNION ALL
    SELECT version FROM dl_remove_files WHERE table_id = :table_id AND version BETWEEN :first AND :last
    UNION ALL
    SELECT version FROM dl_cdc_files WHERE table_id = :table_id AND version BETWEEN :first AND :last) AS found
GROUP BY version
ORDER BY version;
