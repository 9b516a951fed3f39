-- The rows of a checkpoint: what a table is at one version, and what it was until recently.

-- name: state_files_at_head  (nothing, unless the version is still the head when this statement runs)
SELECT {{columns}} FROM dl_add_files
WHERE table_id = :table_id AND removed_version IS NULL
  AND (SELECT current_version FROM dl_table_heads WHERE table_id = :table_id) = :version
  AND ({{condition}})
LIMIT :most;

-- name: state_files
SELECT {{columns}} FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version)
  AND ({{condition}})
LIMIT :most;

-- name: state_files_page  (the next page starts after the last row of this one)
SELECT {{columns}} FROM dl_add_files
WHERE table_id = :table_id AND version <= :version AND (removed_version IS NULL OR removed_version > :version)
  AND (version, seq) > (:after_version, :after_seq)
  AND ({{condition}})
ORDER BY version, seq
LIMIT :most;

-- name: state_tombstones_page  (the last remove of each file that is not live, if its data may still be read)
SELECT {{columns}} FROM dl_remove_files AS gone
WHERE gone.table_id = :table_id AND gone.version <= :version AND gone.deletion_timestamp > :since
  AND (gone.version, gone.seq) > (:after_version, :after_seq)
  AND NOT EXISTS (
    SELECT 1 FROM dl_add_files AS live
    WHERE live.table_id = gone.table_id AND live.file_key = gone.file_key AND live.version <= :version
      AND (live.removed_version IS NULL OR live.removed_version > :version))
  AND NOT EXISTS (
    SELECT 1 FROM dl_remove_files AS later
    WHERE later.table_id = gone.table_id AND later.file_key = gone.file_key
      AND later.version > gone.version AND later.version <= :version)
ORDER BY version, seq
LIMIT :most;

-- name: jdbc_tombstones  (the same for Spark, in slices; with the column that it reads in slices by)
{{refusal}}
UNION ALL
SELECT {{columns}}, path_bucket FROM dl_remove_files AS gone
WHERE gone.table_id = :table_id AND gone.version <= :version AND gone.deletion_timestamp > :since
  AND NOT EXISTS (
    SELECT 1 FROM dl_add_files AS live
    WHERE live.table_id = gone.table_id AND live.file_key = gone.file_key AND live.version <= :version
      AND (live.removed_version IS NULL OR live.removed_version > :version))
  AND NOT EXISTS (
    SELECT 1 FROM dl_remove_files AS later
    WHERE later.table_id = gone.table_id AND later.file_key = gone.file_key
      AND later.version > gone.version AND later.version <= :version);

-- name: state_tombstones_count_to  (how many removes are young enough, counting no further than the limit)
SELECT count(*) AS removes FROM (
    SELECT 1 AS one FROM dl_remove_files
    WHERE table_id = :table_id AND version <= :version AND deletion_timestamp > :since
    LIMIT :most
) AS counted;

-- name: table_properties
SELECT properties FROM dl_tables WHERE name = :name;

-- name: kept_versions  (the oldest version that a tag names, or that somebody still reads or stages on)
SELECT min(version) AS version FROM (
    SELECT version FROM dl_tag_members WHERE table_id = :table_id
    UNION ALL
    SELECT version FROM dl_leases WHERE table_id = :table_id AND expires_at > :now
) AS kept;

-- name: version_not_after  (the newest version that was committed not later than a moment)
SELECT max(version) AS version FROM dl_table_versions
WHERE table_id = :table_id AND version <= :published AND committed_at <= :moment;
