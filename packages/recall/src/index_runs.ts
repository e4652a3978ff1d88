import { indexedLabel } from '@annals/messages/search'

/** Entries of a run: the more, the smaller the index, and the more lines are looked at for one that matches. */
const RUN_ENTRIES = 16
/** After this many entries, the rows of a session that were written one by one are joined for now. */
const PART_ENTRIES = 4
/** Characters of words in a run: what is looked at for one entry is bounded, and so is what PostgreSQL reads as a tsvector. */
const RUN_LENGTH_MAX = 32 * 1024

/** The line of an entry: its label, and its words. */
export function indexedLine(
  { type, role }: { type: string | null; role: string | null },
  words: string,
): string {
  return `${indexedLabel(type, role)} ${words}`
}

/** A row of the index: entries of a session that follow each other, in one segment. `words`: a line of each. */
export interface IndexedRun {
  session_id: string
  seq: number
  last_seq: number
  segment: number
  /** The earliest time at which one of them was stored or happened. */
  first_at: string
  /** When the last one was stored. */
  last_at: string
  words: string
}

/**
 * The seq from which on the runs of a session are put together anew when it has been indexed up to `after_seq` and is
 * now up to `last_seq`. Each entry is so written three times at most.
 */
export function rebuiltFrom(after_seq: number, last_seq: number): number {
  for (const entries of [RUN_ENTRIES, PART_ENTRIES]) {
    const whole = Math.floor(after_seq / entries)
    if (Math.floor(last_seq / entries) > whole) return whole * entries + 1
  }
  return after_seq + 1
}

/** Puts runs together, as far as they belong together: by session, and in the order of seq. */
export function joinRuns(runs: readonly IndexedRun[]): IndexedRun[] {
  const joined: IndexedRun[] = []
  const sorted = runs.toSorted((a, b) =>
    a.session_id === b.session_id ? a.seq - b.seq : a.session_id < b.session_id ? -1 : 1,
  )
  for (const run of sorted) {
    const before = joined.at(-1)
    if (!before || !isContinued(before, run)) {
      joined.push({ ...run })
      continue
    }
    before.last_seq = run.last_seq
    before.last_at = run.last_at
    if (run.first_at < before.first_at) before.first_at = run.first_at
    before.words += `\n${run.words}`
  }
  return joined
}

function isContinued(run: IndexedRun, next: IndexedRun): boolean {
  return (
    run.session_id === next.session_id &&
    run.last_seq + 1 === next.seq &&
    groupOf(run.seq) === groupOf(next.last_seq) &&
    run.segment === next.segment &&
    run.words.length + next.words.length < RUN_LENGTH_MAX
  )
}

function groupOf(seq: number): number {
  return Math.floor((seq - 1) / RUN_ENTRIES)
}

interface Counted {
  count: number
  first_at: string
  last_at: string
}

/** How many entries each segment gets, and from when they are. */
export function countBySegment(entries: readonly IndexedRun[]): Map<number, Counted> {
  const counts = new Map<number, Counted>()
  for (const { segment, first_at, last_at } of entries) {
    const counted = counts.get(segment) ?? { count: 0, first_at, last_at }
    counts.set(segment, counted)
    counted.count += 1
    if (last_at > counted.last_at) counted.last_at = last_at
    if (first_at < counted.first_at) counted.first_at = first_at
  }
  return counts
}
