import { isDeepStrictEqual } from 'node:util'
import type { AnnalsApi } from './annals_api.ts'
import type { RecordedRun } from './record.ts'

const WALK_PAGE = 7
const READ_PAGE = 20

/** Walks a session's entries from the first to the last and back. Gives the number of entries seen. */
export async function checkWalk(
  api: AnnalsApi,
  recorded: RecordedRun,
  differences: string[],
): Promise<number> {
  const { session_id, entries } = recorded
  const forth: number[] = []
  const back: number[] = []
  for await (const { seq } of api.timeline(session_id, { limit: WALK_PAGE })) forth.push(seq)
  for await (const { seq } of api.timeline(session_id, { limit: WALK_PAGE, time_desc: true })) back.push(seq)
  const expected = entries.map((_, index) => index + 1)
  if (!isDeepStrictEqual(forth, expected))
    differences.push(`Session ${session_id} is out of order from the first on`)
  if (!isDeepStrictEqual(back, expected.toReversed())) {
    differences.push(`Session ${session_id} is out of order from the last on`)
  }
  return forth.length + back.length
}

/**
 * Reads every entry of a session and compares it with what the file says and with what adding it answered:
 * seq without gaps, kind, type, data to the last value, id, and a time that never goes back. Gives how many are equal.
 */
export async function checkEntries(
  api: AnnalsApi,
  recorded: RecordedRun,
  differences: string[],
): Promise<number> {
  const { session_id, entries } = recorded
  let equal = 0
  let position = 0
  let latest = ''
  for await (const item of api.timeline(session_id, { limit: READ_PAGE })) {
    const expected = entries[position]
    position += 1
    const wrong = [
      item.seq !== position && `seq ${item.seq}`,
      item.session_id !== session_id && `session ${item.session_id}`,
      item.created_at < latest && 'an earlier time',
      !expected && 'no place in the file',
      expected && item.id !== expected.id && `id ${item.id}`,
      expected && item.kind !== expected.kind && `kind ${item.kind}`,
      expected && item.type !== expected.type && `type ${item.type}`,
      expected && !isDeepStrictEqual(item.data ?? item.blob, expected.data) && 'other data',
    ].filter((part) => typeof part === 'string')
    latest = item.created_at
    if (wrong.length === 0) equal += 1
    else differences.push(`Entry ${position} of session ${session_id} came back with ${wrong.join(', ')}`)
  }
  if (position < entries.length) {
    differences.push(`Session ${session_id} came back with ${position} of ${entries.length} entries`)
  }
  return equal
}

/**
 * Reads a session's messages in the format in which they were recorded and compares them with the file. Gives how
 * many are equal.
 */
export async function checkMessages(
  api: AnnalsApi,
  recorded: RecordedRun,
  differences: string[],
): Promise<number> {
  const { session_id, run } = recorded
  const messages = await api.messages(session_id, 'openai')
  const equal = run.messages.filter((message, index) => isDeepStrictEqual(messages[index], message)).length
  if (equal < run.messages.length || messages.length !== run.messages.length) {
    differences.push(`Session ${session_id} came back with ${equal} of ${run.messages.length} messages equal`)
  }
  return equal
}
