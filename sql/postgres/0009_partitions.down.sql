-- Takes the index away; a predicate on partition columns looks at all live files.
DROP INDEX dl_add_files_by_partition;
