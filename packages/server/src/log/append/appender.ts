import { AnnalsError } from '@annals/kits/errors.js'
import { FairQueue, Quota } from '@annals/kits/fairness/fair_queue.js'
import type { SharedDatabase } from '@annals/kits/postgres/database.js'
import type { UsageDirectory } from '../../projects/usage.js'
import { type AppendOutcome, type AppendRequest, type PendingAppend, storedOf } from './append_request.js'
import { flush, type OnTrouble } from './flush.js'
import { type Flight, FlushTurns, Lane, type MachineOf, type Turn } from './lane.js'

/**
 * Answers per turn of the event loop. Writing one takes tens of microseconds, and a flush has hundreds: writing all
 * at once would delay everything else, above all the end of another flush, and leave the database idle.
 */
const ANSWERS_A_TURN = 16

interface Answer {
  give(value: unknown): void
  value: unknown
}

/**
 * Answers appends a few at a time, with projects taking turns, so that each delays the others by one turn at most.
 */
export class Answers {
  private readonly waiting = new FairQueue<Answer>()
  private readonly quota = new Quota(ANSWERS_A_TURN)
  private isGiving = false

  give<T>(project_id: string, give: (value: T) => void, value: T): void {
    this.waiting.add(project_id, { give, value } as Answer)
    if (this.isGiving) return
    this.isGiving = true
    setImmediate(this.giveSome)
  }

  private readonly giveSome = () => {
    for (let left = this.quota.turn(performance.now()); left > 0; left -= 1) {
      const answer = this.waiting.next()
      if (!answer) break
      answer.give(answer.value)
    }
    this.isGiving = this.waiting.size > 0
    if (this.isGiving) setImmediate(this.giveSome)
    else this.quota.rest()
  }
}

export interface AppenderOptions {
  database: SharedDatabase
  /** Requests that may wait, over all projects. */
  queue_requests_max: number
  /** Bytes of bodies that may wait, over all projects. */
  queue_bytes_max: number
  /** Longest expected wait in its project's lane for an append to be accepted, in ms; unlimited by default. */
  queue_wait_ms_max?: number | undefined
  /** Flushes in flight at once, over all projects. */
  flushes_max: number
  /** Where projects are on several machines, of which some may be away. */
  machineOf?: MachineOf | undefined
  /** `off`: each append is its own flush, and a project may have as many in flight as the limit allows. */
  group_commit?: string
  /**
   * How long a project's next flush may wait for further requests of the callers just answered, in ms; 0 by default.
   */
  gather_ms_max?: number
  /** Called with the sessions of a project that may have new entries, as soon as these are durable. */
  onAppended?: (project_id: string, session_ids: ReadonlySet<string>) => void
  /** Called when a request has stored new entries, once for each: see UsageDirectory.stored. */
  onStored?: UsageDirectory['stored']
  /** Called after each flush: its entries, how long the oldest had waited, and how long it took. */
  onFlush?: (report: { entries: number; wait_ms: number; ms: number }) => void
  /** Called with what goes wrong in flushes; see log/append/flush.ts. */
  onTrouble?: OnTrouble
  /** Called at each append; `aroundFlush` gets its result. */
  originOf?: (() => unknown) | undefined
  /** Wraps each flush; must run it, once. */
  aroundFlush?: ((taken: readonly PendingAppend[], run: () => Promise<void>) => Promise<void>) | undefined
  /** Longest wait of a request for its flush to begin, and of a flush for a connection, in ms. */
  wait_ms_max: number
  /** Longest wait of a flush in flight for the database's answer, in ms; the same by default. */
  commit_ms_max?: number
}

/**
 * Group commit for the session logs of all projects. Projects take turns: a busy one delays a quiet one by one flush.
 */
export class Appender {
  private readonly lanes = new Map<unknown, Lane>()
  private readonly turns: FlushTurns
  private flushesInFlight = 0
  waitingRequests = 0
  private waitingBytes = 0
  private readonly answers = new Answers()
  private readonly expiry: NodeJS.Timeout

  constructor(private readonly options: AppenderOptions) {
    this.turns = new FlushTurns(options.flushes_max, options.machineOf)
    this.expiry = setInterval(() => this.expire(), Math.min(100, options.wait_ms_max))
    this.expiry.unref()
  }

  /**
   * Appends to the log of a session, or of several. Resolves when the entries are durable.
   * @throws AnnalsError session_not_found, seq_conflict, idempotency_key_reused, invalid_request (a value that
   * cannot be stored), payload_too_large (merged configs), overloaded, unavailable; AppendInDoubt.
   */
  append(request: AppendRequest): Promise<AppendOutcome> {
    const { project_id } = request
    let bytes = 0
    for (const entry of request.entries) bytes += entry.bytes
    if (this.isBehind(project_id) || !this.makeRoom(project_id, bytes))
      return Promise.reject(new AnnalsError('overloaded'))
    return new Promise((resolve, reject) => {
      this.enqueue({
        request,
        bytes,
        enqueued_at: performance.now(),
        origin: this.options.originOf?.(),
        followers: [],
        resolve: (outcome) => {
          if (!outcome.replayed) this.options.onStored?.(project_id, storedOf(request, outcome), request.room)
          this.answers.give(project_id, resolve, outcome)
        },
        reject: (error) => this.answers.give(project_id, reject, error),
      })
    })
  }

