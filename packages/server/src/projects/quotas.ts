import { AnnalsError } from '../errors.js'
import type { Row } from '../postgres/database.js'

export interface Quotas {
  max_sessions: number | undefined
  /** Of the entries of all sessions, as the JSON in which they were sent. */
  max_bytes: number | undefined
  max_blob_bytes: number | undefined
  /** Open at one node. */
  max_tails: number | undefined
}

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

const MEANING: Record<QuotaName, string> = {
  max_sessions: 'sessions. Nothing was stored: delete sessions',
  max_bytes: 'bytes of entries. Nothing was stored: delete sessions',
  max_blob_bytes: 'bytes of blobs. Nothing was stored: delete sessions that refer to blobs',
  max_tails: 'open tails at this node. Close tails',
  max_model_tokens_per_day: 'tokens of a model a day, in UTC. Nothing was done: retry tomorrow',
}

type QuotaName = keyof Quotas | 'max_model_tokens_per_day'

export function quotaExceeded(quota: QuotaName, max: number): AnnalsError {
  return new AnnalsError(
    'quota_exceeded',
    `The quota ${quota} allows this project ${max} ${MEANING[quota]}, or ask the operator for a higher quota.`,
  )
}
