import { randomUUID } from 'node:crypto'
import { FairSemaphore } from '@annals/kits/fairness/fair_queue.js'
import { type Background, Loop } from '@annals/kits/lifecycle/background.js'
import { type Post, PostFailed, postJson } from '@annals/kits/outgoing/post_json.js'
import type { Row } from '@annals/kits/postgres/database.js'
import { Webhook } from 'standardwebhooks'
import { LogReader } from '../log/read/read_log.js'
import { READ_REQUEST } from '../runs/run_queries.js'
import {
  AFTER_ATTEMPT,
  FIND_DUE_WEBHOOKS,
  FIND_INPUT,
  FIND_NEXT_ENTRY,
  LEASE_DELIVERY,
  NOTE_FAILURE,
} from './webhook_queries.js'

const POLL_MS = 5_000
/** A consumer's write is committed by then. */
const WAKE_MS = 100
/** Longer than an attempt and the wait for its place. */
const LEASE_S = 60
const PLACE_MS_MAX = 30_000
/** Most attempts at once: at this node, and for one webhook. */
const ATTEMPTS_MAX = 64
const ATTEMPTS_OF_WEBHOOK_MAX = 2
/** Entries of a session before others of the webhook have their turn. */
const ENTRIES_A_TURN = 50
/** A larger entry is announced without itself. */
const ENTRY_BYTES_MAX = 256 * 1024
const RETRY_S = { first: 5, max: 3_600 }

export interface DeliveriesOptions extends Background {
  /** Whether deliveries may go to any address. */
  to_private: boolean
  poll_ms?: number
  /** Attempts at once at this node. */
  attempts_max?: number
  /** Longest wait of an attempt for its place. */
  place_ms_max?: number
}

interface Target {
  project_id: string
  webhook_id: string
}

interface Turn extends Target {
  /** Or an input, of `input_session`. */
  session_id: string
  input_session: string | null
  lease: string
  attempts: number
}

/**
 * Delivers entries to webhooks, at each node.
 *
 *   a consumer's work at this node, or the poll ──▶ a webhook has something due ──▶ sessions are leased, two at a time
 *   ──▶ their entries are posted in order, until there are none or one fails ──▶ released, until its next attempt
 *
 * A webhook has two attempts at once, whatever waits for it, and projects share the node's: a receiver that is slow, or
 * away, delays only its own deliveries. An attempt holds no connection to the database.
 */
export class Deliveries {
  private readonly loop: Loop<Target>
  private readonly places: FairSemaphore

  constructor(private readonly options: DeliveriesOptions) {
    const { poll_ms = POLL_MS, attempts_max = ATTEMPTS_MAX, place_ms_max = PLACE_MS_MAX } = options
    const refusal = () => new NoPlace()
    this.places = new FairSemaphore({ places_max: attempts_max, wait_ms_max: place_ms_max, refusal })
    this.loop = new Loop<Target>({
      ...options,
      failure: 'webhooks will be tried again',
      poll: () => this.poll(),
      poll_ms,
      run: (target) =>
        Promise.all(Array.from({ length: ATTEMPTS_OF_WEBHOOK_MAX }, () => this.takeTurns(target))),
    })
  }

  /** Something may be due for webhooks of a project as soon as the transaction under way is committed. */
  added(project_id: string, webhook_ids: Iterable<string>): void {
    for (const webhook_id of webhook_ids) this.loop.plan(webhook_id, { project_id, webhook_id }, WAKE_MS)
  }

  ended(): Promise<void> {
    return this.loop.ended()
  }

  private async poll(): Promise<void> {
    const due = await this.options.database.query(FIND_DUE_WEBHOOKS, [])
    for (const { project_id, webhook_id } of due)
      this.loop.plan(webhook_id!, { project_id: project_id!, webhook_id: webhook_id! }, 0)
  }

  private async takeTurns(target: Target): Promise<void> {
    const { database, signal } = this.options
    while (!signal.aborted) {
      const lease = randomUUID()
      const [row] = await database.query(LEASE_DELIVERY, [
        target.project_id,
        target.webhook_id,
        lease,
        LEASE_S,
      ])
      if (!row) return
      const { session_id, input_session = null, attempts } = row
      const turn = { ...target, session_id: session_id!, input_session, lease, attempts: Number(attempts) }
      await this.takeTurn(turn, row).finally(() => signal.aborted && this.release(turn, 0))
    }
  }

