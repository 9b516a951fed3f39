-- The live files that have a deletion vector, by the slice of their path: a commit asks whether a path that it adds is live
-- with another one. Most tables have none or few of them, so that most rows are in no other index than before.
CREATE INDEX dl_add_files_marked ON dl_add_files (table_id, path_bucket) WHERE removed_version IS NULL AND dv_id IS NOT NULL;
