import { ENTRY_KEY_LENGTH_MAX } from '@annals/kits/limits.js'
import { MESSAGE_FORMATS } from '@annals/messages'
import { RETRACTION_TYPE } from 'annals/dist/log/append/append_request.js'
import { absentBefore, CHECKS, type LineCheck, type LineColumn } from '../columns.js'
import { type ExportLine, type LineFollower, wrongLine } from '../transfer/export_line.js'

/** The part of a session that checks of lines need; the rest goes to the database as text. */
export interface SessionRecord {
  id: string
  user: string | null
  disable_task_tracking: boolean
  created_at: string
  updated_at: string
  last_seq: number
  total_tokens: number
  last_message_id: string | null
  parent_id?: string | null
}

export interface EntryRecord {
  session_id: string
  seq: number
  id: string
  created_at: string
  updated_at: string
  bytes: number
  tokens: number
  type: string | null
  retracted_by?: number
  proof?: string
  data: object
}

const oneOf = (values: readonly string[]): LineCheck => ({
  takes: `one of ${values.join(', ')}`,
  fits: (value) => values.includes(value as string),
})

const HASH = { takes: 'a SHA-256 in hexadecimal', fits: isHash } as const
const HASH_OR_NULL: LineCheck = {
  takes: `${HASH.takes}, or null`,
  fits: (value) => value === null || isHash(value),
  type: 'text',
}

function isHash(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
}

export const SESSION_LINE = {
  id: 'uuid',
  user_id: 'user?',
  disable_task_tracking: 'boolean',
  created_at: 'time',
  updated_at: 'time',
  last_seq: 'bigint',
  total_tokens: 'bigint',
  last_message_id: 'uuid?',
  expires_in_s: absentBefore('positive?'),
  parent_id: absentBefore('uuid?'),
  forked_from: absentBefore('uuid?'),
  forked_at_seq: absentBefore('bigint?'),
  forked_proof: absentBefore(HASH_OR_NULL),
  configs: 'object',
} as const satisfies Record<string, LineColumn>

/** What a session's head has of that. */
export const OF_HEAD = ['updated_at', 'last_seq', 'total_tokens', 'last_message_id'] as const

/** Everything in a row of entries that each has, except its project and kind. */
export const ENTRY = {
  session_id: 'uuid',
  seq: 'ordinal',
  id: 'uuid',
  parent_id: 'uuid?',
  created_at: 'time',
  updated_at: 'time',
  bytes: 'integer',
  tokens: 'integer',
  type: 'text?',
  role: 'text?',
  format: 'text?',
  meta: 'object?',
  patched_meta: 'object?',
  data: 'object',
} as const satisfies Record<string, LineColumn>

/** What most entries do not have. */
const RARE = {
  key: absentBefore({
    takes: `a string of 1 to ${ENTRY_KEY_LENGTH_MAX} characters`,
    fits: (value) =>
      CHECKS.text.fits(value) && value !== '' && [...String(value)].length <= ENTRY_KEY_LENGTH_MAX,
  }),
  occurred_at: absentBefore('time'),
  retracted_by: absentBefore('ordinal'),
  proof: absentBefore(HASH),
} as const satisfies Record<string, LineColumn>

const { nothing } = CHECKS
const OF_MESSAGES = {
  parent_id: nothing,
  role: nothing,
  format: nothing,
  meta: nothing,
  patched_meta: nothing,
}

/** The lines of entries: what the other kind has is null. */
const ENTRY_LINES = {
  event: { key: ['session_id', 'id'], columns: { ...ENTRY, ...RARE, ...OF_MESSAGES, type: 'text' } },
  message: {
    key: ['session_id', 'id'],
    columns: {
      ...ENTRY,
      ...RARE,
      type: nothing,
      role: oneOf(['user', 'assistant']),
      format: oneOf(MESSAGE_FORMATS),
      meta: 'object',
    },
  },
} as const satisfies Record<string, { key: readonly string[]; columns: Record<string, LineColumn> }>

