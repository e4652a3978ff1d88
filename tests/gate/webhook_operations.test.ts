import { beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'

const service = useService({ ANNALS_WEBHOOKS_TO_PRIVATE: 'false' })
let api: ApiClient
beforeEach(async () => {
  api = await service.newClient()
})

type Webhook = { id: string; secret?: string }
const create = (body: unknown) => api.request<Webhook>('POST', '/api/v1/webhooks', { body })
const list = async () => expectOk(await api.request<{ items: Webhook[] }>('GET', '/api/v1/webhooks')).items
const remove = (id: string, client = api) => client.request('DELETE', `/api/v1/webhooks/${id}`)

describe('the operations on webhooks', () => {
  it('show the secret once, and make one where none is given', async () => {
    const body = { url: 'https://example.com/hook', events: ['message'] }
    const made = expectOk(await create(body), 201)
    expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const [listed] = await list()
    const { secret: _secret, ...rest } = made
    expect(listed).toEqual({
      ...rest,
      waiting_sessions: 0,
      last_error: null,
      last_error_at: null,
      given_up: 0,
    })
  })

  it.each([
    [{ url: 'ftp://example.com', events: ['event'] }, 'url'],
    [{ url: 'https://user:pass@example.com', events: ['event'] }, 'url'],
    [{ url: 'https://', events: ['event'] }, 'url'],
    [{ url: 'https://example.com/#x', events: ['event'] }, 'url'],
    [{ url: 'http://127.0.0.1:8029/hook', events: ['event'] }, 'private'],
    [{ url: 'http://localhost:8029/hook', events: ['event'] }, 'ANNALS_WEBHOOKS_TO_PRIVATE'],
    [{ url: 'http://[::ffff:169.254.169.254]/', events: ['event'] }, 'private'],
    [{ url: 'https://example.com', events: [] }, 'events'],
    [{ url: 'https://example.com', events: ['session'] }, 'events'],
    [{ url: 'https://example.com', events: ['event'], secret: 'short' }, 'secret'],
    [{ url: 'https://example.com' }, 'events'],
  ])('refuse %o and name %s', async (body, place) => {
    expectError(await create(body), 400, 'invalid_request', place)
    expect(await list()).toEqual([])
  })

  it('allow ten of a project, also of twelve that are created at once, and know no other project’s', async () => {
    const body = { url: 'https://example.com/hook', events: ['message'] }
    const answers = await Promise.all(Array.from({ length: 12 }, () => create(body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(201), 409, 409])
    const [first] = await list()
    const stranger = await service.newClient()
    const [foreign, unknown] = await Promise.all([remove(first!.id, stranger), remove(NOBODYS_ID, stranger)])
    expectError(foreign!, 404, 'webhook_not_found')
    expect(foreign!.json).toEqual(unknown!.json)
    expect(await list()).toHaveLength(10)
    expectOk(await remove(first!.id))
    expectOk(await create(body), 201)
  })
})
