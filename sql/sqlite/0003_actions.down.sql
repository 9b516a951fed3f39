-- Takes every action away; what was published stays in _delta_log.
DROP TABLE dl_other_actions;
DROP TABLE dl_cdc_files;
DROP TABLE dl_domain_metadata;
DROP TABLE dl_txn_actions;
DROP TABLE dl_protocol_updates;
DROP TABLE dl_metadata_updates;
DROP TABLE dl_remove_files;
DROP TABLE dl_add_files;
