import { createHash } from 'node:crypto'
import type { Annals, RunnerRequest } from '@annals/client'
import { ExactNumber, parseJson } from '@annals/messages/json'
import { escapeJson } from './escape.js'

/** Arguments of more bytes are shown by their beginning, and bound by their digest: a request has 64 KiB. */
const ARGUMENTS_BYTES_MAX = 48 * 1024
const BEGINNING_LENGTH = 4_000
const NAME_LENGTH_MAX = 256
/** How often open requests are read again, since nothing tells of one that expires. */
const READ_AGAIN_MS = 30_000

/** A call that needs a yes before it runs. */
export interface WaitingCall {
  /** The request's id, a UUID: the same in a retry, also of another process, and another one for any other wait. */
  id: string
  name: string
  /** JSON as the model wrote it. */
  arguments: string
  /** A text for the person, shown next to the call. */
  text: string
}

/** Opens a request for each call, once; returns those that were opened before as they are now. */
export async function askForCalls(
  annals: Annals,
  session_id: string,
  calls: readonly WaitingCall[],
  fence?: number | undefined,
): Promise<RunnerRequest[]> {
  const requests: RunnerRequest[] = []
  for (const { id, name, arguments: written, text } of calls) {
    const call = { name: name.slice(0, NAME_LENGTH_MAX) || 'tool', arguments: argumentsOf(written) }
    const asked = escapeJson({ id, kind: 'approval' as const, call, text })
    requests.push(await annals.runs.request(session_id, asked, fence === undefined ? {} : { fence }))
  }
  return requests
}

/**
 * The requests, as soon as none of them is open.
 * @throws the signal's reason
 */
export async function answersTo(
  annals: Annals,
  asked: readonly RunnerRequest[],
  signal?: AbortSignal | undefined,
): Promise<RunnerRequest[]> {
  let requests = [...asked]
  for (;;) {
    const left = requests.filter(({ state }) => state === 'open')
    if (left.length === 0) return requests
    const again = new AbortController()
    const timer = setTimeout(() => again.abort(), READ_AGAIN_MS)
    const stop = () => again.abort()
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    const after = Math.min(...left.map(({ seq }) => seq))
    const answers = annals.sessions.tail(left[0]!.session_id, {
      after,
      type: 'annals.resolution',
      signal: again.signal,
    })
    try {
      for await (const item of answers)
        if (item.kind === 'event' && left.some(({ id }) => id === item.data.request_id)) break
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
    signal?.throwIfAborted()
    requests = await Promise.all(
      requests.map((one) => (one.state === 'open' ? annals.runs.getRequest(one.id) : one)),
    )
  }
}

/** What the model is told of a call that does not run. */
export function reasonOf({ state, by }: RunnerRequest): string {
  if (state === 'expired') return 'Nobody approved this call in time.'
  return by === undefined ? 'This call was denied.' : `This call was denied by ${by}.`
}

/** The arguments that a person is shown, and whose digest is approved: exact, or the text itself. */
function argumentsOf(written: string): unknown {
  const bytes = Buffer.byteLength(written)
  if (bytes > ARGUMENTS_BYTES_MAX) {
    const sha256 = createHash('sha256').update(written).digest('hex')
    return { beginning: written.slice(0, BEGINNING_LENGTH), bytes, sha256 }
  }
  try {
    const parsed = parseJson(written)
    return isExact(parsed) ? parsed : written
  } catch {
    return written
  }
}

/** RFC 8785, by which calls are approved, takes numbers for doubles. */
function isExact(value: unknown): boolean {
  if (value instanceof ExactNumber) return false
  return typeof value !== 'object' || value === null || Object.values(value).every(isExact)
}
