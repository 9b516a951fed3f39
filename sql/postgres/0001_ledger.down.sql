-- The last step down: nothing of the catalog remains.
DROP TABLE dl_migrations;
