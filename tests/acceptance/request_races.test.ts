import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const REQUESTS = IS_THOROUGH ? 1_000 : 60
const service = useSharedService()

it('of two answers that come at once, at two nodes, one wins every time and is alone in the log, and the other is told who won', async () => {
  const { token } = await service.newProject()
  const here = await service.newClient({ token })
  const there = await service.newClient({ token, node: service.secondNode })
  const { id: session } = expectOk(await here.createSession({}), 201)
  const winners: Record<string, string> = {}
  const answerTwice = async (client: ApiClient) => {
    const body = { id: randomUUID(), kind: 'approval' }
    expectOk(await client.request('POST', `/api/v1/session/${session}/requests`, { body }), 201)
    const deny = (by: string, at: ApiClient) =>
      at.request<{ by: string }>('POST', `/api/v1/requests/${body.id}/resolve`, {
        body: { decision: 'deny', by },
      })
    const answers = await Promise.all([deny('ada', here), deny('bo', there)])
    const [won, lost] = answers.sort((one, other) => one.status - other.status)
    winners[body.id] = expectOk(won!).by
    expectError(lost!, 409, 'resolved', 'deny', `"${winners[body.id]}"`)
  }
  for (let n = 0; n < REQUESTS; n += 20) {
    const asked = Array.from({ length: 20 }, (_, m) => answerTwice(m % 2 ? here : there))
    await Promise.all(asked)
  }
  const query = { type: 'annals.resolution', limit: REQUESTS }
  const logged = expectOk(await there.listEvents(session, query)).items.map(({ data }) => data)
  expect(logged).toHaveLength(REQUESTS)
  expect(Object.fromEntries(logged.map(({ request_id, by }) => [request_id, by]))).toEqual(winners)
}, 240_000)
