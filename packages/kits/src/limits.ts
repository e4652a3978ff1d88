/** Limits that clients rely on; configurable ones are in `configuration/settings.ts`. */

export const PAGE_LIMIT_DEFAULT = 20
export const ENTRY_PAGE_LIMIT_DEFAULT = 50
export const PAGE_LIMIT_MAX = 200
export const ENTRY_PAGE_LIMIT_MAX = 1_000
export const BATCH_ENTRIES_MAX = 1_000
export const ATOMIC_SESSIONS_MAX = 20
export const USER_IDENTIFIER_LENGTH_MAX = 256
export const EVENT_TYPE_LENGTH_MAX = 256
export const ENTRY_KEY_LENGTH_MAX = 255
export const SEARCH_QUERY_LENGTH_MAX = 1_024
export const IDS_MAX = 200
export const RETRACTED_LAST_MAX = 1_000
export const RETRACTED_AFTER_MAX = 10_000
export const SUMMARY_MESSAGES_MAX = 16
/** Entries, and tool calls and results, that one compaction covers beyond the one before it. */
export const COMPACTED_ENTRIES_MAX = 100_000
export const COMPACTED_TOOL_USES_MAX = 100_000
/** Most valid compactions of a session: one retraction may have to retract all of them. */
export const COMPACTIONS_MAX = 10_000
export const NAME_LENGTH_MAX = 256
export const RATE_LIMIT_MAX = 1_000_000
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255
export const OBJECT_BYTES_MAX = 64 * 1024
/**
 * Most bytes that `configs` or `meta` may reach by merges, as PostgreSQL writes them (with a space after each comma
 * and colon, hence the margin).
 */
export const MERGED_BYTES_MAX = 2 * OBJECT_BYTES_MAX
export const BLOB_BYTES_MAX = 1024 * 1024 * 1024
export const DATABASE_BLOB_BYTES_MAX = BLOB_BYTES_MAX / 2
/** How long an idempotency key is kept; the contract promises at least 24 hours. */
export const IDEMPOTENCY_KEPT_HOURS = 48
export const RETENTION_DAYS_MAX = 36_500
/** A project's own words for outcomes: each fits in a column. */
export const OUTCOME_WORDS_MAX = 50
export const OUTCOME_WORD = /^.{1,40}$/
/** Largest quota: the largest integer that every JSON parser reads exactly. */
export const QUOTA_MAX = Number.MAX_SAFE_INTEGER

export const CONSOLE_IDLE_HOURS_MAX = 12
export const CONSOLE_SESSION_DAYS_MAX = 30

/** Bytes of JSON that one statement reads at most, a larger entry aside: what a reader holds at a time. */
export const PIECE_BYTES_MAX = 1024 * 1024

/** Of `auto_compact_tokens`: with fewer, a summary would have no room. */
export const AUTO_COMPACT_TOKENS_MIN = 4_000
