import { AnnalsError } from '@annals/kits/errors.js'
import type { Row } from '@annals/kits/postgres/database.js'

/** max_bytes: of the entries of all sessions, as the JSON in which they were sent; max_tails: open at one node. */
const QUOTAS = ['max_sessions', 'max_bytes', 'max_blob_bytes', 'max_tails'] as const

export type Quotas = Record<(typeof QUOTAS)[number], number | undefined>

export function quotasOf(row: Row): Quotas {
  return Object.fromEntries(QUOTAS.map((name) => [name, numberOf(row[name])])) as Quotas
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
  const meaning = max === 1 ? MEANING[quota].replace(/s\b/, '') : MEANING[quota]
  return new AnnalsError(
    'quota_exceeded',
    `The quota ${quota} allows this project ${max} ${meaning}, or ask the operator for a higher quota.`,
  )
}
