import { describe, expect, it } from 'vitest'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

const service = useSharedService()

const QUESTIONS: Array<[method: string, path: string, data: object]> = [
  [
    'GET',
    'observing_status',
    { observed: 0, in_process: 0, pending: 0, updated_at: expect.stringMatching(/Z$/) },
  ],
  ['GET', 'task', { items: [], has_more: false, next_cursor: '' }],
  ['GET', 'task?limit=2&time_desc=true', { items: [], has_more: false, next_cursor: '' }],
  ['POST', 'flush', { status: 0, errmsg: '' }],
]

describe('a session of a service that extracts no tasks', () => {
  it.each(QUESTIONS)('answers %s %s', async (method, path, data) => {
    const api = await service.newClient()
    const log = await newSessionLog(api)
    expectOk(await log.add({ role: 'user', content: 'Book a flight' }), 201)
    expect(expectOk(await api.request(method, `/api/v1/session/${log.id}/${path}`))).toEqual(data)
    const elsewhere = await service.newClient()
    for (const [client, id] of [[api, NOBODYS_ID] as const, [elsewhere, log.id] as const]) {
      const unknown = await client.request(method, `/api/v1/session/${id}/${path}`)
      expectError(unknown, 404, 'session_not_found')
    }
  })

  it('has a list of tasks that no cursor leads into, and takes no other fields', async () => {
    const api = await service.newClient()
    const { id } = await newSessionLog(api)
    const path = `/api/v1/session/${id}`
    expectError(await api.request('GET', `${path}/task?cursor=abc`), 400, 'invalid_cursor')
    expectError(await api.request('GET', `${path}/task?limit=0`), 400, 'invalid_request', 'limit')
    const body = { now: true }
    expectError(await api.request('POST', `${path}/flush`, { body }), 400, 'invalid_request', 'now')
  })
})
