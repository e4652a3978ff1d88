import { planned } from '@annals/kits/postgres/statement.js'

/** Queries of PostgreSQL's own state. Nothing here names tenant data. */

export const PING = planned('doctor_ping', 'SELECT 1 AS one')

export const READ_CLOCK = planned(
  'doctor_clock',
  'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms',
)

/** Row: version, null if no migration has run. Fails if there is no such table. */
export const READ_SCHEMA_VERSION = planned(
  'doctor_schema_version',
  'SELECT max(m.version) AS version FROM schema_migrations m',
)

export const READ_SETTINGS = planned(
  'doctor_settings',
  'SELECT name, setting FROM pg_settings WHERE name = ANY ($1::text[])',
)

export const READ_SERVER = planned(
  'doctor_server',
  `
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS major,
  current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS in_recovery,
  current_setting('transaction_read_only') AS read_only, current_schema() AS schema,
  has_schema_privilege(current_schema(), 'CREATE') AS can_create`,
)

/** Rows: name, valid. Indexes and constraints of the tables in the current schema. */
export const LIST_OBJECTS = planned(
  'doctor_objects',
  `
SELECT c.relname AS name, i.indisvalid AND i.indisready AS valid
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = current_schema()::regnamespace
UNION
SELECT k.conname, k.convalidated FROM pg_constraint k
WHERE k.connamespace = current_schema()::regnamespace AND k.contype IN ('f', 'c')`,
)

/** Row: limit, reserved (for superusers), user_limit and database_limit (-1: none), in_use by anybody, by us. */
export const READ_CONNECTIONS = planned(
  'doctor_connections',
  `
SELECT current_setting('max_connections')::int AS "limit",
  current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0)
    AS reserved,
  (SELECT r.rolconnlimit FROM pg_roles r WHERE r.rolname = current_user) AS user_limit,
  (SELECT d.datconnlimit FROM pg_database d WHERE d.datname = current_database()) AS database_limit,
  (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()) AS in_use`,
)

/** Rows: what (transaction, prepared, slot), name, age_s, detail. Parameters: $1 age in seconds. */
export const LIST_HOLDERS = planned(
  'doctor_holders',
  `
SELECT 'transaction' AS what, a.pid::text AS name, floor(extract(epoch FROM now() - a.xact_start)) AS age_s,
  coalesce(nullif(a.application_name, ''), 'unnamed') || ', ' || coalesce(a.state, 'unknown') AS detail
FROM pg_stat_activity a
WHERE a.xact_start < now() - make_interval(secs => $1) AND a.datname = current_database() AND a.pid <> pg_backend_pid()
  AND a.backend_type = 'client backend'
UNION ALL
SELECT 'prepared', p.gid, floor(extract(epoch FROM now() - p.prepared)), p.owner
FROM pg_prepared_xacts p WHERE p.prepared < now() - make_interval(secs => $1) AND p.database = current_database()
UNION ALL
SELECT 'slot', s.slot_name, NULL, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn))
FROM pg_replication_slots s WHERE NOT s.active AND NOT pg_is_in_recovery() AND s.restart_lsn IS NOT NULL`,
)

/** Row: xid_age of the database; tables (names) whose autovacuum is switched off. */
export const READ_VACUUM = planned(
  'doctor_vacuum',
  `
SELECT (SELECT age(d.datfrozenxid) FROM pg_database d WHERE d.datname = current_database()) AS xid_age,
  (SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_class c
   WHERE c.relnamespace = current_schema()::regnamespace AND c.reloptions && ARRAY['autovacuum_enabled=false', 'autovacuum_enabled=off'])
    AS off_tables`,
)
