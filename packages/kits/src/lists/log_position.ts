import { AnnalsError } from '../errors.js'
/**
 * How far a reader has seen a log. The seq alone does not tell whether it is still the same log: after a restore from a
 * backup, a failover to a replica that was behind, or the deletion of a session that is created again, another entry may
 * have that seq. The time at which the entry was stored does, and it is in every entry that is shown.
 */
export interface LogPosition {
  seq: number
  /** The entry's `created_at`; undefined where the reader knows only the seq, which is then not checked. */
  created_at?: string | undefined
}

/** The seq of the entry to look up, if the position can be checked by it; else null. */
export function seqToCheck(seen: LogPosition | undefined): number | null {
  return seen?.created_at === undefined ? null : seen.seq
}

const SEPARATOR = '@'

/** `<seq>@<created_at>`, or only the seq. */
export function writePosition({ seq, created_at }: LogPosition): string {
  return created_at === undefined ? String(seq) : `${seq}${SEPARATOR}${created_at}`
}

export function readPosition(text: string): LogPosition {
  const [seq, created_at] = text.split(SEPARATOR)
  return { seq: Number(seq), created_at }
}

export function divergedAt(seq: number): AnnalsError {
  return new AnnalsError(
    'log_diverged',
    `Entry ${seq} is no longer the one you have read: the log was replaced, for example by a restore. Read it again from its beginning.`,
  )
}
