-- The ledger of migrations.

-- name: migrations_seen
SELECT number, name, sha256 FROM dl_migrations ORDER BY number;

-- name: migration_record
INSERT INTO dl_migrations (number, name, sha256, applied_at, applied_by)
VALUES (:number, :name, :sha256, :applied_at, :applied_by);

-- name: migration_forget
DELETE FROM dl_migrations WHERE number = :number;
