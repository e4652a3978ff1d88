import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, inject, it, vi } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { newSearchingProjects, placesOf } from '../harness/search.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { verifyDatabase } from '../harness/verification.ts'
import { type Receiver, startReceiver } from '../harness/webhook_receiver.ts'

/*
 * The database's clock is set back. It is the same whether the clock goes back or all that it has ever written goes
 * forward; the latter needs no other server.
 */

const WAIT = { timeout: 60_000 }
const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const receivers: Receiver[] = []
afterAll(() => Promise.all(receivers.map((receiver) => receiver.close())))

async function setClockBack(url: string, by: string): Promise<void> {
  const columns = await queryRows<{ table: string; sets: string }>(
    url,
    `SELECT c.table_name AS table, string_agg(format('%1$I = %1$I + interval %2$L', c.column_name, $1::text), ', ') AS sets
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.data_type = 'timestamp with time zone'
     GROUP BY c.table_name`,
    [by],
  )
  expect(columns.length).toBeGreaterThan(15)
  await execute(
    url,
    `DO $$ BEGIN ${columns.map(({ table, sets }) => `UPDATE "${table}" SET ${sets};`).join('\n')} END $$`,
  )
}

describe.skipIf(inject('testServer').mode === 'shared').for([['15 minutes'], ['1 day']])(
  "when the database's clock was set back by %s",
  ([by]) => {
    const service = useService({ ANNALS_TOKEN_CACHE_MS: '0' })

    it('input is claimed that came before, and a lease of then is held no longer', async () => {
      const client = await service.newClient()
      const { id } = expectOk(await client.createSession(), 201)
      const path = `/api/v1/session/${id}`
      expectOk(await client.request('POST', `${path}/lease`, { body: { owner: 'gone', ttl_ms: 600_000 } }))
      const body = { mode: 'queue', kind: 'event', type: 'stop', data: {} }
      const input = expectOk(await client.request<{ id: string }>('POST', `${path}/inbox`, { body }), 201)
      await setClockBack(service.databaseUrl, by!)
      await vi.waitFor(async () => {
        const work = { owner: 'next', ttl_ms: 1_000, max: 20 }
        const claimed = await client.request<{ items: { session_id: string; inputs: { id: string }[] }[] }>(
          'POST',
          '/api/v1/work/claim',
          { body: work },
        )
        const found = expectOk(claimed).items.find(({ session_id }) => session_id === id)
        expect(found?.inputs.map((one) => one.id)).toEqual([input.id])
      }, WAIT)
    })

    it('what one process keeps from others is free again', async () => {
      const client = await service.newClient()
      const space = expectOk(await client.createLearningSpace({}), 201).id
      const session = expectOk(await client.createSession(), 201).id
      const learn = await client.request('POST', `/api/v1/learning_spaces/${space}/learn`, {
        body: { session_id: session },
      })
      expectOk(learn, 201)
      // As the old clock would have left them.
      for (const statement of [
        'UPDATE learning_spaces SET lane_until = now() + $1::interval WHERE id = $2',
        "UPDATE space_sessions SET due_at = now() + $1::interval, status = 'queued' WHERE learning_space_id = $2",
        `INSERT INTO erased_sessions (project_id, session_id, last_seq, erased_at, source_id, leased_until)
         SELECT l.project_id, gen_random_uuid(), 0, now(), l.id, now() + $1::interval FROM learning_spaces l WHERE l.id = $2`,
      ])
        await execute(service.databaseUrl, statement, [by, space])
      await vi.waitFor(async () => {
        const held = await queryRows(
          service.databaseUrl,
          `SELECT 'lane' AS what FROM learning_spaces WHERE id = $1 AND lane_until > now()
           UNION ALL SELECT 'turn' FROM space_sessions WHERE learning_space_id = $1 AND due_at > now()
           UNION ALL SELECT 'copy' FROM erased_sessions WHERE source_id = $1 AND leased_until > now()`,
          [space],
        )
        expect(held).toEqual([])
      }, WAIT)
    })

    it('nothing that learning changes is older than it was made', async () => {
      const client = await service.newClient()
      const space = expectOk(await client.createLearningSpace({}), 201).id
      const log = await newSessionLog(client)
      const called = { id: 'c', type: 'function', function: { name: 'book', arguments: '{}' } }
      expectOk(await log.add({ role: 'assistant', content: null, tool_calls: [called] }), 201)
      expectOk(await log.add({ role: 'tool', tool_call_id: 'c', content: 'Error: no such seat' }), 201)
      const learn = (status: number) => async () =>
        expectOk(
          await client.request('POST', `/api/v1/learning_spaces/${space}/learn`, {
            body: { session_id: log.id, now: true },
          }),
          status,
        )
      await learn(201)()
      const statements = `/api/v1/learning_spaces/${space}/statements?state=proposed`
      const learnt = async () =>
        expectOk(await client.request<{ items: unknown[] }>('GET', statements)).items.length
      await vi.waitFor(async () => expect(await learnt()).toBe(1), WAIT)
      await setClockBack(service.databaseUrl, by!)
      await learn(201)()
      const times = async () =>
        Object.keys((await verifyDatabase(service.databaseUrl)).found).filter((check) =>
          /_times$/.test(check),
        )
      expect(await times()).toEqual([])
      expectOk(await client.deleteSession(log.id))
      expect(await learnt()).toBe(0)
      expect(await times()).toEqual([])
    })

    it('search, webhooks and learning go on with what is stored, also with what a killed node had under way', async () => {
      const [project] = await newSearchingProjects(service, 1)
      let api = await service.newClient({ token: project!.token })
      let isAway = true
      const receiver = await startReceiver(SECRET, () => (isAway ? 500 : 204))
      receivers.push(receiver)
      const body = { url: `${receiver.url}/hook`, events: ['event'], secret: SECRET }
      expectOk(await api.request('POST', '/api/v1/webhooks', { body }), 201)
      const space = expectOk(await api.createLearningSpace({}), 201).id
      const early = await newSessionLog(api)
      const learning = await newSessionLog(api)
      const body_of_session = { session_id: learning.id }
      expectOk(
        await api.request('POST', `/api/v1/learning_spaces/${space}/learn`, { body: body_of_session }),
        201,
      )
      expectOk(await early.addEvent('note', { text: 'early' }))
      // It is to be sent again.
      await vi.waitFor(() => expect(receiver.requests).toBeGreaterThan(0), WAIT)
      expectOk(await early.addEvent('note', { text: 'pending' }))
      await service.node.kill()
      await setClockBack(service.databaseUrl, by!)
      isAway = false
      const node = await service.startNode()
      api = await service.newClient({ token: project!.token, node })
      const late = await newSessionLog(api)
      const again = (session_id: string, text: string) =>
        api.appendEvent(session_id, { type: 'note', data: { text } })
      expectOk(await again(early.id, 'again'))
      expectOk(await again(late.id, 'late'))
      await vi.waitFor(async () => {
        const told = receiver.received.map(({ data }) => `${data.session_id} ${data.seq}`)
        expect(told.sort()).toEqual(
          [`${early.id} 1`, `${early.id} 2`, `${early.id} 3`, `${late.id} 1`].sort(),
        )
      }, WAIT)
      for (const [text, place] of [
        ['pending', `${early.id} 2`],
        ['again', `${early.id} 3`],
        ['late', `${late.id} 1`],
      ] as const)
        await vi.waitFor(async () => expect(await placesOf(api, text)).toEqual([place]), WAIT)
      const learnt = `/api/v1/learning_spaces/${space}/sessions/${learning.id}`
      await vi.waitFor(async () => {
        const { status } = expectOk(await api.request<{ status: string }>('GET', learnt))
        expect(status).toBe('completed')
      }, WAIT)
    })
  },
)
