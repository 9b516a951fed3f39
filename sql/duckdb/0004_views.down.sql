-- Views hold no data: nothing is lost.
DROP VIEW vw_active_files;
DROP VIEW vw_latest_action_per_path;
