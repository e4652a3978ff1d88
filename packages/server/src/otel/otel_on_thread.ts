import { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { Encoding } from '@annals/otel'
import type { AppendedEntry } from '../log/append/append_request.js'

const HEAP_MEGABYTES = 320
/** Most requests at once: each is held, decoded, until it is stored. */
const REQUESTS_MAX = 3

export type Signal = 'traces' | 'logs'

/** A request as it arrived. */
export interface Sent {
  signal: Signal
  encoding: Encoding
  is_compressed: boolean
  project_id: string
  /** Bytes that a body may have when it is decompressed, and one entry. */
  bytes_max: number
  entry_bytes_max: number
}

/** A session that is to get entries, and the ids of all that it may have already. */
export interface AskedSession {
  id: string
  user: string | undefined
  configs: Record<string, unknown>
  entry_ids: string[]
  /** Read only. */
  is_only_read: boolean
}

/** A session as stored: the places of the ids that are there, and whether it has messages. */
export interface KnownSession {
  has_messages: boolean
  known: number[]
}

/** A call of the service by the thread. `failed`: the service knows why, and the thread gives up. */
export type StoreCall =
  | { call: 'look_up'; sessions: AskedSession[] }
  | { call: 'append'; session_id: string; entries: AppendedEntry[] }

export interface StoreAnswers {
  look_up: KnownSession[] | 'failed'
  append: 'stored' | 'again' | 'failed'
}

/** The outcome of a request: how many of its spans or records were refused, and why; or why all were. */
export type Taken =
  | { refused: number; reason: string }
  | { unreadable: string; is_too_large: boolean }
  | 'failed'

export interface OtelWork {
  take(sent: Sent, body: Uint8Array): Promise<Taken>
}

/** The thread that decodes the requests of instrumented programs, and decides which of their contents are stored. */
export function otelThread(): WorkThread<OtelWork> {
  return new WorkThread({
    file: new URL('./otel_thread.js', import.meta.url),
    heap_megabytes: HEAP_MEGABYTES,
    jobs_max: REQUESTS_MAX,
  })
}
