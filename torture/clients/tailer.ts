import { type ClientRequest, request } from 'node:http'
import type { Random } from '../../lab/random.ts'
import { type Item, sightingOf } from './reader.ts'
import type { OpenSession, Surroundings } from './surroundings.ts'

const SESSIONS_IN_USE = 24

/**
 * Tails one session after the other. A tail that breaks, or that it leaves of its own accord, it takes up again
 * after the last entry that it was shown, at whichever node; what it is shown must go on there, once and in order.
 */
export class Tailer {
  session: OpenSession | undefined
  last_seq = 0
  /** Entries shown, and connections opened. */
  shown = 0
  connections = 0
  private readonly name: string
  private readonly around: Surroundings
  private readonly random: Random
  private call: ClientRequest | undefined
  private timer: NodeJS.Timeout | undefined
  private closed = false

  constructor(name: string, around: Surroundings, random: Random) {
    this.name = name
    this.around = around
    this.random = random
  }

  start(): void {
    if (this.closed) return
    const { sessions } = this.around
    const moveOn = this.around.isRunning() && this.random.chance(0.2)
    if (!this.session || moveOn) {
      if (sessions.length === 0) {
        this.again(100)
        return
      }
      this.session = this.random.pick(sessions.slice(-SESSIONS_IN_USE))
      this.last_seq = Math.max(0, this.around.journal.newestSeq(this.session.session_id) - 50)
    }
    this.connect(this.session)
  }

  close(): void {
    this.closed = true
    clearTimeout(this.timer)
    this.call?.destroy()
  }

  private connect({ session_id, tenant }: OpenSession): void {
    this.connections += 1
    const node = this.random.pick(this.around.nodes)
    const headers = {
      authorization: `Bearer ${tenant.token}`,
      accept: 'text/event-stream',
      'last-event-id': String(this.last_seq),
    }
    const call = request(`${node.url}/api/v1/session/${session_id}/timeline`, { headers, agent: false })
    this.call = call
    // Heartbeats come every 15 s: a tail that is silent for longer is dead, and so is one that is never answered.
    call.setTimeout(20_000, () => call.destroy())
    let gone = false
    const leave = () => {
      if (gone) return
      gone = true
      clearTimeout(ownAccord)
      this.again(this.random.integer(20, 300))
    }
    const ownAccord = setTimeout(() => call.destroy(), this.random.integer(2_000, 20_000))
    call.on('error', leave)
    call.on('close', leave)
    call.on('response', (response) => {
      let unread = ''
      response.setEncoding('utf8')
      response.on('error', leave)
      response.on('close', leave)
      response.on('data', (chunk: string) => {
        const blocks = (unread + chunk).split('\n\n')
        unread = blocks.pop()!
        if (response.statusCode === 200) for (const block of blocks) this.show(session_id, block)
      })
    })
    call.end()
  }

  private show(session_id: string, block: string): void {
    const data = block.split('\n').find((line) => line.startsWith('data: '))
    if (data === undefined) return
    const item = JSON.parse(data.slice(6)) as Item
    this.around.journal.follow(session_id, this.last_seq, sightingOf(item), this.name)
    this.last_seq = item.seq
    this.shown += 1
  }

  private again(ms: number): void {
    if (!this.closed) this.timer = setTimeout(() => this.start(), ms)
  }
}
