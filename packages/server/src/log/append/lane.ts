import { LRUCache } from 'lru-cache'
import {
  type AppendRequest,
  appendsOf,
  hasGivenIds,
  type PendingAppend,
  type SessionAppend,
} from './append_request.js'

/** Limits of one flush: a larger one would only delay its answers. */
export const FLUSH_ENTRIES_MAX = 500
export const FLUSH_BYTES_MAX = 1024 * 1024

export interface Flight {
  taken: PendingAppend[]
  sessions: ReadonlySet<string>
  entries: number
  bytes: number
}

const NONE: string[] = []

/**
 * Cuts the next flush from a project's queue, by the rules of APPEND_ENTRIES: a request with a condition, inputs or a change
 * of configs is alone on that session, those with a fence are with others of the same fence only, and each key and each caller's entry id occurs once. A request that does not fit waits for a later flush,
 * and so does everything after it on the same session, so a session's requests keep their order; one for
 * several sessions waits until it fits on all of them. A repeat of a
 * request that is taken joins it instead of waiting. Sessions that are `inFlight` wait for their flush to end.
 */
export function cutFlush(
  waiting: PendingAppend[],
  inFlight: ReadonlySet<string>,
): Flight & { deferred: PendingAppend[] } {
  const taken: PendingAppend[] = []
  const deferred: PendingAppend[] = []
  const sessions = new Set<string>()
  const conditionalSessions = new Set<string>()
  const fences = new Map<string, number>()
  const deferredSessions = new Set<string>()
  const byKey = new Map<string, PendingAppend>()
  const givenIds = new Set<string>()
  let entries = 0
  let bytes = 0
  // Also of those that retractions change.
  let changed = 0
  const isTaken = (append: SessionAppend) =>
    inFlight.has(append.session_id) ||
    deferredSessions.has(append.session_id) ||
    conditionalSessions.has(append.session_id) ||
    (isConditional(append) && sessions.has(append.session_id)) ||
    ((append.fence !== undefined || fences.size > 0) &&
      sessions.has(append.session_id) &&
      fences.get(append.session_id) !== append.fence)
  let index = 0
  for (; index < waiting.length; index++) {
    const pending = waiting[index]!
    const { request } = pending
    const change = changedBy(request)
    const isFull = changed + change > FLUSH_ENTRIES_MAX || bytes + pending.bytes > FLUSH_BYTES_MAX
    if (isFull && taken.length > 0) break
    const leader = request.idempotency && byKey.get(request.idempotency.key)
    if (leader && leader.request.idempotency?.request_hash === request.idempotency?.request_hash) {
      leader.followers.push(pending)
      continue
    }
    const appends = appendsOf(request)
    const mustWait = leader !== undefined || appends.some(isTaken)
    const ids = !mustWait && hasGivenIds(request) ? givenIdsOf(appends) : NONE
    if (mustWait || ids.some((id) => givenIds.has(id))) {
      deferred.push(pending)
      for (const { session_id } of appends) deferredSessions.add(session_id)
      continue
    }
    taken.push(pending)
    for (const append of appends) {
      sessions.add(append.session_id)
      if (append.fence !== undefined) fences.set(append.session_id, append.fence)
      if (isConditional(append)) conditionalSessions.add(append.session_id)
    }
    if (request.idempotency) byKey.set(request.idempotency.key, pending)
    for (const id of ids) givenIds.add(id)
    entries += request.entries.length
    bytes += pending.bytes
    changed += change
  }
  for (; index < waiting.length; index++) deferred.push(waiting[index]!)
  return { taken, deferred, sessions, entries, bytes }
}

/** How many entries a request stores and changes; as many as a flush has where nobody knows. */
function changedBy({ entries, retraction }: AppendRequest): number {
  if (!retraction) return entries.length
  if ('seqs' in retraction) return entries.length + retraction.seqs.length
  return entries.length + ('last' in retraction ? retraction.last : FLUSH_ENTRIES_MAX)
}

function isConditional({ if_match, unrevised_since, configs_patch, apply }: SessionAppend): boolean {
  return (
    if_match !== undefined ||
    unrevised_since !== undefined ||
    configs_patch !== undefined ||
    apply !== undefined
  )
}

function givenIdsOf(appends: readonly SessionAppend[]): string[] {
  return appends.flatMap(({ session_id, entries }) =>
    entries.filter(({ id_given }) => id_given).map(({ id }) => `${session_id}/${id}`),
  )
}