  private async takeTurn(turn: Turn, row: Row): Promise<void> {
    const { database, signal } = this.options
    const owned = [turn.project_id, turn.webhook_id, turn.session_id]
    if (turn.input_session !== null)
      return this.tellOfInput(turn, turn.input_session, row.delivered_seq === row.through_seq)
    let delivered = Number(row.delivered_seq)
    let through = Number(row.through_seq)
    for (let entries = 0; entries < ENTRIES_A_TURN && delivered < through && !signal.aborted; ) {
      const [next] = await database.query(FIND_NEXT_ENTRY, [...owned, delivered, through])
      if (!next) return
      if (next.seq !== null) {
        entries += 1
        if (!(await this.attempt(turn, next.seq!, () => this.signed(turn, next)))) return
      }
      delivered = Number(next.seq ?? next.reached_seq)
      const [moved] = await database.query(AFTER_ATTEMPT.advance, [...owned, turn.lease, delivered, LEASE_S])
      if (!moved) return
      through = Number(moved.through_seq)
    }
    await database.query(AFTER_ATTEMPT.end, [...owned, turn.lease])
    await this.release(turn, 0)
  }

  /** An input that is no longer pending has been seen to. */
  private async tellOfInput(turn: Turn, session_id: string, isGivenUp: boolean): Promise<void> {
    const { database } = this.options
    const { project_id, webhook_id, session_id: input_id, lease } = turn
    const [row] = isGivenUp
      ? []
      : await database.query(FIND_INPUT, [project_id, webhook_id, session_id, input_id])
    const signed = async () => {
      const input = Number(row!.bytes) <= ENTRY_BYTES_MAX ? row!.json : 'null'
      const data = `{"session_id":"${session_id}","input_id":"${input_id}","input":${input}}`
      return this.delivery(row!, `${session_id}-input-${input_id}`, '"input.added"', data)
    }
    if (row && !(await this.attempt(turn, null, signed))) return
    const owned = [project_id, webhook_id, input_id, lease]
    await database.query(AFTER_ATTEMPT.advance, [...owned, 0, LEASE_S])
    await database.query(AFTER_ATTEMPT.end, owned)
  }

  private async release({ project_id, webhook_id, session_id, lease }: Turn, pause_s: number): Promise<void> {
    const owned = [project_id, webhook_id, session_id, lease]
    await this.options.database.query(AFTER_ATTEMPT.release, [...owned, pause_s])
  }

  /** Posts an entry. Returns whether it was delivered; else the session is released until the next attempt. */
  private async attempt(turn: Turn, seq: string | null, signed: () => Promise<Post>): Promise<boolean> {
    const { database, signal } = this.options
    const owned = [turn.project_id, turn.webhook_id, turn.session_id, turn.lease]
    try {
      const post = await signed()
      await this.places.run(turn.project_id, () => postJson(post))
      return true
    } catch (error) {
      if (signal.aborted) return false
      if (error instanceof NoPlace) {
        // Nothing is wrong: its turn comes later.
        await this.release(turn, RETRY_S.first)
        return false
      }
      if (!(error instanceof PostFailed)) {
        this.loop.warn(error, { project_id: turn.project_id, webhook_id: turn.webhook_id })
        return false
      }
      const pause_s = Math.min(RETRY_S.first * 2 ** Math.min(turn.attempts, 20), RETRY_S.max)
      const failed = [...owned, pause_s * (0.75 + Math.random() / 2), seq, turn.input_session]
      const [row] = await database.query(AFTER_ATTEMPT.fail, failed)
      const noted = [turn.project_id, turn.webhook_id, error.message, row?.given_up === 't']
      await database.query(NOTE_FAILURE, noted)
      return false
    }
  }

  /** The request that tells of an entry. Every attempt has the same id. */
  private async signed({ project_id, session_id }: Turn, next: Row) {
    const { database, signal } = this.options
    const { seq, type, bytes } = next
    let entry = 'null'
    if (Number(bytes) <= ENTRY_BYTES_MAX) {
      const log = new LogReader(database, { project_id, session_id }, undefined, () => !signal.aborted)
      for await (const [read] of log.readSeqs([Number(seq)])) entry = read!.json
    }
    let data = `"session_id":"${session_id}","seq":${seq},"entry":${entry}`
    if (type === 'request.opened') {
      const asked = JSON.parse(entry) as { data: { request_id: string } } | null
      const [request] = await database.query(READ_REQUEST, [project_id, asked?.data.request_id ?? null])
      data += `,"request":${request?.json ?? null}`
    }
    return this.delivery(next, `${session_id}-${seq}`, JSON.stringify(type), `{${data}}`)
  }

  private delivery({ url, secret }: Row, id: string, type: string, data: string): Post {
    const { signal, to_private } = this.options
    const now = new Date()
    const body = `{"type":${type},"timestamp":"${now.toISOString()}","data":${data}}`
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      'webhook-signature': new Webhook(secret!).sign(id, now, body),
    }
    return { url: url!, headers, body, to_private, signal }
  }
}

/** So many attempts are under way that this one waited too long for its place. */
class NoPlace extends Error {
  override readonly name = 'NoPlace'
}
