import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'

/** Time on a processor that the event loop may work at a stretch, on a machine that runs the yardstick in YARDSTICK_MS. */
export const STRETCH_MS_MAX = 20
const YARDSTICK_MS = 10
/** A machine that is busy makes some stretches longer, but neither again and again nor as long as this. */
const ATTEMPTS = 6
const SURE_MS_MIN = 200

/** What a service is started with, so that its event loop is watched. */
export interface LoopWatch {
  env: Record<string, string>
  /**
   * Makes a request until the longest stretch that the loop worked meanwhile is short enough, some times at most. Returns
   * the shortest of these, in ms of processor time of a machine that is as fast as YARDSTICK_MS says.
   */
  stretchOf(request: () => Promise<{ status: number }>): Promise<number>
  /** The same of one time: for what is only long when it is done first. */
  stretchOfFirst(request: () => Promise<{ status: number }>): Promise<number>
  /** Notes the request under a name if its stretch is too long. */
  check(name: string, request: () => Promise<{ status: number }>): Promise<void>
  /** What was noted since the last time. */
  noted(): string[]
}

/** Work of the kind that a service does, in ms of processor time. */
function yardstick() {
  const before = process.cpuUsage()
  let sum = 0
  for (let n = 0; n < 3_000_000; n++) sum = (sum * 31 + n) | 0
  const items = Array.from({ length: 4_000 }, (_, n) => ({ n, text: `text ${n}`, list: [n, sum] }))
  const json = JSON.stringify(items)
  for (let n = 0; n < 2; n++) JSON.parse(json)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** How many times slower than usual this machine is now: its speed may change threefold within an hour. */
function slowness() {
  const times = Array.from({ length: 9 }, yardstick).sort((a, b) => a - b)
  return Math.max(1, times[4]! / YARDSTICK_MS)
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
    const stretch_ms = await longest()
    return stretch_ms > STRETCH_MS_MAX ? stretch_ms / slowness() : stretch_ms
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