/** The kinds of lines beside that of sessions. */
export const FURTHER_LINES = {
  ...ENTRY_LINES,
  erased_session: { key: ['session_id'], columns: { session_id: 'uuid' } },
} as const satisfies Record<string, { key: readonly string[]; columns: Record<string, LineColumn> }>

/** What a log has up to a line. `tokens`: of what is not retracted. */
interface Followed {
  seq: number
  tokens: number
  has_retraction: boolean
  created_at: string
  message_id: string | null
}

/** Follows the entries of one session after the other, and compares them with the session's line. */
export class LogFollower implements LineFollower {
  private session: SessionRecord | undefined
  private last: Followed = NOTHING_YET
  private readonly above = new Map<string, string>()

  /** The session that the line belongs to. @throws StartError if the line is out of place */
  follow(line: Omit<ExportLine, 'end_offset'>): SessionRecord | undefined {
    switch (line.kind) {
      case 'event':
      case 'message':
        return this.enter(line.number, line.kind, line.record as unknown as EntryRecord)
      case 'session':
        this.finish(line.number)
        this.session = line.record as unknown as SessionRecord
        this.goBelow(line.number, this.session)
        this.last = NOTHING_YET
        return this.session
      default:
        this.finish(line.number)
        return undefined
    }
  }

  /** Ends the last followed session. @throws StartError if its log is incomplete */
  finish(number: number): void {
    const { session, last } = this
    this.session = undefined
    if (!session) return
    const what = `before this line, session ${session.id} should`
    if (session.last_seq !== last.seq) {
      throw wrongLine(number, `${what} have ${session.last_seq} entries and has ${last.seq}.`)
    }
    // Earlier versions left out the mark of what is retracted 2,000 entries later and more.
    const mayLackMarks = last.has_retraction && session.total_tokens < last.tokens
    if (session.total_tokens !== last.tokens && !mayLackMarks) {
      throw wrongLine(number, `${what} have ${session.total_tokens} tokens and has ${last.tokens}.`)
    }
    if (session.last_message_id !== last.message_id) {
      throw wrongLine(
        number,
        `${what} end with message ${session.last_message_id} and ends with ${last.message_id}.`,
      )
    }
  }

  /**
   * Notes a session's parent. What is kept is a tree of all sessions with parents: each points to what it is below, and after
   * a walk to what that led to, so that long chains are walked about once.
   */
  private goBelow(number: number, { id, parent_id }: SessionRecord): void {
    if (!parent_id) return
    let top = parent_id
    for (let above = this.above.get(top); above !== undefined; above = this.above.get(top)) top = above
    for (let at = parent_id; at !== top; ) {
      const above = this.above.get(at)!
      this.above.set(at, top)
      at = above
    }
    if (top === id) throw wrongLine(number, 'parent_id must not be the session itself, or one below it.')
    this.above.set(id, top)
  }

  private enter(number: number, kind: 'event' | 'message', entry: EntryRecord): SessionRecord {
    const { session, last } = this
    if (!session || session.id !== entry.session_id) {
      throw wrongLine(
        number,
        `session_id must be that of the session's line before it${session ? `, ${session.id}` : ''}.`,
      )
    }
    if (entry.seq !== last.seq + 1)
      throw wrongLine(number, `seq must be ${last.seq + 1}; it is ${entry.seq}.`)
    if (entry.created_at < last.created_at) {
      throw wrongLine(number, 'created_at must not be earlier than that of the entry before it.')
    }
    if (entry.updated_at < entry.created_at)
      throw wrongLine(number, 'updated_at must not be before created_at.')
    if (entry.bytes < 2) throw wrongLine(number, 'bytes must be at least 2.')
    if (kind === 'event' && entry.tokens !== 0) throw wrongLine(number, 'tokens of an event must be 0.')
    this.last = {
      seq: entry.seq,
      tokens: last.tokens + (entry.retracted_by === undefined ? entry.tokens : 0),
      has_retraction: last.has_retraction || entry.type === RETRACTION_TYPE,
      created_at: entry.created_at,
      message_id: kind === 'message' ? entry.id : last.message_id,
    }
    return session
  }
}

const NOTHING_YET: Followed = { seq: 0, tokens: 0, has_retraction: false, created_at: '', message_id: null }