const MACHINES_AWAY_MAX = 10_000
/** Time constant of the average, in ms: after this much flush time, most of a change in speed has been taken in. */
const SETTLES_MS = 250
/** Least weight of the newest flush, so that a slow moment is forgotten after some quick ones. */
const NEWEST_COUNTS_MIN = 0.02
/**
 * The most that a flush counts for, in ms. One that takes longer mostly waits for a lock on one of its sessions, or on a
 * cluster for a machine that is slow or for its project to move, while those of other projects go on.
 */
const FLUSH_MS_MAX = 100
/** On a single server, so many times what flushes take at present: where all become slow, that is soon known. */
const GROWTH_MAX = 4

/** The machine that has a project, or the project itself as long as that is not known. */
export type MachineOf = (project_id: string) => string

/** A flush's hold on a slot. */
export interface Turn {
  /** Its database could not be reached. Returns whether it may keep the slot for another attempt. */
  foundAway(): boolean
  /** Frees the slot after this many ms. */
  end(ms: number): void
}

/**
 * The order in which projects get slots for their flushes. On a cluster, projects whose machine was away at the last flush
 * for it wait in a queue of their own, and hold no more than half of the slots: however many they are, and however long
 * their machine takes to fail, others are stored. On a single server all projects are away together.
 */
export class FlushTurns {
  private readonly ready: Lane[] = []
  private readonly readyAway: Lane[] = []
  private readonly away = new LRUCache<string, true>({ max: MACHINES_AWAY_MAX })
  private slotsAway = 0
  /** How long flushes take at present, over all projects. */
  private flush_ms = 0

  /** @param machineOf undefined on a single server */
  constructor(
    private readonly slots: number,
    private readonly machineOf: MachineOf | undefined,
  ) {}

  /** Expected wait of a lane for the turns before its own, in ms. */
  get wait_ms(): number {
    return Math.floor(this.ready.length / this.slots) * this.flush_ms
  }

  add(lane: Lane): void {
    const queue = this.machineOf && this.isAway(lane) ? this.readyAway : this.ready
    queue.push(lane)
  }

  next(): Lane | undefined {
    if (this.slotsAway < this.slots / 2) return this.readyAway.shift() ?? this.ready.shift()
    for (;;) {
      const lane = this.ready.shift()
      if (!lane || !this.isAway(lane)) return lane
      // It was queued before its machine was found away.
      this.readyAway.push(lane)
    }
  }

  begin(project_id: string): Turn {
    const { machineOf } = this
    const machine = machineOf?.(project_id) ?? project_id
    let isCounted = this.away.has(machine)
    let isAway = false
    let isOver = false
    if (isCounted) this.slotsAway += 1
    return {
      foundAway: () => {
        if (!machineOf || isOver) return true
        if (!isCounted) this.slotsAway += 1
        isCounted = true
        isAway = true
        this.away.set(machine, true)
        return this.slotsAway <= this.slots / 2
      },
      end: (ms) => {
        isOver = true
        if (isCounted) this.slotsAway -= 1
        if (isAway) return
        this.away.delete(machine)
        const counted_ms_max = Math.max(FLUSH_MS_MAX, machineOf ? 0 : GROWTH_MAX * this.flush_ms)
        const counted_ms = Math.min(ms, counted_ms_max)
        // By its share of time, not of flushes: a moment in which all commits stall is not overload.
        const weight = Math.max(-Math.expm1(-counted_ms / (this.slots * SETTLES_MS)), NEWEST_COUNTS_MIN)
        this.flush_ms += (counted_ms - this.flush_ms) * weight
      },
    }
  }

  private isAway({ project_id }: Lane): boolean {
    return this.machineOf !== undefined && this.away.has(this.machineOf(project_id))
  }
}

/** Weight of the newest flush in the average. */
const NEWEST_COUNTS = 0.3
/** Fuller flushes only: the others tell little about how long a full one takes. */
const FULL_ENOUGH = 0.5

/**
 * The backlog of one project's lane, and how long it will take: the number of flushes to come, times the recent
 * duration of a full flush. A backlog that fits into the next flush is never too long, so neither a single slow
 * commit nor a lock that somebody holds causes refusals.
 */
export class Backlog {
  requests = 0
  bytes = 0
  private entries = 0
  private full_flush_ms: number | undefined

  add(pending: PendingAppend): void {
    this.requests += 1
    this.bytes += pending.bytes
    this.entries += pending.request.entries.length
  }

  remove(pending: PendingAppend): void {
    this.requests -= 1
    this.bytes -= pending.bytes
    this.entries -= pending.request.entries.length
  }

  flushed({ entries, bytes }: Flight, ms: number): void {
    if (fullness(entries, bytes) < FULL_ENOUGH) return
    const before_ms = this.full_flush_ms ?? ms
    this.full_flush_ms = before_ms + (ms - before_ms) * NEWEST_COUNTS
  }

