-- Takes tags, leases, publishing status and check results away; tables and their history stay.
DROP TABLE dl_validation_runs;
DROP TABLE dl_tag_members;
DROP TABLE dl_tags;
DROP TABLE dl_leases;
DROP TABLE dl_mirror_status;
