import { countedContent } from '@annals/messages'
import { parseJson } from '@annals/messages/json'
import { AnnalsError } from 'annals/dist/errors.js'
import { BATCH_ENTRIES_MAX } from 'annals/dist/limits.js'
import type { AppendedEntry } from 'annals/dist/log/append/append_request.js'
import type { Appender } from 'annals/dist/log/append/appender.js'
import { countTokens } from 'annals/dist/log/append_bodies.js'
import { READ_HEAD } from 'annals/dist/log/read/read_queries.js'
import type { Queryable } from 'annals/dist/postgres/database.js'
import { createSession } from 'annals/dist/sessions/sessions.js'
import { FIND_KNOWN_ENTRIES } from '../sessions/restore_queries.js'
import { wrongLine } from './export_line.js'
import { LineSplitter } from './line_splitter.js'
import { type OpenAiRun, type RunMessage, readOpenAiRun } from './openai_run.js'
import type { Tally } from './restore_context.js'

/** Runs stored at once: the appender puts them into one commit. */
const RUNS_AT_ONCE_MAX = 16
const CHARACTERS_AT_ONCE_MAX = 4 * 1024 * 1024
/** Most characters of one append; a longer message goes alone. */
const APPEND_CHARACTERS_MAX = 1024 * 1024
/** Whether the project has consumers of changes, each append sees for itself. */
const NEVER = Number.NEGATIVE_INFINITY
const SPACE = /^\s*$/

export interface RunImportTotals {
  sessions: Tally
  messages: Tally
}

export interface RunImportOptions {
  project_id: string
  dry_run: boolean
  signal: AbortSignal
  onProgress: (bytes: number) => void
}

/** Stores runs the same way as a caller's requests. */
export interface RunStore {
  database: Queryable
  appender: Appender
}

/** Reads a whole file of runs and stores nothing. @throws StartError that names the line and what is wrong */
export async function checkOpenAiRuns(
  source: AsyncIterable<Buffer>,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<void> {
  for await (const { end_offset } of readRuns(source)) {
    signal.throwIfAborted()
    onProgress(end_offset)
  }
}

/**
 * Stores each run as a session: its user, its configs, its messages as entries of the log, appended as usual. Ids are
 * derived from the file, so that what an earlier import stored is found and not stored again.
 */
export async function importOpenAiRuns(
  store: RunStore,
  source: AsyncIterable<Buffer>,
  options: RunImportOptions,
): Promise<RunImportTotals> {
  const totals = { sessions: { stored: 0, known: 0 }, messages: { stored: 0, known: 0 } }
  let group: OpenAiRun[] = []
  let characters = 0
  let read = 0
  const storeGroup = async () => {
    options.signal.throwIfAborted()
    const results = await Promise.allSettled(group.map((run) => storeRun(store, run, options, totals)))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) throw failed.reason
    group = []
    characters = 0
    options.onProgress(read)
  }
  for await (const { run, length, end_offset } of readRuns(source)) {
    group.push(run)
    characters += length
    read = end_offset
    if (group.length >= RUNS_AT_ONCE_MAX || characters >= CHARACTERS_AT_ONCE_MAX) await storeGroup()
  }
  await storeGroup()
  return totals
}

async function* readRuns(
  source: AsyncIterable<Buffer>,
): AsyncGenerator<{ run: OpenAiRun; length: number; end_offset: number }> {
  const splitter = new LineSplitter()
  let number = 0
  let end_offset = 0
  const read = function* (lines: Buffer[]) {
    for (const line of lines) {
      number += 1
      end_offset += line.length + 1
      const { length } = line
      if (!isBlank(line)) yield { run: readOpenAiRun(line, number), length, end_offset }
    }
  }
  for await (const chunk of source) yield* read(splitter.push(chunk))
  yield* read([splitter.rest()])
}

function isBlank(line: Buffer): boolean {
  return line.length < 100 && SPACE.test(line.toString('latin1'))
}

async function storeRun(
  { database, appender }: RunStore,
  run: OpenAiRun,
  { project_id, dry_run }: RunImportOptions,
  totals: RunImportTotals,
): Promise<void> {
  const { session_id, messages } = run
  try {
    const [head] = await database.query(READ_HEAD, [project_id, session_id, null])
    if (!head && !dry_run) await createRunSession(database, project_id, run)
    totals.sessions[head ? 'known' : 'stored'] += 1
    const known = head ? await findKnown(database, project_id, run) : new Set<string>()
    const missing = messages.filter(({ id }) => !known.has(id))
    for (const part of dry_run ? [] : cutAppends(missing)) {
      const entries = part.map(toEntry)
      await appender.append({ project_id, session_id, kind: 'entries', entries, unmarked_until: NEVER })
    }
    totals.messages.known += messages.length - missing.length
    totals.messages.stored += missing.length
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.error === 'unavailable') throw error
    throw wrongLine(run.number, error.message)
  }
}

async function createRunSession(
  database: Queryable,
  project_id: string,
  { session_id, user, configs }: OpenAiRun,
): Promise<void> {
  const body = `{"configs":${configs}}`
  await createSession(database, { project_id, user, use_uuid: session_id, body, idempotency: undefined })
}

async function findKnown(database: Queryable, project_id: string, run: OpenAiRun): Promise<Set<string>> {
  const ids = run.messages.map(({ id }) => id)
  const rows = await database.query(FIND_KNOWN_ENTRIES, [project_id, run.session_id, ids])
  return new Set(rows.map((row) => row.id!))
}

/** Splits messages into appends of limited number and length. */
function cutAppends(messages: RunMessage[]): RunMessage[][] {
  const appends: RunMessage[][] = []
  let characters = 0
  for (const message of messages) {
    const last = appends.at(-1)
    characters += message.blob.length
    if (last && last.length < BATCH_ENTRIES_MAX && characters <= APPEND_CHARACTERS_MAX) {
      last.push(message)
    } else {
      appends.push([message])
      characters = message.blob.length
    }
  }
  return appends
}

function toEntry({ id, role, parts, blob }: RunMessage): AppendedEntry {
  return {
    id,
    id_given: true,
    key: null,
    kind: 'message',
    type: null,
    format: 'openai',
    role,
    bytes: Buffer.byteLength(blob),
    tokens: countTokens(countedContent('openai', { parts }, parseJson(blob))),
    occurred_at: null,
    data: blob,
    meta: '{}',
  }
}
