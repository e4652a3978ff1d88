import type { TimelineItem } from '@annals/client'
import { isObject, type Json } from '../json/exact_json.ts'
import { type JsonMember, type MessagePart, readsLikeError, stringOf } from './message_parts.ts'
import { readMessage } from './read_message.ts'

/** What a tool answered, and where that stands. */
export interface CallResult {
  seq: number
  at: string
  output: Json
  is_error: boolean
}

/** A tool call with its result, from messages or from events. */
export interface ToolCall {
  /** Its place among the session's calls: 1, 2, 3, … of those that were read. */
  number: number
  seq: number
  at: string
  name: string
  input: Json
  id: string | undefined
  result: CallResult | undefined
}

/** The calls of a log, in order, and which entries are told with a call elsewhere. */
export interface Calls {
  all: ToolCall[]
  by_seq: Map<number, ToolCall[]>
  /** Entries that hold nothing but results, each with the calls that they answer. */
  answers: Map<number, ToolCall[]>
}

/** Joins each call with its result: by id, or, where a format has none, by name in order. */
export function joinCalls(items: TimelineItem[]): Calls {
  const calls: Calls = { all: [], by_seq: new Map(), answers: new Map() }
  const open: ToolCall[] = []
  for (const item of items) {
    const parts = partsOf(item)
    const answered: ToolCall[] = []
    for (const part of parts) {
      if (part.type === 'call') {
        const { id, name, input } = part
        const call: ToolCall = {
          number: calls.all.length + 1,
          seq: item.seq,
          at: item.created_at,
          id,
          name,
          input,
          result: undefined,
        }
        calls.all.push(call)
        calls.by_seq.set(item.seq, [...(calls.by_seq.get(item.seq) ?? []), call])
        open.push(call)
      }
      if (part.type === 'result') {
        const index = open.findIndex(({ id, name }) =>
          part.id !== undefined && id !== undefined ? id === part.id : name === part.name,
        )
        if (index < 0) continue
        const [call] = open.splice(index, 1)
        call!.result = { seq: item.seq, at: item.created_at, output: part.output, is_error: part.is_error }
        answered.push(call!)
      }
    }
    if (answered.length > 0 && answered.length === parts.length) calls.answers.set(item.seq, answered)
  }
  return calls
}

/** What an entry says. An event that is a call or its result counts like a message's part. */
export function partsOf(item: TimelineItem): MessagePart[] {
  if (item.kind === 'message') return readMessage(item).parts
  const data = item.data as JsonMember
  const id = stringOf(data.call_id) ?? stringOf(data.tool_call_id) ?? stringOf(data.id)
  if (/^tool[_.-]?call$/i.test(item.type)) {
    const name = stringOf(data.name) ?? stringOf(data.tool)
    if (name) return [{ type: 'call', id, name, input: data.arguments ?? data.input ?? data.args ?? null }]
  }
  if (/^tool[_.-]?result$/i.test(item.type)) {
    const output = data.result ?? data.output ?? data.content ?? (isObject(data) ? data : null)
    const is_error =
      data.is_error === true || data.ok === false || readsLikeError(data) || readsLikeError(output)
    return [{ type: 'result', id, name: stringOf(data.name) ?? stringOf(data.tool), output, is_error }]
  }
  return []
}
