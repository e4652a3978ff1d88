/**
 * The outcome of a write as its sender knows it.
 *
 *   open ── 2xx ──▶ acknowledged: it is there, once, as answered, permanently
 *     │ ── 409, or 503 to one that is not retried ──▶ refused: it is not there, and never will be
 *     └── no answer, and not retried ──▶ in_doubt: it is there once, or not at all
 *
 * A write with an idempotency key, or with ids of its own, is retried until it is answered, so it ends as
 * acknowledged or refused: that is the purpose of such a key.
 */
export type Fate = 'open' | 'acknowledged' | 'refused' | 'in_doubt'

/** One stored entry as somebody was told of it. */
export interface Place {
  seq: number
  id: string
}

/** One request to append, as its sender wrote it down. Times are performance.now(), in ms. */
export interface SentAppend {
  session_id: string
  /** What each of its entries carries, which no other entry does. */
  markers: string[]
  first_sent_at: number
  answered_at?: number
  fate: Fate
  /** What the same request appends to each of its sessions, if it has several: all of it is stored or none. */
  together?: SentAppend[]
  /** What it merges into the session's configs as `touched`. */
  touches?: string
  /** Where the answer said that the entries are, in the order of the markers. */
  places?: Place[]
}

/** What a retraction asked for, and which seqs it was told that it retracted at its place. */
export interface SentRetraction {
  session_id: string
  seq: number
  asked: { last?: number; after_seq?: number; kind?: 'message' }
  seqs: number[]
}

/** A fork that was acknowledged. */
export interface SentFork {
  session_id: string
  of: string
  up_to_seq: number
}

/** One request to create a session. */
export interface SentSession {
  marker: string
  project_id: string
  fate: Fate
  session_id?: string
}

/** An entry that a reader or a tail was shown. */
export interface Sighting extends Place {
  marker: string
}

/** What all clients wrote down of one run. */
export class Journal {
  readonly appends: SentAppend[] = []
  readonly sessions: SentSession[] = []
  /** Input, requests and answers that were acknowledged: each is in the log once, wherever. */
  readonly inputs: SentAppend[] = []
  readonly retractions: SentRetraction[] = []
  readonly forks: SentFork[] = []
  /** By session and seq: what was read there first. Everything read there later must be the same. */
  readonly sightings = new Map<string, Map<number, Sighting>>()
  /** What a reader or a tail saw that must not be, in a sentence each. */
  readonly lost: string[] = []
  readonly duplicated: string[] = []
  readonly reordered: string[] = []
  private readonly newest = new Map<string, number>()

  send(session_id: string, markers: string[]): SentAppend {
    const append: SentAppend = { session_id, markers, first_sent_at: performance.now(), fate: 'open' }
    this.appends.push(append)
    return append
  }

  /** A request to several sessions. */
  sendTogether(
    parts: Array<Pick<SentAppend, 'session_id' | 'markers'> & { touches?: string | undefined }>,
  ): SentAppend[] {
    const together = parts.map(({ session_id, markers, touches }) =>
      Object.assign(this.send(session_id, markers), touches !== undefined && { touches }),
    )
    for (const append of together) append.together = together
    return together
  }

  acknowledge(append: SentAppend, places: Place[]): void {
    append.fate = 'acknowledged'
    append.answered_at = performance.now()
    append.places = places
    const last = places.at(-1)?.seq ?? 0
    this.newest.set(append.session_id, Math.max(last, this.newestSeq(append.session_id)))
  }

  /** The highest seq of a session that anybody was told of. */
  newestSeq(session_id: string): number {
    return this.newest.get(session_id) ?? 0
  }

  see(session_id: string, sighting: Sighting, who: string): void {
    let seen = this.sightings.get(session_id)
    if (!seen) {
      seen = new Map()
      this.sightings.set(session_id, seen)
    }
    const before = seen.get(sighting.seq)
    if (!before) seen.set(sighting.seq, sighting)
    else if (before.id !== sighting.id || before.marker !== sighting.marker) {
      this.reordered.push(
        `${who} was shown ${sighting.marker} at ${session_id}/${sighting.seq}, where ${before.marker} had been read`,
      )
    }
  }

  /** The next entry of a reader that has read up to `last_seq` of a session. */
  follow(session_id: string, last_seq: number, sighting: Sighting, who: string): void {
    const place = `${session_id}/${sighting.seq}`
    if (sighting.seq <= last_seq) this.duplicated.push(`${who} was shown ${place} behind seq ${last_seq}`)
    else if (sighting.seq > last_seq + 1)
      this.lost.push(`${who} was shown ${place} next after seq ${last_seq}`)
    this.see(session_id, sighting, who)
  }
}

/** The marker of an entry as the interface shows it, or as the database has it. */
export function markerOf(content: unknown): string {
  const { marker, content: text } = (content ?? {}) as { marker?: unknown; content?: unknown }
  return String(marker ?? text ?? '')
}
