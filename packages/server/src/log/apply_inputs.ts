import { mayReferToBlobs } from '@annals/messages'
import type { FastifyRequest } from 'fastify'
import { AnnalsError } from '../errors.js'
import { logReadBytes } from '../http/answer/answer.js'
import { PIECE_BYTES_MAX } from '../limits.js'
import type { Row } from '../postgres/database.js'
import { plainArray } from '../postgres/statement.js'
import type { AppendedEntry } from './append/append_request.js'
import { referencesIn } from './append/blob_places.js'
import { notPending, notPendingOf } from './append/held_back.js'
import { READ_INPUTS } from './append/input_queries.js'

/** Pending inputs as entries; if some are not pending, why, and stand-ins, so that a retry is still answered by its key. */
export interface Applied {
  entries: AppendedEntry[]
  only_known: AnnalsError | undefined
}

/**
 * Reads the inputs that an append applies. That they are still pending when it stores them is checked there; until then
 * their content does not change.
 * @throws AnnalsError not_pending, session_not_found
 */
export async function readInputs(
  request: FastifyRequest,
  session_id: string,
  ids: readonly string[],
): Promise<Applied> {
  const { database, project_id, headers } = request
  await request.memory.hold(logReadBytes(request))
  const rows = await database.query(READ_INPUTS, [project_id, session_id, plainArray(ids)])
  if (rows.some(({ data }) => data === null))
    throw new AnnalsError(
      'payload_too_large',
      `/apply names inputs of more than ${PIECE_BYTES_MAX} bytes together. Apply fewer at once.`,
    )
  const found = new Map(rows.map((row) => [row.id!, row]))
  const missing = ids.find((id) => !found.has(id))
  let only_known: AnnalsError | undefined
  if (missing !== undefined) {
    const why = await notPendingOf(database, project_id, { session_id, apply: ids })
    only_known = why ?? notPending(missing, 'it changed at this moment')
    if (headers['idempotency-key'] === undefined) throw only_known
  }
  return { entries: ids.map((id) => entryOf(id, found.get(id))), only_known }
}

function entryOf(id: string, row: Row | undefined): AppendedEntry {
  const data = row?.data ?? '{}'
  return {
    id,
    id_given: false,
    kind: (row?.kind ?? 'event') as AppendedEntry['kind'],
    type: row ? row.type! : '',
    format: row?.format ?? null,
    role: row?.role ?? null,
    key: row?.key ?? null,
    bytes: Number(row?.bytes ?? 0),
    tokens: Number(row?.tokens ?? 0),
    occurred_at: null,
    data,
    meta: row?.meta ?? null,
    references: mayReferToBlobs(data) ? referencesIn(JSON.parse(data), '/apply') : undefined,
  }
}
