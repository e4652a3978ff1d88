/** Entries of a run: the more, the smaller the index, and the more lines are looked at for one that matches. */
const RUN_ENTRIES = 16
/** Behind so many entries, what was written of a session one by one is put together for the time being. */
const PART_ENTRIES = 4
/** Characters of words in a run: what is looked at for one entry is bounded, and so is what PostgreSQL reads as a tsvector. */
const RUN_LENGTH_MAX = 32 * 1024

/** A row of the index: entries of a session that follow each other, in one segment. `words`: a line of each. */
export interface Run {
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
export function joinRuns(runs: readonly Run[]): Run[] {
  const joined: Run[] = []
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

function isContinued(run: Run, next: Run): boolean {
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
