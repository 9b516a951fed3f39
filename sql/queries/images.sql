-- Images of snapshots: their live files as columns, kept beside the rows that define them.

-- name: image_before  (the newest one that serves a version: what an older one lacks may have expired)
SELECT max(version) AS version FROM dl_snapshot_images
WHERE table_id = :table_id AND version <= :version AND version >= (
    SELECT min_readable_version FROM dl_table_heads WHERE table_id = :table_id
);

-- name: image_at  (all of it or, once it was renewed, nothing; without an order, which would move all bytes once more)
SELECT chunk, content FROM dl_snapshot_images WHERE table_id = :table_id AND version = :version;

-- name: image_newest
SELECT version, files FROM dl_snapshot_images
WHERE table_id = :table_id AND chunk = 0 AND version >= (
    SELECT min_readable_version FROM dl_table_heads WHERE table_id = :table_id
)
ORDER BY version DESC
LIMIT 1;

-- name: image_insert
INSERT INTO dl_snapshot_images (table_id, version, chunk, files, content)
VALUES (:table_id, :version, :chunk, :files, :content);

-- name: images_older
DELETE FROM dl_snapshot_images WHERE table_id = :table_id AND version < :version;

-- name: table_forget_images
DELETE FROM dl_snapshot_images WHERE table_id = :table_id;

-- name: actions_since  (how much has changed since a version)
SELECT (SELECT count(*) FROM dl_add_files WHERE table_id = :table_id AND version > :since AND version <= :version)
     + (SELECT count(*) FROM dl_remove_files WHERE table_id = :table_id AND version > :since AND version <= :version)
    AS actions;
