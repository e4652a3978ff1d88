import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestObjectStore } from '../../lab/object_store.ts'
import type { Edits } from '../clients/surroundings.ts'
import type { World } from '../world/world.ts'
import type { Journal } from './journal.ts'

const LOOK_MS = 500
/** Sessions that are due are deleted within this time, here where ANNALS_RETENTION_MS is short. */
const OVERDUE_S = 30

/** $1 project, $2 seconds. */
const OVERDUE = `
SELECT s.id FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.expires_in_s IS NOT NULL AND h.updated_at + make_interval(secs => s.expires_in_s + $2) < now()`

/** Ids under which the object store may have something. $1 project. */
const OBJECTS = `
SELECT b.id FROM blobs b WHERE b.project_id = $1 AND b.in_object_store
UNION SELECT d.id FROM discarded_objects d WHERE d.project_id = $1`

/** What is wrong with attachments and with sessions that expire, a sentence each; once nobody writes any more. */
export async function problemsOfEdits(world: World, edits: Edits, wait_ms_max: number): Promise<string[]> {
  const { project_id } = edits.tenant
  const ask = (statement: string, ...values: unknown[]) =>
    world.postgres.ask<{ id: string }>(statement, [project_id, ...values], 'annals')
  const until = performance.now() + wait_ms_max
  let overdue = await ask(OVERDUE, OVERDUE_S)
  for (; overdue.length > 0 && performance.now() < until; overdue = await ask(OVERDUE, OVERDUE_S))
    await sleep(LOOK_MS)
  const known = new Set((await ask(OBJECTS)).map(({ id }) => id))
  const unknown = (await keysIn(world.objects, project_id)).filter((id) => !known.has(id))
  return [
    ...overdue.map(({ id }) => `session ${id} has expired ${OVERDUE_S} s ago and is there`),
    ...unknown.map((id) => `the object store has ${id}, which the database does not know`),
    ...(await unreadable(world, edits)),
  ]
}

/** How much there was of each. `objects`: the blobs are in an object store. */
export function editFigures({ retractions, forks }: Journal, { blobs, expiring }: Edits, { objects }: World) {
  return {
    retractions: retractions.length,
    forks: forks.length,
    blobs: blobs.size,
    objects: objects !== undefined,
    expiring,
  }
}

async function keysIn(objects: TestObjectStore | undefined, project_id: string): Promise<string[]> {
  const keys = (await objects?.keysOf(project_id)) ?? []
  return keys.map((key) => key.slice(key.indexOf('/') + 1))
}

/** Bytes that were acknowledged and do not come back. */
async function unreadable({ nodes }: World, { blobs, tenant }: Edits): Promise<string[]> {
  const problems: string[] = []
  for (const sha256 of blobs) {
    const headers = { authorization: `Bearer ${tenant.token}` }
    const answer = await fetch(`${nodes[0].url}/api/v1/blobs/${sha256}`, { headers })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (createHash('sha256').update(bytes).digest('hex') !== sha256)
      problems.push(`the blob ${sha256} was acknowledged, and is read as ${answer.status}`)
  }
  return problems
}
