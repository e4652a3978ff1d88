import type { Findings, StoredEntry, StoredSession } from './compare.ts'
import type { Journal, SentFork, SentRetraction } from './journal.ts'

/** Compares what retractions were answered with the marks of entries: no entry is retracted twice, nor another one. */
export function compareRetractions(
  { retractions }: Journal,
  sessions: Map<string, StoredSession>,
  findings: Findings,
): void {
  for (const retraction of retractions) {
    const { session_id, seq, seqs } = retraction
    const entries = sessions.get(session_id)?.entries ?? []
    const marked = entries.filter(({ retracted_by }) => retracted_by === seq).map((entry) => entry.seq)
    const due = seqsDue(retraction, entries)
    const told = seqs.toSorted((a, b) => a - b).join(', ')
    if (marked.join(', ') !== told)
      findings.reordered.push(`${session_id}/${seq} retracted ${told}, and ${marked.join(', ')} are marked`)
    if (due.join(', ') !== told)
      findings.reordered.push(`${session_id}/${seq} retracted ${told} where ${due.join(', ')} was due`)
  }
}

/** What a retraction had to find at its place in the log. */
function seqsDue({ seq, asked }: SentRetraction, entries: StoredEntry[]): number[] {
  const live = entries.filter(
    (entry) =>
      entry.seq < seq &&
      !entry.is_retraction &&
      (entry.retracted_by === null || entry.retracted_by >= seq) &&
      (asked.kind === undefined || entry.is_message),
  )
  const due =
    asked.last === undefined ? live.filter((entry) => entry.seq > asked.after_seq!) : live.slice(-asked.last)
  return due.map((entry) => entry.seq)
}

/** A fork has what its original has up to its seq, and nothing else. */
export function compareForks(
  { forks }: Journal,
  sessions: Map<string, StoredSession>,
  findings: Findings,
): void {
  for (const { session_id, of, up_to_seq } of forks) {
    const fork = sessions.get(session_id)?.entries ?? []
    const original = sessions.get(of)?.entries.slice(0, up_to_seq) ?? []
    const differs = original.findIndex((entry, index) => !isCopy(fork[index], entry, up_to_seq))
    if (differs >= 0) findings.lost.push(`the fork ${session_id} of ${of} differs at seq ${differs + 1}`)
    if (fork.length > up_to_seq)
      findings.unasked.push(`the fork ${session_id} of ${of} goes beyond ${up_to_seq}`)
  }
}

function isCopy(copy: StoredEntry | undefined, entry: StoredEntry, up_to_seq: number): boolean {
  const mark = entry.retracted_by !== null && entry.retracted_by <= up_to_seq ? entry.retracted_by : null
  return (
    copy !== undefined &&
    copy.created_at === entry.created_at &&
    copy.retracted_by === mark &&
    (entry.is_retraction ? copy.is_retraction : copy.marker === entry.marker)
  )
}

/** The sessions that are no forks: what these have was sent to others. */
export function withoutForks({ forks }: Journal, stored: StoredSession[]): StoredSession[] {
  const ids = new Set(forks.map(({ session_id }: SentFork) => session_id))
  return stored.filter(({ session_id }) => !ids.has(session_id))
}
