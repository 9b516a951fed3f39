-- Tags: a name for one version of each of many tables.

-- name: tags_all
SELECT name, created_at, created_by, remark FROM dl_tags ORDER BY created_at DESC, name;

-- name: tag_members
SELECT m.tag, t.name, m.version FROM dl_tag_members AS m JOIN dl_tables AS t ON t.table_id = m.table_id
ORDER BY m.tag, t.name;

-- name: tag_insert
INSERT INTO dl_tags (name, created_at, created_by, remark) VALUES (:tag, {{clock}}, :created_by, :remark);

-- name: tag_heads  (one statement sees the heads of all tables as of one moment)
INSERT INTO dl_tag_members (tag, table_id, version)
SELECT :tag, table_id, current_version FROM dl_table_heads WHERE table_id IN ({{ids}});

-- name: tag_members_delete
DELETE FROM dl_tag_members WHERE tag = :tag;

-- name: tag_delete
DELETE FROM dl_tags WHERE name = :tag;

-- name: validation_run_insert
INSERT INTO dl_validation_runs
    (run_id, table_id, version, group_id, suite, started_at, finished_at, success, findings)
VALUES
    (:run_id, :table_id, :version, :group_id, :suite, :started_at, :finished_at, :success, :findings);

-- name: validation_runs
SELECT run_id, version, group_id, suite, started_at, finished_at, success, findings FROM dl_validation_runs
WHERE table_id = :table_id
ORDER BY started_at DESC, suite;

-- name: tagged_versions  (what tags name of a table; without a kind, a version that is not there)
SELECT m.tag, m.version, v.kind, v.content_sha256, v.committed_at
FROM dl_tag_members AS m
LEFT JOIN dl_table_versions AS v ON v.table_id = m.table_id AND v.version = m.version
WHERE m.table_id = :table_id
ORDER BY m.version, m.tag;
