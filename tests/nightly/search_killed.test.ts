import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Found, placeOf, search, switchSearch, untilIndexed } from '../harness/search.ts'
import { useService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useService()
/** Each takes two seconds, so only the gate makes all of them. */
const KILLS = IS_THOROUGH ? 20 : 3
const SESSIONS = 10
const ENTRIES = 40
/** A node begins with what others have left behind, and is killed at any moment of that. */
const LIFE_MS_MAX = 400

/** Appends to each session; gives the places of the entries. */
async function append(api: ApiClient, sessions: string[]): Promise<string[]> {
  const entries = Array.from({ length: ENTRIES }, (_, n) => ({
    kind: 'event',
    type: 'n',
    data: { text: `refund ${n}` },
  }))
  const appended = sessions.map(async (session_id) => {
    const answer = await api.request<{ items: Array<{ seq: number }> }>(
      'POST',
      `/api/v1/session/${session_id}/entries`,
      {
        body: { entries },
      },
    )
    return expectOk(answer, 201).items.map(({ seq }) => placeOf({ session_id, seq }))
  })
  return (await Promise.all(appended)).flat()
}

it(`finds every entry once after ${KILLS} kills of a node that indexes`, async () => {
  const { id, token } = await service.newProject()
  const steady = await service.newClient({ token })
  await switchSearch(service.adminClient(), id, true)
  const created = Array.from({ length: SESSIONS }, async () => expectOk(await steady.createSession(), 201).id)
  const sessions = await Promise.all(created)
  await untilIndexed(steady)
  await service.node.kill()
  const places: string[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    // Leases of killed nodes end by the clock, which is too slow for a test.
    await execute(service.databaseUrl, 'UPDATE change_marks SET due_at = now()', [])
    const doomed = await service.startNode()
    const api = await service.newClient({ token, node: doomed })
    places.push(...(await append(api, sessions)))
    await sleep((LIFE_MS_MAX * kill) / KILLS)
    await doomed.kill()
  }
  await execute(service.databaseUrl, 'UPDATE change_marks SET due_at = now()', [])
  const api = await service.newClient({ token, node: await service.startNode() })
  await untilIndexed(api)
  const found = await walkPages<Found>((cursor) => search(api, 'refund', { limit: 200, cursor }))
  expect(found.map(placeOf).toSorted()).toEqual(places.toSorted())
  const [rows] = await queryRows(
    service.databaseUrl,
    'SELECT sum(last_seq - seq + 1) AS entries FROM search_entries WHERE project_id = $1',
    [id],
  )
  expect(Number(rows!.entries)).toBe(places.length)
})
