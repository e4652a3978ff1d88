import { OUTGOING_SETTINGS } from './outgoing_settings.js'
import { RATE_SETTINGS } from './rate_settings.js'
import { type Setting, SWITCH } from './setting.js'

/**
 * Every setting of the service, defined once: its variable, meaning, default and limits. The Config that is passed
 * around, the help of `annals serve` and the table in the README are derived from here.
 */
export const SETTINGS = {
  host: { variable: 'HOST', meaning: 'address to listen on', default: '127.0.0.1' },
  port: {
    variable: 'PORT',
    meaning: 'port to listen on; 0 takes a free one',
    default: 8029,
    min: 0,
    max: 65_535,
  },
  database_url: {
    variable: 'DATABASE_URL',
    meaning: 'a PostgreSQL server (15 or newer) or a Citus coordinator; unset: the embedded PostgreSQL',
    default: undefined,
    pattern: /^postgres(ql)?:\/\//,
    takes: 'a URL that begins with postgresql://',
  },
  database_direct_url: {
    variable: 'DATABASE_DIRECT_URL',
    meaning: 'the same database without the pooler, for LISTEN, if DATABASE_URL points at PgBouncer',
    default: undefined,
    pattern: /^postgres(ql)?:\/\//,
    takes: 'a URL that begins with postgresql://',
  },
  data_dir: {
    variable: 'ANNALS_DATA_DIR',
    meaning: 'where the embedded PostgreSQL keeps its data',
    default: '.annals',
  },
  api_key: {
    variable: 'ANNALS_API_KEY',
    meaning: 'the API key of the project "default"; unset: the first start creates one and prints it once',
    default: undefined,
    pattern: /^[\x21-\x7e]{32,256}$/,
    takes: '32 to 256 visible ASCII characters',
  },
  admin_token: {
    variable: 'ANNALS_ADMIN_TOKEN',
    meaning: 'if set, enables /admin/v1 with this token',
    default: undefined,
    pattern: /^[\x21-\x7e]{32,256}$/,
    takes: '32 to 256 visible ASCII characters',
  },
  log_level: {
    variable: 'LOG_LEVEL',
    meaning: 'fatal, error, warn, info, debug, trace or silent; unset on a terminal: warn',
    default: 'info',
    pattern: /^(fatal|error|warn|info|debug|trace|silent)$/,
    takes: 'one of fatal, error, warn, info, debug, trace, silent',
  },
  behind_tls: {
    variable: 'ANNALS_BEHIND_TLS',
    meaning: 'true: a proxy in front terminates TLS, so that HOST may be a public address without a warning',
    ...SWITCH,
  },
  cors_origins: {
    variable: 'ANNALS_CORS_ORIGINS',
    meaning: 'origins whose web pages may call the API, separated by commas, or *; unset: none',
    default: undefined,
    pattern: { test: (text) => text === '*' || text.split(',').every(isOrigin) },
    takes:
      'origins as browsers send them, separated by commas, or *: such as https://app.example.com, in lower case, without a path, a trailing slash or the default port',
  },
  ...RATE_SETTINGS,
  body_bytes_max: {
    variable: 'ANNALS_BODY_BYTES_MAX',
    meaning: 'largest request body, apart from attachments in messages',
    unit: 'bytes',
    default: 1_048_576,
    min: 1_024,
    max: 67_108_864,
  },
  blob_bytes_max: {
    variable: 'ANNALS_BLOB_BYTES_MAX',
    meaning: 'largest blob, and the most bytes of attachments in one message',
    unit: 'bytes',
    default: 26_214_400,
    min: 1_024,
    max: 536_870_912,
  },
  headers_ms_max: {
    variable: 'ANNALS_HEADERS_MS_MAX',
    meaning: "longest time to receive a request's headers",
    unit: 'ms',
    default: 15_000,
    min: 100,
    max: 600_000,
  },
  request_ms_max: {
    variable: 'ANNALS_REQUEST_MS_MAX',
    meaning: 'longest time to receive a whole request, including its body',
    unit: 'ms',
    default: 60_000,
    min: 100,
    max: 3_600_000,
  },
  stall_ms_max: {
    variable: 'ANNALS_STALL_MS_MAX',
    meaning: 'how long a client may read next to nothing of its answer before its connection is closed',
    unit: 'ms',
    default: 20_000,
    min: 100,
    max: 600_000,
  },
  connections_max: {
    variable: 'ANNALS_CONNECTIONS_MAX',
    meaning: 'most client connections at once; further ones are closed immediately',
    default: 16_384,
    min: 1,
    max: 1_000_000,
  },
  memory_bytes_max: {
    variable: 'ANNALS_MEMORY_BYTES_MAX',
    meaning:
      "memory that the bodies, pages, tails and connections of one process share; a request that finds none free waits up to a second and then gets 503; 0: half of V8's heap limit, or a quarter of the machine's or container's memory if that is less",
    unit: 'bytes',
    default: 0,
    min: 0,
    max: 1_099_511_627_776,
  },
  queue_requests_max: {
    variable: 'ANNALS_QUEUE_REQUESTS_MAX',
    meaning: 'appends that may wait for a commit before further ones get 503',
    default: 10_000,
    min: 1,
    max: 1_000_000,
  },
  queue_bytes_max: {
    variable: 'ANNALS_QUEUE_BYTES_MAX',
    meaning: 'bytes of appends that may wait for a commit before further ones get 503',
    unit: 'bytes',
    default: 67_108_864,
    min: 1_024,
    max: 4_294_967_296,
  },
  queue_wait_ms_max: {
    variable: 'ANNALS_QUEUE_WAIT_MS_MAX',
    meaning:
      'longest expected wait for a commit, estimated from recent commits; an append that would wait longer gets 503',
    unit: 'ms',
    default: 250,
    min: 10,
    max: 60_000,
  },
  flushes_max: {
    variable: 'ANNALS_FLUSHES_MAX',
    meaning:
      'commits of appends in flight at once; a project may use a second slot while fewer than half are busy',
    default: 4,
    min: 1,
    max: 64,
  },
  gather_ms_max: {
    variable: 'ANNALS_GATHER_MS_MAX',
    meaning:
      'how long a commit waits for further appends from the callers just answered; useful when several processes share a database whose processors are all busy',
    unit: 'ms',
    default: 0,
    min: 0,
    max: 100,
  },
  group_commit: {
    variable: 'ANNALS_GROUP_COMMIT',
    meaning: 'off: every append is its own commit, which is slower; for comparison',
    default: 'on',
    pattern: /^(on|off)$/,
    takes: 'on or off',
  },
  database_connections_max: {
    variable: 'ANNALS_DATABASE_CONNECTIONS_MAX',
    meaning: 'database connections for everything except appends, which have ANNALS_FLUSHES_MAX of their own',
    default: 16,
    min: 2,
    max: 1_000,
  },
  database_wait_ms_max: {
    variable: 'ANNALS_DATABASE_WAIT_MS_MAX',
    meaning: 'how long a request waits for an unavailable database before it gets 503',
    unit: 'ms',
    default: 1_500,
    min: 100,
    max: 60_000,
  },
  commit_ms_max: {
    variable: 'ANNALS_COMMIT_MS_MAX',
    meaning:
      'how long an append may be in flight in the database before its connection is closed without an answer',
    unit: 'ms',
    default: 5_000,
    min: 100,
    max: 60_000,
  },
  statement_ms_max: {
    variable: 'ANNALS_STATEMENT_MS_MAX',
    meaning: 'longest run of one database statement of a request',
    unit: 'ms',
    default: 30_000,
    min: 100,
    max: 3_600_000,
  },
  token_cache_ms: {
    variable: 'ANNALS_TOKEN_CACHE_MS',
    meaning: 'how long an API key is cached; a revocation takes effect within this time',
    unit: 'ms',
    default: 4_000,
    min: 0,
    max: 4_500,
  },
  feed_poll_ms: {
    variable: 'ANNALS_FEED_POLL_MS',
    meaning: 'how often live tails poll the database, in case a notification is lost',
    unit: 'ms',
    default: 3_000,
    min: 100,
    max: 60_000,
  },
  ...OUTGOING_SETTINGS,
  retention_ms: {
    variable: 'ANNALS_RETENTION_MS',
    meaning: 'how often expired sessions are deleted, give or take half of it',
    unit: 'ms',
    default: 600_000,
    min: 100,
    max: 86_400_000,
  },
  drain_ms_max: {
    variable: 'ANNALS_DRAIN_MS_MAX',
    meaning: 'how long SIGTERM waits for requests in flight',
    unit: 'ms',
    default: 9_000,
    min: 0,
    max: 600_000,
  },
} as const satisfies Record<string, Setting>

/** Whether a browser may send this as a page's Origin: browsers normalize other spellings to this form. */
function isOrigin(text: string): boolean {
  return /^https?:[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text
}
