import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'

/** Time on a processor that the event loop may work at a stretch. */
export const STRETCH_MS_MAX = 20
/** A machine that is busy makes some stretches longer, but neither again and again nor as long as this. */
const ATTEMPTS = 6
const SURE_MS_MIN = 200

/** What a service is started with, so that its event loop is watched. */
export interface LoopWatch {
  env: Record<string, string>
  /**
   * Makes a request until the longest stretch that the loop worked meanwhile is short enough, some times at most. Gives
   * the shortest of these, in ms of processor time.
   */
  stretchOf(request: () => Promise<{ status: number }>): Promise<number>
  /** The same of one time: for what is only long when it is done first. */
  stretchOfFirst(request: () => Promise<{ status: number }>): Promise<number>
  /** Notes the request under a name if its stretch is too long. */
  check(name: string, request: () => Promise<{ status: number }>): Promise<void>
  /** What was noted since the last time. */
  noted(): string[]
}

export function watchEventLoop(): LoopWatch {
  const socket = join(tmpdir(), `annals-loop-${randomBytes(6).toString('hex')}.sock`)
  const preload = new URL('./event_loop_watch.mjs', import.meta.url).href
  // Since it was last asked.
  const longest = async () => {
    let text = ''
    for await (const chunk of connect(socket).setEncoding('utf8')) text += chunk
    return (JSON.parse(text) as { longest_ms: number }).longest_ms
  }
  const stretchOfFirst: LoopWatch['stretchOfFirst'] = async (request) => {
    await longest()
    expect((await request()).status).not.toBe(500)
    return longest()
  }
  const stretchOf: LoopWatch['stretchOf'] = async (request) => {
    let shortest_ms = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < ATTEMPTS && shortest_ms > STRETCH_MS_MAX; attempt++) {
      if (attempt > 0 && shortest_ms > SURE_MS_MIN) break
      shortest_ms = Math.min(shortest_ms, await stretchOfFirst(request))
    }
    return shortest_ms
  }
  const long: string[] = []
  return {
    env: { NODE_OPTIONS: `--import=${preload}`, LOOP_WATCH_SOCKET: socket },
    stretchOf,
    stretchOfFirst,
    check: async (name, request) => {
      const stretch_ms = await stretchOf(request)
      if (stretch_ms > STRETCH_MS_MAX) long.push(`${name}: ${stretch_ms.toFixed(0)} ms`)
    },
    noted: () => long.splice(0),
  }
}
