import type { MessageFormat } from '../formats.js'
import type { AudioPart, FilePart, ImagePart, VideoPart } from '../parts.js'

/** An entry of a session's log, as the API's timeline gives it. */
export type LogEntry = LoggedMessage | LoggedEvent

interface Logged {
  seq: number
  created_at: string
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

/** A call of a tool, and its result where that is known. It changes when an entry read later tells of it. */
export interface ToolCall {
  /** 1 for the first call that was read, 2 for the next one. */
  number: number
  id: string | undefined
  name: string
  /** JSON as a rule; models write broken JSON too. */
  arguments: string
  /** Where it was first recorded. */
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
  /** From the call's entry to the result's. 0 where both were stored at one moment, which says nothing. */
  duration_ms: number
}

export type Medium = ImagePart | AudioPart | VideoPart | FilePart

/** A piece of an entry, as a person looks at it. */
export type Block =
  | { kind: 'text'; text: string }
  /** `text` is null where the provider keeps it to itself. */
  | { kind: 'thinking'; text: string | null }
  /** `is_repeat`: an earlier entry has recorded the call. */
  | { kind: 'call'; call: ToolCall; is_repeat: boolean }
  /** `call` is undefined where no call is known that it answers; `is_repeat`: an earlier entry has answered it. */
  | {
      kind: 'result'
      call: ToolCall | undefined
      name: string | undefined
      result: ToolResult
      is_repeat: boolean
    }
  | { kind: 'medium'; part: Medium }
  | { kind: 'data'; value: unknown }

/** An entry of a log, as a person reads it. */
export interface ReadEntry {
  seq: number
  created_at: string
  kind: 'message' | 'event'
  /** Who speaks: system, developer, user, assistant or tool; the type of an event. */
  speaker: string
  /** The name of who speaks, where the message has one. */
  name: string | null
  blocks: Block[]
}
