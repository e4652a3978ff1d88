import { LRUCache } from 'lru-cache'
import type { Lane } from './lane.js'

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
  /** Gives the slot back after so many ms. */
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
