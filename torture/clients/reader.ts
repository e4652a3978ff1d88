import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../lab/random.ts'
import { markerOf, type Sighting } from '../check/journal.ts'
import { Caller } from './http.ts'
import type { OpenSession, Surroundings } from './surroundings.ts'

const PAGE = 200
const SESSIONS_IN_USE = 32

/** An item of the timeline, as JSON has it. */
export interface Item {
  seq: number
  id: string
  /** Of an event. */
  data?: unknown
  /** Of a message. */
  blob?: unknown
}

/** Reads pieces of logs: in order, without gaps, and with everything that anybody was told of before. */
export class Reader {
  private readonly name: string
  private readonly around: Surroundings
  private readonly random: Random
  private readonly caller: Caller

  constructor(name: string, around: Surroundings, random: Random) {
    this.name = name
    this.around = around
    this.random = random
    this.caller = new Caller(around.traffic)
  }

  async run(): Promise<void> {
    while (this.around.isRunning()) {
      await sleep(this.random.integer(50, 300))
      const { sessions } = this.around
      if (sessions.length > 0) await this.read(this.random.pick(sessions.slice(-SESSIONS_IN_USE)))
    }
  }

  close(): void {
    this.caller.close()
  }

  private async read({ session_id, tenant }: OpenSession): Promise<void> {
    const { journal, nodes } = this.around
    const newest = journal.newestSeq(session_id)
    const after = Math.max(0, newest - this.random.integer(0, PAGE))
    const { status, data } = await this.caller.call(this.random.pick(nodes), {
      method: 'GET',
      path: `/session/${session_id}/timeline?after_seq=${after}&limit=${PAGE}`,
      token: tenant.token,
    })
    if (status !== 200) return
    const { items, has_more } = data as { items: Item[]; has_more: boolean }
    let last = after
    for (const item of items) {
      journal.follow(session_id, last, sightingOf(item), this.name)
      last = item.seq
    }
    if (last < newest && !has_more)
      journal.lost.push(
        `${this.name} read ${session_id} up to seq ${last} after seq ${newest} was acknowledged`,
      )
  }
}

/** What an item shows. */
export function sightingOf({ seq, id, data, blob }: Item): Sighting {
  return { seq, id, marker: markerOf(blob ?? data) }
}
