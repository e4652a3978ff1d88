import { isJsonObject } from '@annals/messages/json'
import { objectIn } from '../json.js'
import type { JsonObject } from '../records.js'

/** An answer of so many parts is stored in pieces. */
const PARTS_MAX = 1_000

/** A line that OpenCode writes to its output with `run --format json`: a part of an answer. */
export function isOfOpenCodeRun({ type, sessionID, part }: JsonObject): boolean {
  return (
    typeof type === 'string' && typeof sessionID === 'string' && isJsonObject(part) && 'messageID' in part
  )
}

/** A session's answer in the form that an export of OpenCode has. */
export interface OpenCodeAnswer {
  session: string
  message: JsonObject
}

/** Joins the lines of each answer. */
export class OpenCodeRun {
  private session = ''
  private answer: unknown
  private at: unknown
  private finish: JsonObject = {}
  private parts: JsonObject[] = []

  /** The answers that are whole by now: another one has begun, or its last part came. */
  read({ sessionID, timestamp, part }: JsonObject): OpenCodeAnswer[] {
    const one = objectIn(part)
    const ended = one.messageID === this.answer && this.parts.length < PARTS_MAX ? [] : this.end()
    this.session = String(sessionID)
    this.answer = one.messageID
    this.at ??= timestamp
    this.parts.push(one)
    if (one.type !== 'step-finish') return ended
    this.finish = one
    return [...ended, ...this.end()]
  }

  end(): OpenCodeAnswer[] {
    const { session, parts, at } = this
    const { tokens, cost } = this.finish
    const info = { role: 'assistant', id: this.answer, time: { created: at }, tokens, cost }
    this.parts = []
    this.finish = {}
    this.at = undefined
    return parts.length === 0 ? [] : [{ session, message: { info, parts } }]
  }
}
