-- Tables and their heads.

-- name: tables_all
SELECT t.table_id, t.name, t.location, t.authority, t.created_at,
       h.current_version, h.published_version, h.min_readable_version, h.foreign_version
FROM dl_tables AS t
JOIN dl_table_heads AS h ON h.table_id = t.table_id
ORDER BY t.name;

-- name: table_by_name
SELECT t.table_id, t.name, t.location, t.authority, t.created_at,
       h.current_version, h.published_version, h.min_readable_version, h.foreign_version
FROM dl_tables AS t
JOIN dl_table_heads AS h ON h.table_id = t.table_id
WHERE t.name = :name;
