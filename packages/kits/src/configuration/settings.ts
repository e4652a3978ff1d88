import { BLOB_BYTES_MAX, RATE_LIMIT_MAX } from '../limits.js'

export interface Setting {
  meaning: string
  unit?: string
  default: string | number | undefined
  min?: number
  max?: number
  pattern?: Pick<RegExp, 'test'>
  takes?: string
}

/** Variables that have the same name in other programs, and so no prefix. */
const UNPREFIXED = new Set(['host', 'port', 'database_url', 'database_direct_url', 'log_level'])

export function variableOf(name: string): string {
  return `${UNPREFIXED.has(name) ? '' : 'ANNALS_'}${name.toUpperCase()}`
}

/** Which texts a setting takes, as a test and in words. */
type Accepted = Required<Pick<Setting, 'pattern' | 'takes'>>

const POSTGRES_URL = { pattern: /^postgres(ql)?:\/\//, takes: 'a URL that begins with postgresql://' }
const HTTP_URL = {
  pattern: /^https?:\/\/[^@]+$/,
  takes: 'a URL that begins with http:// or https://, without a user name',
}
const VISIBLE = { pattern: /^[\x21-\x7e]{1,1000}$/, takes: '1 to 1000 visible ASCII characters' }
const MODEL_NAME = { pattern: /^[\x21-\x7e]{1,200}$/, takes: '1 to 200 visible ASCII characters' }
const SECRET = { pattern: /^[\x21-\x7e]{32,256}$/, takes: '32 to 256 visible ASCII characters' }

function text(value: string, meaning: string, accepted?: Accepted) {
  return { meaning, default: value, ...accepted }
}

function optional(meaning: string, accepted: Accepted) {
  return { meaning, default: undefined, ...accepted }
}

function flag(meaning: string) {
  return text('false', meaning, { pattern: /^(true|false)$/, takes: 'true or false' })
}

function count(value: number, [min, max]: [number, number], meaning: string) {
  return { meaning, default: value, min, max }
}

function bytes(...given: Parameters<typeof count>) {
  return { ...count(...given), unit: 'bytes' }
}

function ms(...given: Parameters<typeof count>) {
  return { ...count(...given), unit: 'ms' }
}

/**
 * Every setting of the service, defined once, under the name from which its variable follows: its default, limits and
 * meaning. The Config that is passed around, the help of `annals serve` and docs/settings.md are derived from
 * here.
 */
export const SETTINGS = {
  host: text('127.0.0.1', 'address to listen on'),
  port: count(8029, [0, 65_535], 'port to listen on; 0 takes a free one'),
  database_url: optional(
    'a PostgreSQL server (15 or newer) or a Citus coordinator; unset: the embedded PostgreSQL',
    POSTGRES_URL,
  ),
  database_direct_url: optional(
    'the same database without the pooler, for LISTEN, if DATABASE_URL points at PgBouncer',
    POSTGRES_URL,
  ),
  data_dir: text('.annals', 'where the embedded PostgreSQL keeps its data'),
  api_key: optional(
    'the API key of the project "default"; unset: the first start creates one and prints it once',
    SECRET,
  ),
  admin_token: optional('if set, enables /admin/v1 with this token', SECRET),
  log_level: text('info', 'fatal, error, warn, info, debug, trace or silent; unset on a terminal: warn', {
    pattern: /^(fatal|error|warn|info|debug|trace|silent)$/,
    takes: 'one of fatal, error, warn, info, debug, trace, silent',
  }),
  behind_tls: flag(
    'true: a proxy in front terminates TLS, so that HOST may be a public address without a warning',
  ),
  public_url: optional('address under which browsers reach the service; OIDC needs it', {
    pattern: { test: (text) => isOrigin(text) },
    takes: 'an origin such as https://annals.example.com, without a path or a trailing slash',
  }),
  oidc_issuer: optional(
    'URL of the OpenID Connect issuer at which people sign in to the console; unset: only keys open it',
    {
      pattern: /^(https:\/\/[^@]+|http:\/\/(127\.0\.0\.1|localhost)(:\d+)?(\/.*)?)$/,
      takes: 'a URL that begins with https://; http:// only for this machine',
    },
  ),
  oidc_client_id: optional('id that the issuer gave to the service', VISIBLE),
  oidc_client_secret: optional('secret that the issuer gave to the service', VISIBLE),
  oidc_allowed_domains: optional(
    'domains of the addresses of people who may sign in, separated by commas; unset: any',
    { pattern: /^[A-Za-z0-9.-]+(,[A-Za-z0-9.-]+)*$/, takes: 'domains with commas between them' },
  ),
  oidc_roles_claim: optional(
    'claim that lists the groups of a person, such as groups: annals:<project>:<role> and annals:owner give roles; unset: only invitations do',
    VISIBLE,
  ),
  cors_origins: optional('origins whose web pages may call the API, separated by commas, or *; unset: none', {
    pattern: { test: (text) => text === '*' || text.split(',').every(isOrigin) },
    takes:
      'origins as browsers send them, separated by commas, or *: such as https://app.example.com, in lower case, without a path, a trailing slash or the default port',
  }),
  rate_limit_per_second: count(
    0,
    [0, RATE_LIMIT_MAX],
    'most requests per second of each API key at each node; 0: unlimited; a project may have its own limit',
  ),
  address_rate_limit_per_second: count(
    0,
    [0, RATE_LIMIT_MAX],
    'most requests per second of each address at each node, whatever their key; 0: unlimited',
  ),
  address_refusals_per_second: count(
    0,
    [0, RATE_LIMIT_MAX],
    'most requests per second of each address with invalid keys; beyond that, the address gets 429 for keys that the node has not recently seen to be valid; 0: unlimited',
  ),
  trusted_proxies: optional(
    'addresses or networks of proxies, separated by commas, whose X-Forwarded-For tells where a request comes from; unset: none',
    {
      pattern: /^[\da-fA-F.:/]+(?:,[\da-fA-F.:/]+)*$/,
      takes: 'addresses or networks such as 10.0.0.0/8,::1, separated by commas',
    },
  ),
  body_bytes_max: bytes(
    1_048_576,
    [1_024, 67_108_864],
    'largest request body, apart from attachments in messages',
  ),
  blob_bytes_max: bytes(
    26_214_400,
    [1_024, BLOB_BYTES_MAX],
    'largest blob, up to 536870912 in PostgreSQL; with ANNALS_S3_BUCKET the default is 1073741824. Attachments in one message may have as much, and 26214400 at most',
  ),
  headers_ms_max: ms(15_000, [100, 600_000], "longest time to receive a request's headers"),
  request_ms_max: ms(60_000, [100, 3_600_000], 'longest time to receive a whole request, including its body'),
  stall_ms_max: ms(
    20_000,
    [100, 600_000],
    'how long a client may read next to nothing of its answer before its connection is closed',
  ),
  connections_max: count(
    16_384,
    [1, 1_000_000],
    'most client connections at once; further ones are closed immediately',
  ),
  memory_bytes_max: bytes(
    0,
    [0, 1_099_511_627_776],
    "memory that the bodies, pages, tails and connections of one process share; a request that finds none free waits up to a second and then gets 503; 0: half of V8's heap limit, or a quarter of the machine's or container's memory if that is less",
  ),
  queue_requests_max: count(
    10_000,
    [1, 1_000_000],
    'appends that may wait for a commit before further ones get 503',
  ),
  queue_bytes_max: bytes(
    67_108_864,
    [1_024, 4_294_967_296],
    'bytes of appends that may wait for a commit before further ones get 503',
  ),
  queue_wait_ms_max: ms(
    250,
    [10, 60_000],
    'longest expected wait for a commit, estimated from recent commits; an append that would wait longer gets 503',
  ),
  flushes_max: count(
    4,
    [1, 64],
    'commits of appends in flight at once; a project may use a second slot while fewer than half are busy',
  ),
  gather_ms_max: ms(
    0,
    [0, 100],
    'how long a commit waits for further appends from the callers just answered; useful when several processes share a database whose processors are all busy',
  ),
  group_commit: text('on', 'off: every append is its own commit, which is slower; for comparison', {
    pattern: /^(on|off)$/,
    takes: 'on or off',
  }),
  database_connections_max: count(
    16,
    [2, 1_000],
    'database connections for everything except appends, which have ANNALS_FLUSHES_MAX of their own',
  ),
  database_lifetime_ms_max: ms(
    1_800_000,
    [1_000, 86_400_000],
    'how long a database connection is used before it is replaced',
  ),
  database_wait_ms_max: ms(
    1_500,
    [100, 60_000],
    'how long a request waits for an unavailable database before it gets 503',
  ),
  commit_ms_max: ms(
    5_000,
    [100, 60_000],
    'how long an append may be in flight in the database before its connection is closed without an answer',
  ),
  statement_ms_max: ms(30_000, [100, 3_600_000], 'longest run of one database statement of a request'),
  token_cache_ms: ms(
    4_000,
    [0, 4_500],
    'how long an API key is cached; a revocation takes effect within this time',
  ),
  feed_poll_ms: ms(
    3_000,
    [100, 60_000],
    'how often live tails poll the database, in case a notification is lost',
  ),
  s3_bucket: optional(
    'bucket of Amazon S3, or of a service with its interface, that keeps the bytes of attachments; unset: the database keeps them',
    { pattern: /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, takes: "a bucket's name" },
  ),
  s3_endpoint: optional("URL of that service; unset: Amazon's own", HTTP_URL),
  s3_region: text('us-east-1', 'region of the bucket', VISIBLE),
  s3_access_key_id: optional(
    "access key of that service; unset: what Amazon's SDK finds, such as AWS_ACCESS_KEY_ID or the machine's role",
    VISIBLE,
  ),
  s3_secret_access_key: optional('secret of that access key', VISIBLE),
  webhooks_to_private: flag('true: webhooks may go to loopback, link-local and private addresses as well'),
  model_url: optional(
    'base URL of an OpenAI-compatible API with a model for learning, such as https://api.openai.com/v1; unset: spaces learn by rules alone',
    HTTP_URL,
  ),
  model: optional('name of that model; set together with ANNALS_MODEL_URL', MODEL_NAME),
  model_key: optional('API key for the model', VISIBLE),
  model_ms_max: ms(60_000, [100, 600_000], 'longest time that the model may take for an answer'),
  model_tokens_per_day_max: count(
    1_000_000,
    [0, 1_000_000_000_000],
    'most tokens of the model for each project in a day, in UTC; a project may have its own limit',
  ),
  embeddings_url: optional(
    'base URL of an OpenAI-compatible API whose model makes vectors of entries for questions, such as https://api.openai.com/v1; needs the extension vector in the database; unset: questions are answered by words alone',
    HTTP_URL,
  ),
  embeddings_model: optional('name of that model; set together with ANNALS_EMBEDDINGS_URL', MODEL_NAME),
  embeddings_key: optional('API key for that model', VISIBLE),
  proof_anchor: optional(
    'where the heads of chained logs are anchored: a file, s3://bucket/prefix with what ANNALS_S3_ says, or the URL of a webhook; unset: nowhere',
    {
      pattern: /^(?:https?:\/\/[^@]+|s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[\x21-\x7e]*)?|[^:]+)$/,
      takes: 'a path, s3://bucket/prefix, or a URL that begins with http:// or https://, without a user name',
    },
  ),
  proof_key: optional(
    'file with the private key that signs anchors, Ed25519 in PEM, the same at every node; it is made if it is not there; set together with ANNALS_PROOF_ANCHOR',
    { pattern: /^.{1,1000}$/, takes: 'a path' },
  ),
  proof_anchor_ms: ms(60_000, [100, 86_400_000], 'how often heads are anchored, give or take half of it'),
  prices: optional(
    'a price list of models, for the costs that the console shows: JSON, or the path of a file; unset: no costs',
    { pattern: /^./s, takes: 'JSON or a path' },
  ),
  retention_ms: ms(
    600_000,
    [100, 86_400_000],
    'how often expired sessions are deleted, give or take half of it',
  ),
  shutdown_delay_ms: ms(
    0,
    [0, 600_000],
    'how long after SIGTERM connections are still accepted and served while /ready is 503, so that a load balancer notices; Ctrl-C does not wait',
  ),
  drain_ms_max: ms(9_000, [0, 600_000], 'how long SIGTERM waits for requests in flight'),
} as const satisfies Record<string, Setting>

/** Whether a browser may send this as a page's Origin: browsers normalize other spellings to this form. */
function isOrigin(text: string): boolean {
  return /^https?:[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text
}
