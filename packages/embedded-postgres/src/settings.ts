import type { DataDirectory } from './data_directory.js'
import { LOOPBACK } from './tcp.js'

const CONNECTIONS_MAX = 240

/** Connections of the embedded server that we can use: by default it reserves three for emergencies. */
export const EMBEDDED_CONNECTIONS_MAX = CONNECTIONS_MAX - 3

/**
 * The settings of the embedded server, as `postgresql.conf`. Rewritten at each start, so that an upgrade can change
 * them. What an operator sets with ALTER SYSTEM is in another file, takes precedence, and stays.
 *
 * Sized for a small machine, for a first try or a few agents: about 20 MB idle, few processes, quick to start.
 */
export const SETTINGS = `# Written at each start: changes are lost. Use ALTER SYSTEM for settings of your own.

# An acknowledged append is durable. That depends on these three.
fsync = on
synchronous_commit = on
full_page_writes = on

shared_buffers = 128MB
work_mem = 8MB
max_connections = ${CONNECTIONS_MAX}
max_wal_size = 2GB
# Statements are short, so compiling them costs more than it saves, and parallel workers exchange
# data through /dev/shm, of which containers have 64 MB.
jit = off
max_parallel_workers_per_gather = 0
max_parallel_maintenance_workers = 0
random_page_cost = 1.1

# No processes that are not needed here.
io_method = sync
max_logical_replication_workers = 0

# The log is for its operator: what the server does, not what the users' statements contain.
log_line_prefix = '%m [%p] '
log_min_error_statement = panic
log_checkpoints = off
log_startup_progress_interval = 5s

timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
lc_monetary = 'C'
lc_numeric = 'C'
lc_time = 'C'
`

/**
 * Options on the server's command line, where ALTER SYSTEM cannot change them: no TCP, and one socket in PGDATA, the
 * working directory, which only the account that runs it can enter. The last one means nothing to PostgreSQL: it
 * tells readers of a process list, and us, whose server this is.
 *
 * With a port, no socket; and no spaces, because pg_ctl passes them through a shell. `wal_sync_method`: the default on
 * Windows leaves what was written in the disk's cache, which a power cut empties.
 */
export function serverOptions(directory: DataDirectory, port?: number): string[] {
  const onSocket = {
    listen_addresses: '',
    port: `${SOCKET_PORT}`,
    unix_socket_directories: '.',
    unix_socket_permissions: '0700',
    [ownerOption(directory.name)]: directory.path,
  }
  const onPort = {
    listen_addresses: LOOPBACK,
    port: `${port}`,
    unix_socket_directories: '',
    wal_sync_method: 'fsync',
  }
  const options = port === undefined ? onSocket : onPort
  return Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** The custom setting that names the data directory on the server's command line. */
export function ownerOption(name: string): string {
  return `${name}.data_directory`
}

/** Not a TCP port: the number in the socket's file name. */
export const SOCKET_PORT = 5432

export const SOCKET_NAME = `.s.PGSQL.${SOCKET_PORT}`
