-- Three roles for a shared catalog, to be run by its owner after `mainstem migrate`, in the catalog's schema:
--   psql -v ON_ERROR_STOP=1 -c 'SET search_path TO lake' -f sql/postgres/roles.sql
-- Then: GRANT mainstem_writer TO etl; GRANT mainstem_reader TO analyst; and so on. Running it again changes nothing.
--   owner   migrates: all that the schema allows
--   writer  commits, publishes, validates: rows, no DDL, no change of the ledger
--   reader  reads; writes nothing but its own leases, which hold retention back while it reads
DO $$
DECLARE
    home text := current_schema();
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['mainstem_owner', 'mainstem_writer', 'mainstem_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I', home, role);
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', home, role);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', home, role);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT SELECT ON TABLES TO %I', home, role);
    END LOOP;
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO mainstem_owner', home);
    EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO mainstem_owner', home);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO mainstem_writer', home);
    EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT INSERT, UPDATE, DELETE ON TABLES TO mainstem_writer', home);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %I.dl_migrations FROM mainstem_writer', home);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %I.dl_leases TO mainstem_reader', home);
END
$$;
