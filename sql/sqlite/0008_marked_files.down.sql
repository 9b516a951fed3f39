-- Takes the index away; commits look through all live files.
DROP INDEX dl_add_files_marked;
