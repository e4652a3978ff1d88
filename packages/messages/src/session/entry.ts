import type { MessageFormat } from '../formats.js'
import type { AudioPart, FilePart, ImagePart, VideoPart } from '../parts.js'
import type { KeptState } from './kept_state.js'

/** An entry of a session's log, as the API's timeline returns it. */
export type LogEntry = LoggedMessage | LoggedEvent

interface Logged {
  seq: number
  created_at: string
  /** When it happened, if its caller said so. */
  occurred_at?: string | null | undefined
}

export interface LoggedMessage extends Logged {
  kind: 'message'
  id: string
  parent_id: string | null
  role: string
  format: MessageFormat
  blob: unknown
}

export interface LoggedEvent extends Logged {
  kind: 'event'
  type: string
  data: Record<string, unknown>
}

/** A call has no result yet, or its result says whether it failed. */
export type Verdict = 'open' | 'ok' | 'failed'

/** A tool call, and its result if known. It changes when a later entry adds to it. */
export interface ToolCall {
  /** 1 for the session's first call, 2 for the next one. Unknown where entries before it were not read. */
  number: number | undefined
  id: string | undefined
  name: string
  /** Usually JSON; models also write broken JSON. */
  arguments: string
  /** Where it was first recorded, and when that happened. */
  seq: number
  created_at: string
  verdict: Verdict
  result: ToolResult | undefined
  /** Grows with each change. */
  version: number
}

export interface ToolResult {
  text: string
  is_failed: boolean
  seq: number
  created_at: string
  /** From the call's entry to the result's, unless its recorder measured it. 0 if both happened at the same moment, which means unknown. */
  duration_ms: number
}

/** A text or a thought that arrives over several entries. It grows with later ones. */
export interface Streamed {
  /** Where it began. */
  seq: number
  is_thinking: boolean
  text: string
}

export type Medium = ImagePart | AudioPart | VideoPart | FilePart

/** A block of an entry, for display. */
export type Block =
  | { kind: 'text'; text: string }
  /** `text` is null if the provider hides it. */
  | { kind: 'thinking'; text: string | null }
  /** `is_repeat`: an earlier entry already recorded the call. */
  | { kind: 'call'; call: ToolCall; is_repeat: boolean }
  /** `call` is undefined if the call it answers is unknown; `is_repeat`: an earlier entry already answered it. */
  | {
      kind: 'result'
      call: ToolCall | undefined
      name: string | undefined
      result: ToolResult
      is_repeat: boolean
    }
  /** `text` is what this entry adds to the whole; `is_repeat`: an earlier entry shows the whole. */
  | { kind: 'streamed'; text: string; whole: Streamed; is_repeat: boolean }
  | ({ kind: 'state' } & KeptState)
  | { kind: 'medium'; part: Medium }
  | { kind: 'data'; value: unknown }

/** An entry of a log, for display. */
export interface ReadEntry {
  seq: number
  /** When it happened: its `occurred_at` if it has one. */
  created_at: string
  kind: 'message' | 'event'
  /** The speaker: system, developer, user, assistant or tool; for an event, its type. */
  speaker: string
  /** The speaker's name, if the message has one. */
  name: string | null
  blocks: Block[]
}
