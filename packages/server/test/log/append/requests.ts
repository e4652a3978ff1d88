import { randomUUID } from 'node:crypto'
import type { AppendedEntry, AppendRequest } from '../../../src/log/append/append_request.ts'

export const PROJECT = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

/** An event's entry with the given data, as JSON text. */
export function anEntry(data = '{}'): AppendedEntry {
  return {
    id: randomUUID(),
    id_given: false,
    key: null,
    kind: 'event',
    type: 'a',
    format: null,
    role: null,
    bytes: Buffer.byteLength(data),
    tokens: 0,
    occurred_at: null,
    data,
    meta: null,
  }
}

/** A request to append one event, with the given parts in place of the usual ones. */
export function anEvent({ data, ...parts }: Partial<AppendRequest> & { data?: string } = {}): AppendRequest {
  return {
    project_id: PROJECT,
    session_id: randomUUID(),
    kind: 'event',
    entries: [anEntry(data)],
    unmarked_until: Number.POSITIVE_INFINITY,
    ...parts,
  }
}
