import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { placesOf, switchSearch, untilIndexed } from '../harness/search.ts'
import { useService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const service = useService()
const KILLS = IS_THOROUGH ? 8 : 2
const SESSIONS = IS_THOROUGH ? 40 : 20
const ENTRIES = 50

async function refilling(api: ApiClient): Promise<object | undefined> {
  const query = { mode: 'recall', q: 'refund' }
  const answer = await api.request<{ refilling?: object }>('GET', '/api/v1/search', { query })
  return expectOk(answer).refilling
}

it(`writes every line of an old index anew though ${KILLS} nodes that do so are killed`, async () => {
  const { id, token } = await service.newProject()
  const steady = await service.newClient({ token })
  await switchSearch(service.adminClient(), id, true)
  const entries = Array.from({ length: ENTRIES }, (_, n) => ({
    kind: 'event',
    type: 'n',
    data: { text: `complaining about refunds ${n} ${'and more words '.repeat(200)}` },
  }))
  for (let n = 0; n < SESSIONS; n++) {
    const session = expectOk(await steady.createSession(), 201).id
    const path = `/api/v1/session/${session}/entries`
    expectOk(await steady.request('POST', path, { body: { entries } }), 201)
  }
  await untilIndexed(steady)
  const lines = () =>
    queryRows(
      service.databaseUrl,
      'SELECT session_id, seq, last_seq, words FROM search_entries WHERE project_id = $1 ORDER BY 1, 2',
      [id],
    )
  const before = await lines()
  await service.node.kill()
  await execute(
    service.databaseUrl,
    "UPDATE search_entries SET words = regexp_replace(words, ' [~#][^ ]+', '', 'g') WHERE project_id = $1",
    [id],
  )
  expect(await lines()).not.toEqual(before)
  await execute(
    service.databaseUrl,
    `INSERT INTO search_refills (project_id, session_id, seq, entries_done, leased_until)
     VALUES ($1, '00000000-0000-0000-0000-000000000000', 0, 0, now())`,
    [id],
  )
  // Leases of killed nodes end by the clock, which is too slow for a test.
  const endLeases = () => execute(service.databaseUrl, 'UPDATE search_refills SET leased_until = now()', [])
  const entriesDone = async () => {
    const [row] = await queryRows(service.databaseUrl, 'SELECT entries_done FROM search_refills', [])
    return row && Number(row.entries_done)
  }
  const done: (number | undefined)[] = [0]
  while (done.length <= KILLS && done.at(-1) !== undefined) {
    await endLeases()
    const doomed = await service.startNode()
    // Killed in the middle of the next piece, at any moment of it.
    await vi.waitUntil(async () => (await entriesDone()) !== done.at(-1), { timeout: 60_000, interval: 2 })
    await sleep(10 * done.length)
    await doomed.kill()
    done.push(await entriesDone())
  }
  expect(done[1]).toBeLessThan(SESSIONS * ENTRIES)
  await endLeases()
  const api = await service.newClient({ token, node: await service.startNode() })
  await vi.waitFor(async () => expect(await refilling(api)).toBeUndefined(), 60_000)
  expect(await lines()).toEqual(before)
  expect(await placesOf(api, 'refunds 49')).toHaveLength(SESSIONS)
})
