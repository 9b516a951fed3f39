-- Who reads or stages what, until when: expiry and vacuum keep their hands off it.

-- name: lease_insert
INSERT INTO dl_leases (lease_id, table_id, version, purpose, holder, created_at, expires_at)
VALUES (:lease_id, :table_id, :version, :purpose, :holder, :created_at, :expires_at);

-- name: lease_drop
DELETE FROM dl_leases WHERE lease_id = :lease_id;

-- name: leases_over  (of those whose holders did not come back for them)
DELETE FROM dl_leases WHERE table_id = :table_id AND expires_at <= :now;

-- name: staging_since  (when the oldest transaction began that may still write files of the table)
SELECT min(created_at) AS moment FROM dl_leases
WHERE table_id = :table_id AND purpose = 'stage' AND expires_at > {{clock}};
