-- Spans that are not what the log's rows say, found and put right.
-- An add ends with the next action of its file, also of its own version; one that has none is open.

-- name: add_keys_wrong  (files of which a span is wrong)
SELECT DISTINCT file_key FROM (
    SELECT file_key, is_add, removed_version,
           lead(version) OVER (PARTITION BY file_key ORDER BY version, seq, is_add) AS ended
    FROM (
        SELECT file_key, version, seq, 1 AS is_add, removed_version FROM dl_add_files WHERE table_id = :table_id
        UNION ALL
        SELECT file_key, version, seq, 0 AS is_add, CAST(NULL AS bigint) AS removed_version FROM dl_remove_files
        WHERE table_id = :table_id
    ) AS actions
) AS spans
WHERE is_add = 1 AND coalesce(removed_version, -1) <> coalesce(ended, -1);

-- name: add_spans_wrong  (of these files, what each span is and what it should be)
SELECT a.version, a.seq, a.path AS named, a.removed_version AS was, spans.ended
FROM (
    SELECT version, seq, is_add, lead(version) OVER (PARTITION BY file_key ORDER BY version, seq, is_add) AS ended
    FROM (
        SELECT file_key, version, seq, 1 AS is_add FROM dl_add_files
        WHERE table_id = :table_id AND file_key IN ({{keys}})
        UNION ALL
        SELECT file_key, version, seq, 0 AS is_add FROM dl_remove_files
        WHERE table_id = :table_id AND file_key IN ({{keys}})
    ) AS actions
) AS spans
JOIN dl_add_files AS a ON a.table_id = :table_id AND a.version = spans.version AND a.seq = spans.seq
WHERE spans.is_add = 1 AND coalesce(a.removed_version, -1) <> coalesce(spans.ended, -1)
ORDER BY a.version, a.seq;

-- name: add_spans_right
UPDATE dl_add_files SET removed_version = spans.ended FROM (
    SELECT version, seq, is_add, lead(version) OVER (PARTITION BY file_key ORDER BY version, seq, is_add) AS ended
    FROM (
        SELECT file_key, version, seq, 1 AS is_add FROM dl_add_files
        WHERE table_id = :table_id AND file_key IN ({{keys}})
        UNION ALL
        SELECT file_key, version, seq, 0 AS is_add FROM dl_remove_files
        WHERE table_id = :table_id AND file_key IN ({{keys}})
    ) AS actions
) AS spans
WHERE dl_add_files.table_id = :table_id AND dl_add_files.version = spans.version AND dl_add_files.seq = spans.seq
  AND spans.is_add = 1 AND coalesce(dl_add_files.removed_version, -1) <> coalesce(spans.ended, -1);

-- name: keyed_spans_wrong  (applications and domains; a checkpoint that bridged a clean-up may end one without an action)
SELECT k.version, k.seq, k.{{named}} AS named, k.superseded_version AS was, spans.ended
FROM (
    SELECT version, seq, lead(version) OVER (PARTITION BY {{key}} ORDER BY version, seq) AS ended
    FROM {{target}} WHERE table_id = :table_id
) AS spans
JOIN {{target}} AS k ON k.table_id = :table_id AND k.version = spans.version AND k.seq = spans.seq
WHERE coalesce(k.superseded_version, -1) <> coalesce(spans.ended, -1)
  AND NOT EXISTS (
    SELECT 1 FROM dl_table_versions AS v
    WHERE v.table_id = :table_id AND v.version = k.superseded_version AND v.kind = 'checkpoint'
      AND v.version > k.version AND (spans.ended IS NULL OR v.version < spans.ended))
ORDER BY k.version, k.seq;

-- name: keyed_span_right
UPDATE {{target}} SET superseded_version = :ended WHERE table_id = :table_id AND version = :version AND seq = :seq;

-- name: image_versions  (those that a reader may take)
SELECT DISTINCT i.version FROM dl_snapshot_images AS i
JOIN dl_table_heads AS h ON h.table_id = i.table_id
WHERE i.table_id = :table_id AND i.version >= h.min_readable_version
ORDER BY i.version;

-- name: version_sha256  (of a commit file that was written anew, in another spelling)
UPDATE dl_table_versions SET content_sha256 = :content_sha256 WHERE table_id = :table_id AND version = :version;
