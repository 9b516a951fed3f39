-- Takes the tables and their history away; the _delta_log of each stays as it is.
DROP TABLE dl_table_versions;
DROP TABLE dl_table_heads;
DROP TABLE dl_tables;
