import type { Tenant } from '@annals/kits/postgres/database.js'

/** How many lines of a kind were stored, and how many already existed. */
export interface Tally {
  stored: number
  known: number
  /** Of what was stored, where it is counted. */
  bytes?: number
}

export type Tallies = Record<string, Tally>

/** A difference in the target, which stays as it is. */
export interface Conflict {
  kind: string
  id: string
  reason: string
}

export interface RestoreContext extends Tenant {
  /** Nothing is stored. */
  dry_run: boolean
  /** Found in this transaction. */
  conflicts: Conflict[]
}

export function tally(all: number, stored: number): Tally {
  return { stored, known: all - stored }
}

/** Lines as one JSON array. */
export function jsonOf(lines: ReadonlyArray<{ text: string }>): string {
  return `[${lines.map(({ text }) => text).join(',')}]`
}

/** Why what the target has is another than in the file, by the columns that never change. */
export function differenceOf(
  record: Record<string, unknown>,
  row: Record<string, string | null>,
  columns: readonly string[],
): string | undefined {
  for (const name of columns) {
    const written = record[name] ?? null
    if (row[name] === (written === null ? null : String(written))) continue
    if (name === 'created_at') return `it was created at another time, ${row.created_at}`
    if (name === 'user') return 'it belongs to another user'
    return `it has another ${name}`
  }
  return undefined
}
