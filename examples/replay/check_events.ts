import { isDeepStrictEqual } from 'node:util'
import type { AnnalsApi } from './annals_api.ts'
import type { RecordedRun } from './record.ts'

const WALK_PAGE = 7
const READ_PAGE = 20

/** Walks a session's events from the first to the last and back. Gives the number of events seen. */
export async function checkWalk(
  api: AnnalsApi,
  recorded: RecordedRun,
  differences: string[],
): Promise<number> {
  const { session_id, events } = recorded
  const forth: number[] = []
  const back: number[] = []
  for await (const { seq } of api.events(session_id, { limit: WALK_PAGE })) forth.push(seq)
  for await (const { seq } of api.events(session_id, { limit: WALK_PAGE, time_desc: true })) back.push(seq)
  const expected = events.map((_, index) => index + 1)
  if (!isDeepStrictEqual(forth, expected))
    differences.push(`Session ${session_id} is out of order from the first on`)
  if (!isDeepStrictEqual(back, expected.toReversed())) {
    differences.push(`Session ${session_id} is out of order from the last on`)
  }
  return forth.length + back.length
}

/**
 * Reads every event of a session and compares it with what the file says and with what adding it answered:
 * seq without gaps, type, data to the last value, id, and a time that never goes back. Gives how many are equal.
 */
export async function checkEvents(
  api: AnnalsApi,
  recorded: RecordedRun,
  differences: string[],
): Promise<number> {
  const { session_id, events } = recorded
  let equal = 0
  let position = 0
  let latest = ''
  for await (const event of api.events(session_id, { limit: READ_PAGE })) {
    const expected = events[position]
    position += 1
    const wrong = [
      event.seq !== position && `seq ${event.seq}`,
      event.session_id !== session_id && `session ${event.session_id}`,
      event.created_at < latest && 'an earlier time',
      !expected && 'no place in the file',
      expected && event.id !== expected.id && `id ${event.id}`,
      expected && event.type !== expected.type && `type ${event.type}`,
      expected && !isDeepStrictEqual(event.data, expected.data) && 'other data',
    ].filter((part) => typeof part === 'string')
    latest = event.created_at
    if (wrong.length === 0) equal += 1
    else differences.push(`Event ${position} of session ${session_id} came back with ${wrong.join(', ')}`)
  }
  if (position < events.length) {
    differences.push(`Session ${session_id} came back with ${position} of ${events.length} events`)
  }
  return equal
}
