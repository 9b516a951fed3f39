DROP VIEW vw_null_rates;
DROP VIEW vw_growth_by_day;
DROP VIEW vw_size_by_version;
DROP VIEW vw_file_history;
DROP VIEW vw_operations;
