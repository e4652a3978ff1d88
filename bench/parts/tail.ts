import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../../lab/statistics.ts'
import type { Figure, Part } from '../part.ts'
import type { Service } from '../service.ts'
import { callApi, createSessions, toolCall } from '../sessions.ts'

const SESSIONS = 20
const PAUSE_MS = 100

/** How long after an append's answer those who tail the session have the entry. */
export const tail: Part = {
  name: 'tail',
  describe: "from an append's answer to the readers of a live tail, on the same node and on another",
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const node = await ctx.startService(database)
    const other = await ctx.startService(database)
    const sessions = await createSessions(node, SESSIONS)
    const tails = await Promise.all(
      sessions.map(async (id) => ({ id, same: await follow(node, id), other: await follow(other, id) })),
    )
    ctx.atEnd(() => {
      for (const { same, other } of tails) for (const { close } of [same, other]) close()
    })
    const same_ms: number[] = []
    const other_ms: number[] = []
    const appendFor = async (until: number, { id, same, other }: (typeof tails)[number], lags: Lags) => {
      for (let index = 0; performance.now() < until; index++) {
        await sleep(Math.random() * 2 * PAUSE_MS)
        const request = {
          method: 'POST',
          path: `/api/v1/session/${id}/events`,
          body: JSON.stringify(toolCall(index)),
        }
        const { seq } = await callApi<{ seq: number }>(node, request)
        const answered_at = performance.now()
        lags.same.push(Math.max((await same.received(seq)) - answered_at, 0))
        lags.other.push(Math.max((await other.received(seq)) - answered_at, 0))
      }
    }
    for (let round = 0; round <= ctx.rounds; round++) {
      ctx.say(round === 0 ? 'warming up' : `round ${round} of ${ctx.rounds}`)
      const lags: Lags = { same: [], other: [] }
      const until = performance.now() + (round === 0 && !ctx.quick ? 1_000 : ctx.seconds * 1_000)
      await Promise.all(tails.map((one) => appendFor(until, one, lags)))
      if (round === 0) continue
      same_ms.push(p99(lags.same))
      other_ms.push(p99(lags.other))
      ctx.detail(`appends of round ${round}`, lags.same.length)
    }
    const figure = (name: string, values: number[]): Figure => {
      return { name: `${name}: p99`, unit: 'ms', better: 'lower', values, at_least: 100, aim: 20 }
    }
    return [figure('append to tail, same node', same_ms), figure('append to tail, other node', other_ms)]
  },
}

interface Lags {
  same: number[]
  other: number[]
}

function p99(values: number[]): number {
  return percentile(Float64Array.from(values).sort(), 0.99)
}

interface Follower {
  /** When the entry came, as `performance.now()` has it; waits for it if it has not come yet. */
  received(seq: number): Promise<number>
  close(): void
}

/** Tails a session that is still empty. */
async function follow(service: Service, session: string): Promise<Follower> {
  const headers = { authorization: `Bearer ${service.token}`, accept: 'text/event-stream' }
  const request = get(`${service.url}/api/v1/session/${session}/timeline`, { headers, agent: false })
  const stream = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })
  request.on('error', () => {})
  const times = new Map<number, number>()
  const waiting = new Map<number, (time: number) => void>()
  let rest = ''
  stream.setEncoding('utf8').on('data', (text: string) => {
    const now = performance.now()
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const seq = Number(/^id: (\d+)$/.exec(line)?.[1])
      if (!seq) continue
      times.set(seq, now)
      waiting.get(seq)?.(now)
      waiting.delete(seq)
    }
  })
  return {
    received: async (seq) => times.get(seq) ?? new Promise((resolve) => waiting.set(seq, resolve)),
    close: () => request.destroy(),
  }
}