  /**
   * Whether another append of a project could not be stored in time, because of its lane's backlog or of the lanes
   * whose turn comes first. If so, its body need not be read.
   */
  isBehind(project_id: string): boolean {
    const { queue_wait_ms_max = Number.POSITIVE_INFINITY } = this.options
    const own_ms = this.lanes.get(project_id)?.wait_ms ?? 0
    return own_ms + this.turns.wait_ms > queue_wait_ms_max
  }

  load(): { requests: number; bytes: number; flushes: number } {
    return { requests: this.waitingRequests, bytes: this.waitingBytes, flushes: this.flushesInFlight }
  }

  /** Stops the timers. Requests in flight are answered; the caller sends no more. */
  close(): void {
    clearInterval(this.expiry)
  }

  private enqueue(pending: PendingAppend): void {
    const { project_id } = pending.request
    const name = this.options.group_commit === 'off' ? pending : project_id
    let lane = this.lanes.get(name)
    if (!lane) {
      lane = new Lane(name, project_id)
      this.lanes.set(name, lane)
    }
    lane.add(pending)
    this.waitingRequests += 1
    this.waitingBytes += pending.bytes
    this.nextTurn(lane)
  }

  /** Queues a lane for its turn if it is ready, forgets it if it is idle, and gives free slots to those whose turn it is. */
  private nextTurn(lane: Lane): void {
    if (lane.isIdle) this.lanes.delete(lane.name)
    else if (lane.wantsTurn(this.mayDouble)) {
      lane.isReady = true
      this.turns.add(lane)
    }
    while (this.flushesInFlight < this.options.flushes_max) {
      const next = this.turns.next()
      if (!next) return
      next.isReady = false
      if (next.flights === 0 || this.mayDouble) void this.flushLane(next)
    }
  }

  /** Whether a project with a flush in flight may have another: only while fewer than half of the slots are busy. */
  private get mayDouble(): boolean {
    return this.flushesInFlight < this.options.flushes_max / 2
  }

  private async flushLane(lane: Lane): Promise<void> {
    const flight = lane.depart()
    const { taken } = flight
    for (const pending of taken) {
      this.leaveQueue(lane, pending)
      for (const follower of pending.followers) this.leaveQueue(lane, follower)
    }
    if (taken.length === 0) return this.nextTurn(lane)
    this.flushesInFlight += 1
    const began = performance.now()
    const turn = this.turns.begin(lane.project_id)
    let isCommitted = false
    const onCommitted = () => {
      if (isCommitted) return
      isCommitted = true
      this.flushed(lane, flight, began, turn)
    }
    const { database, wait_ms_max, commit_ms_max, onTrouble, aroundFlush } = this.options
    const limits = { wait_ms_max, commit_ms_max, onTrouble, onCommitted, turn }
    const run = () => flush(database.of(lane.project_id), taken, limits)
    await (aroundFlush ? aroundFlush(taken, run) : run())
    onCommitted()
  }

  private flushed(lane: Lane, flight: Flight, began: number, turn: Turn): void {
    const { taken, entries, sessions } = flight
    const { onFlush, onAppended, gather_ms_max = 0 } = this.options
    const ms = performance.now() - began
    onFlush?.({ entries, wait_ms: began - taken[0]!.enqueued_at, ms })
    turn.end(ms)
    this.flushesInFlight -= 1
    lane.arrive(flight, ms)
    if (gather_ms_max > 0) lane.gather(flight, gather_ms_max, () => this.nextTurn(lane))
    this.nextTurn(lane)
    onAppended?.(lane.project_id, sessions)
  }

  /**
   * Whether the queue can accept another request. When it is full, the project that fills most of it gives up its
   * newest request: one tenant may use the whole queue while nobody else needs it, but cannot keep others out.
   */
  private makeRoom(project_id: string, bytes: number): boolean {
    const { queue_requests_max, queue_bytes_max } = this.options
    if (bytes > queue_bytes_max) return false
    const own = this.lanes.get(project_id)?.backlog
    for (;;) {
      const short = this.waitingRequests >= queue_requests_max ? 'requests' : 'bytes'
      if (short === 'bytes' && this.waitingBytes + bytes <= queue_bytes_max) return true
      const added = short === 'bytes' ? bytes : 1
      let longest: Lane | undefined
      for (const lane of this.lanes.values()) {
        if (lane.backlog[short] > (longest?.backlog[short] ?? (own?.[short] ?? 0) + added)) longest = lane
      }
      const newest = longest?.waiting.pop()
      if (!longest || !newest) return false
      this.leaveQueue(longest, newest)
      newest.reject(new AnnalsError('overloaded'))
    }
  }

  private leaveQueue(lane: Lane, pending: PendingAppend): void {
    lane.backlog.remove(pending)
    this.waitingRequests -= 1
    this.waitingBytes -= pending.bytes
  }

  /** Gives up requests that waited too long. Nothing of them was sent, so nothing is stored. */
  private expire(): void {
    const now = performance.now()
    const limit = this.options.wait_ms_max
    for (const lane of this.lanes.values()) {
      if (lane.waiting[0] && now - lane.waiting[0].enqueued_at > limit) {
        const expired = lane.waiting.filter((pending) => now - pending.enqueued_at > limit)
        lane.waiting = lane.waiting.filter((pending) => now - pending.enqueued_at <= limit)
        for (const pending of expired) {
          this.leaveQueue(lane, pending)
          pending.reject(
            new AnnalsError(
              'unavailable',
              'The database did not answer in time. Nothing was stored; retry shortly.',
            ),
          )
        }
      }
    }
  }
}
