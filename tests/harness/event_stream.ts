import { request } from 'node:http'
import { expect, vi } from 'vitest'
import type { Query } from './http_client.ts'
import type { TimelineItem } from './session_log.ts'

export interface Frame {
  id: string
  event: string
  /** How many `data:` lines the frame had. */
  dataLines: number
  item: TimelineItem
}

/** An open live tail, or the answer that refused it. */
export interface Tail {
  status: number
  contentType: string
  /** Everything that came, for an answer that is no stream. */
  text: string
  frames: Frame[]
  /** What an EventSource would send as Last-Event-ID. */
  lastEventId: string
  comments: string[]
  ended: boolean
  seqs(): number[]
  /** Resolves when at least `count` frames have come. */
  received(count: number, timeout_ms?: number): Promise<Frame[]>
  whenEnded(timeout_ms?: number): Promise<void>
  close(): void
}

interface TailOptions {
  query?: Query
  headers?: Record<string, string>
}

/** Resolves when the answer's headers have come. */
export function openTail(
  url: string,
  token: string,
  sessionId: string,
  options: TailOptions = {},
): Promise<Tail> {
  const target = new URL(`${url}/api/v1/session/${sessionId}/timeline`)
  for (const [name, value] of Object.entries(options.query ?? {}))
    target.searchParams.set(name, String(value))
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', ...options.headers }
  return new Promise((resolve, reject) => {
    const call = request(target, { headers, agent: false }, (response) => {
      let unread = ''
      const tail: Tail = {
        status: response.statusCode!,
        contentType: response.headers['content-type'] ?? '',
        text: '',
        frames: [],
        lastEventId: '',
        comments: [],
        ended: false,
        seqs: () => tail.frames.map((frame) => frame.item.seq),
        received: async (count, timeout = 10_000) => {
          await vi.waitFor(() => expect(tail.frames.length).toBeGreaterThanOrEqual(count), {
            timeout,
            interval: 10,
          })
          return tail.frames
        },
        whenEnded: (timeout = 10_000) =>
          vi.waitFor(() => expect(tail.ended, 'the tail has ended').toBe(true), { timeout, interval: 20 }),
        close: () => call.destroy(),
      }
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        tail.text += chunk
        const blocks = (unread + chunk).split('\n\n')
        unread = blocks.pop()!
        for (const block of blocks) read(block, tail)
      })
      response.on('error', () => {})
      response.on('close', () => {
        tail.ended = true
      })
      resolve(tail)
    })
    call.on('error', reject)
    call.end()
  })
}

function read(block: string, tail: Tail): void {
  const lines = block.split('\n').filter((line) => line !== '')
  tail.comments.push(...lines.filter((line) => line.startsWith(':')))
  const values = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart())
  tail.lastEventId = values('id').at(-1) ?? tail.lastEventId
  const data = values('data')
  if (data.length === 0) return
  tail.frames.push({
    id: values('id').join('|'),
    event: values('event').join('|'),
    dataLines: data.length,
    item: JSON.parse(data.join('\n')) as TimelineItem,
  })
}
