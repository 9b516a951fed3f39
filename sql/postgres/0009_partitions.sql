-- The files of a partition, by the beginning of their partition values: a whole text may be longer than an index entry.
CREATE INDEX dl_add_files_by_partition ON dl_add_files (table_id, (left(partition_values, 256) COLLATE "C"))
WHERE partition_values <> '{}';
