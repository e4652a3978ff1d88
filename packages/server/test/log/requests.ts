import { randomUUID } from 'node:crypto'
import type { AppendRequest } from '../../src/log/append_request.ts'

export const PROJECT = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

/** A request to append one event, with the given parts in place of the usual ones. */
export function anEvent(parts: Partial<AppendRequest> = {}): AppendRequest {
  const body = parts.body ?? '{"type":"a","data":{}}'
  return {
    project_id: PROJECT,
    session_id: randomUUID(),
    kind: 'event',
    body,
    entries: [{ id: randomUUID(), id_given: false, bytes: Buffer.byteLength(body), tokens: 0, role: '' }],
    ...parts,
  }
}
