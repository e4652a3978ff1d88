import type { Row } from '../postgres/database.js'

/** A project's quotas; undefined: no limit. */
export interface Quotas {
  max_sessions: number | undefined
  /** Of the entries of all sessions, as the JSON in which they were sent. */
  max_bytes: number | undefined
  /** Of all blobs. */
  max_blob_bytes: number | undefined
  /** Open at one node. */
  max_tails: number | undefined
}

/** The quotas in a row that has their columns. */
export function quotasOf(row: Row): Quotas {
  return {
    max_sessions: numberOf(row.max_sessions),
    max_bytes: numberOf(row.max_bytes),
    max_blob_bytes: numberOf(row.max_blob_bytes),
    max_tails: numberOf(row.max_tails),
  }
}

/** A nullable number of a row. */
export function numberOf(value: string | null | undefined): number | undefined {
  return value == null ? undefined : Number(value)
}
