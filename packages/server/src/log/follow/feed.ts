import { inTurns } from '@annals/kits/fairness/fair_queue.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import type { Bell } from '@annals/kits/postgres/postgres_bell.js'
import { READ_HEADS } from '../read/read_queries.js'

const ID_LENGTH = 36

/** The name under which the feed knows the run of a session: its lease, inbox and requests, whose places are its seqs. */
export function runOf(session_id: string): string {
  return `${session_id}!`
}

/**
 * Wakes the tails of a session when its log grows. A tail then reads the log itself, by seq, so a wake-up carries no
 * data, may be spurious, and may be lost: that only costs time. Wake-ups come from
 *
 *   - this node's appender, at once;
 *   - another node, by NOTIFY, within milliseconds;
 *   - a poll of the heads of all tailed sessions every few seconds, one statement per project. Correctness rests on it.
 */
export class Feed {
  private readonly projects = new Map<string, Map<string, Set<Subscription>>>()
  private readonly timer: NodeJS.Timeout
  private polling = false
  private closed = false

  constructor(
    private readonly database: Queryable,
    private readonly bell: Bell,
    poll_ms: number,
  ) {
    bell.onRing((project_id, session_ids) => this.wake(project_id, session_ids))
    bell.onHeard(() => void this.poll())
    this.timer = setInterval(() => void this.poll(), poll_ms)
    this.timer.unref()
  }

  /** Called when this node appended to sessions of a project, or changed runs. */
  appended(project_id: string, session_ids: ReadonlySet<string>): void {
    this.wake(project_id, session_ids)
    this.bell.ring(project_id, session_ids)
  }

  /** Subscribes to a session, or to a run. What is neither is woken at each poll. Subscribe before reading, so that no entry is missed in between. */
  subscribe(project_id: string, session_id: string, seen_seq: number): Subscription {
    const sessions = this.projects.get(project_id) ?? new Map<string, Set<Subscription>>()
    this.projects.set(project_id, sessions)
    const subscriptions = sessions.get(session_id) ?? new Set<Subscription>()
    sessions.set(session_id, subscriptions)
    const subscription = new Subscription(seen_seq, () => {
      subscriptions.delete(subscription)
      if (subscriptions.size === 0) sessions.delete(session_id)
      if (sessions.size === 0) this.projects.delete(project_id)
      if (this.projects.size === 0) this.bell.listen(false)
    })
    subscriptions.add(subscription)
    this.bell.listen(true)
    if (this.closed) subscription.end()
    return subscription
  }

  load(): { sessions: number; subscriptions: number } {
    const sets = [...this.projects.values()].flatMap((sessions) => [...sessions.values()])
    return { sessions: sets.length, subscriptions: sets.reduce((sum, set) => sum + set.size, 0) }
  }

  tailsOf(project_id: string): number {
    const sets = [...(this.projects.get(project_id)?.values() ?? [])]
    return sets.reduce((sum, set) => sum + set.size, 0)
  }

  close(): void {
    this.closed = true
    clearInterval(this.timer)
    for (const subscription of this.all()) subscription.end()
  }

  private *all(): Generator<Subscription> {
    for (const sessions of [...this.projects.values()]) {
      for (const subscriptions of [...sessions.values()]) yield* [...subscriptions]
    }
  }

  private wake(project_id: string, session_ids: Iterable<string>): void {
    const sessions = this.projects.get(project_id)
    if (!sessions) return
    void inTurns(subscriptionsOf(sessions, session_ids), ([subscription]) => subscription.wake())
  }

  private async poll(): Promise<void> {
    if (this.polling) return
    this.polling = true
    try {
      for (const [project_id, sessions] of [...this.projects]) {
        const ids = new Set([...sessions.keys()].map((name) => name.slice(0, ID_LENGTH)))
        const rows = await this.database.query(READ_HEADS, [project_id, [...ids]])
        const heads = new Map(
          rows.flatMap(({ session_id, last_seq, run_place }) => [
            [session_id!, Number(last_seq)],
            [runOf(session_id!), Number(run_place)],
          ]),
        )
        await inTurns(subscriptionsOf(sessions, sessions.keys()), ([subscription, session_id]) => {
          // A deleted session, or one whose log became shorter, also wakes its tails: they find out when they read.
          if (subscription.seen_seq !== heads.get(session_id)) subscription.wake()
        })
      }
    } catch {
      // The database is unavailable; the next poll, or a reader's own query, will report it.
    } finally {
      this.polling = false
    }
  }
}

function* subscriptionsOf(
  sessions: ReadonlyMap<string, Set<Subscription>>,
  session_ids: Iterable<string>,
): Generator<[subscription: Subscription, session_id: string]> {
  for (const session_id of session_ids)
    for (const subscription of sessions.get(session_id) ?? []) yield [subscription, session_id]
}

export class Subscription {
  private readonly ending = new AbortController()
  private woken = false
  /** While an entry is sent of which a part is still missing. */
  writing = false
  private resume: (() => void) | undefined

  constructor(
    /** The last seq that the tail has read; the tail keeps it up to date. */
    public seen_seq: number,
    private readonly onClose: () => void,
  ) {}

  /** Resolves when the log may have grown since the last call, when the subscription has ended, or after `within_ms`. */
  async changed(within_ms?: number): Promise<void> {
    if (!this.woken && !this.ended) {
      const timer = within_ms === undefined ? undefined : setTimeout(() => this.wake(), within_ms)
      await new Promise<void>((resolve) => {
        this.resume = resolve
      })
      clearTimeout(timer)
    }
    this.woken = false
    this.resume = undefined
  }

  wake(): void {
    this.woken = true
    this.resume?.()
  }

  get ended(): boolean {
    return this.ending.signal.aborted
  }

  get signal(): AbortSignal {
    return this.ending.signal
  }

  end(): void {
    this.ending.abort()
    this.resume?.()
  }

  close(): void {
    this.end()
    this.onClose()
  }
}