  get isFlush(): boolean {
    return fullness(this.entries, this.bytes) >= 1
  }

  /** Expected wait of one more request for its flush to begin, in ms. */
  get wait_ms(): number {
    return Math.floor(fullness(this.entries, this.bytes)) * (this.full_flush_ms ?? 0)
  }
}

/** How much of a flush's limits is used. */
function fullness(entries: number, bytes: number): number {
  return Math.max(entries / FLUSH_ENTRIES_MAX, bytes / FLUSH_BYTES_MAX)
}

/** Share of the previous requests whose successors a flush waits for. Callers who have left do not come back. */
const GATHERED = 0.9
/** Flushes of one project that may be in flight at once. */
const FLIGHTS_MAX = 2

/**
 * One project's share of the appender.
 *
 *   idle ── a request arrives ──▶ ready ── its turn comes ──▶ flushing ── stored ──▶ idle, or ready again
 *
 * Requests that arrive while a flush is in flight wait for it and go together in the next one: the commit itself is
 * the timer. A full flush of other sessions may go beside the one in flight: waiting would not make it larger, and
 * this process can read and answer one while the database stores the other. A session has one flush in flight, so its
 * requests keep their order. Between two flushes a lane may gather: callers that were just answered mostly have their
 * next request ready, and a flush costs as much as dozens of entries.
 */
export class Lane {
  readonly backlog = new Backlog()
  /** In the order of their arrival. */
  waiting: PendingAppend[] = []
  isReady = false
  flights = 0
  private readonly inFlight = new Set<string>()
  /** The waiting requests of other sessions, once they were counted. */
  private beside: Backlog | undefined
  /** How many requests the next flush waits for, while its time lasts. */
  private gathered = 0
  private gathering: NodeJS.Timeout | undefined

  /** @param name its key: the project, or without group commit the request */
  constructor(
    readonly name: unknown,
    readonly project_id: string,
  ) {}

  add(pending: PendingAppend): void {
    this.waiting.push(pending)
    this.backlog.add(pending)
    if (this.beside && this.isFree(pending)) this.beside.add(pending)
  }

  private isFree({ request }: PendingAppend): boolean {
    if (!request.appends) return !this.inFlight.has(request.session_id)
    return !request.appends.some(({ session_id }) => this.inFlight.has(session_id))
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.flights === 0 && !this.gathering
  }

  /** Expected wait of one more request for its flush to begin, in ms. */
  get wait_ms(): number {
    return this.backlog.wait_ms / Math.max(this.flights, 1)
  }

  /** Whether there is enough for a turn. `mayDouble`: there is room for a flush beside the one in flight. */
  wantsTurn(mayDouble: boolean): boolean {
    if (this.waiting.length === 0 || this.isReady) return false
    if (this.flights > 0) return mayDouble && this.flights < FLIGHTS_MAX && this.hasFlushBeside
    return !this.gathering || this.waiting.length >= this.gathered || this.backlog.isFlush
  }

  /** Whether a full flush of sessions that are not in flight waits. Requests given up since are counted too. */
  private get hasFlushBeside(): boolean {
    if (!this.backlog.isFlush) return false
    if (!this.beside) {
      this.beside = new Backlog()
      for (const pending of this.waiting) if (this.isFree(pending)) this.beside.add(pending)
    }
    return this.beside.isFlush
  }

  /** Takes the requests of the next flush; none if all that waited was given up, or belongs to sessions in flight. */
  depart(): Flight {
    clearTimeout(this.gathering)
    this.gathering = undefined
    this.beside = undefined
    const { deferred, ...flight } = cutFlush(this.waiting, this.inFlight)
    this.waiting = deferred
    if (flight.taken.length > 0) this.flights += 1
    for (const session_id of flight.sessions) this.inFlight.add(session_id)
    return flight
  }

  arrive(flight: Flight, ms: number): void {
    this.backlog.flushed(flight, ms)
    this.flights -= 1
    this.beside = undefined
    for (const session_id of flight.sessions) this.inFlight.delete(session_id)
  }

  /**
   * Makes the next flush wait for about as many requests as were in flight at the end of this one, for at most so
   * many ms.
   */
  gather({ taken }: Flight, ms: number, onOver: () => void): void {
    // While another is in flight, the next one waits for its end.
    if (this.flights > 0) return
    const gathered = Math.floor(GATHERED * (taken.length + this.waiting.length))
    if (gathered <= Math.max(this.waiting.length, 1)) return
    this.gathered = gathered
    this.gathering = setTimeout(() => {
      this.gathering = undefined
      onOver()
    }, ms)
  }
}
