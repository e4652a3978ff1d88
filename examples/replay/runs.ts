import { readFile } from 'node:fs/promises'
import { ReplayFailure } from './failure.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** One recorded run of an agent: a line of the file. */
export interface Run {
  /** Number of its line, from 1. */
  line: number
  user: string
  configs: JsonObject
  /** In the chat format in which they were recorded; an assistant's message may have `tool_calls`. */
  messages: JsonObject[]
}

/** An entry as a session's log shall have it: a message's blob, or an event's data with its type. */
export interface PlannedEntry {
  kind: 'message' | 'event'
  type?: string
  data: JsonObject
}

/** Reads a file of runs, one JSON object a line: `{ user, configs, messages }`. */
export async function readRuns(path: string): Promise<Run[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ReplayFailure(
      `${path} cannot be read (${error.code}). Give the path of a file of recorded runs.`,
    )
  })
  const lines = text.split('\n').map((content, index) => ({ content, line: index + 1 }))
  const runs = lines
    .filter(({ content }) => content.trim() !== '')
    .map(({ content, line }) => readRun(content, line))
  if (runs.length === 0) throw new ReplayFailure(`${path} has no runs in it.`)
  return runs
}

function readRun(content: string, line: number): Run {
  const fields = parse(content)
  const isRun =
    isObject(fields) &&
    typeof fields.user === 'string' &&
    isObject(fields.configs) &&
    Array.isArray(fields.messages) &&
    fields.messages.every(isObject)
  if (!isRun) {
    throw new ReplayFailure(`Line ${line} is not a run: each line must be { "user", "configs", "messages" }.`)
  }
  return {
    line,
    user: fields.user as string,
    configs: fields.configs as JsonObject,
    messages: fields.messages as JsonObject[],
  }
}

/** How a replay stores recorded messages: as messages, or as events of the type `message`. */
export type StoreAs = 'messages' | 'events'

/** The entries of a run: every message, and behind it every tool call that it makes, as an event. */
export function entriesOf(run: Run, store_as: StoreAs): PlannedEntry[] {
  return run.messages.flatMap((message): PlannedEntry[] => {
    const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isObject) : []
    return [
      store_as === 'messages'
        ? { kind: 'message', data: message }
        : { kind: 'event', type: 'message', data: message },
      ...calls.map((data) => ({ kind: 'event' as const, type: 'tool_call', data })),
    ]
  })
}

function parse(content: string): Json | undefined {
  try {
    return JSON.parse(content) as Json
  } catch {
    return undefined
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
