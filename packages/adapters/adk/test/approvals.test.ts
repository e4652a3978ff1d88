import { randomUUID } from 'node:crypto'
import { AnnalsSessionService } from '@annals/adk'
import { Annals } from '@annals/client'
import { createEvent, type Event } from '@google/adk'
import { expect, it } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'

const service = useSharedService()

it('asks once for each call that runs long or needs a confirmation, and answers all of them, elsewhere too', async () => {
  const annals = new Annals({ url: service.node.url, token: (await service.newProject()).token })
  const sessions = new AnnalsSessionService(annals)
  const name = { appName: 'till', userId: 'omar', sessionId: randomUUID() }
  const session = await sessions.createSession(name)
  const append = (author: string, parts: object[], longRunningToolIds: string[] = []) =>
    sessions.appendEvent({
      session,
      event: createEvent({
        invocationId: 'i',
        author,
        content: { role: author, parts },
        longRunningToolIds,
      }) as Event,
    })
  const called = (id: string, name: string, args: object) => ({ functionCall: { id, name, args } })
  const original = { id: 'c3', name: 'pay', args: { eur: 7 } }
  await append('till', [called('c1', 'ship', { to: 'Ada' }), called('c2', 'look_up', {})], ['c1'])
  await append('till', [{ functionResponse: { id: 'c1', name: 'ship', response: { status: 'pending' } } }])
  const confirmation = { originalFunctionCall: original, toolConfirmation: { hint: 'Above 5 EUR.' } }
  const asking = [
    called('c4', 'adk_request_confirmation', confirmation),
    called('c5', 'adk_request_credential', {}),
  ]
  await append('till', asking, ['c4', 'c5'])

  const asked = await sessions.askForApprovals(name)
  expect(asked.map(({ call, text }) => [call, text])).toEqual([
    [{ name: 'ship', arguments: { to: 'Ada' } }, 'Call c1 of till'],
    [{ name: 'pay', arguments: { eur: 7 } }, 'Call c3 of till: Above 5 EUR.'],
  ])
  const elsewhere = new AnnalsSessionService(annals)
  const resumed = elsewhere.resume(name)
  for (const [at, decision] of (['deny', 'approve'] as const).entries())
    await annals.runs.resolve(asked[at]!.id, { decision, by: 'ada', call_sha256: asked[at]!.call_sha256! })
  const message = await resumed
  const [reason, answers] = ['This call was denied by ada.', message!.parts!]
  expect(answers.map(({ functionResponse }) => functionResponse)).toEqual([
    { id: 'c1', name: 'ship', response: { status: 'denied', reason } },
    { id: 'c4', name: 'adk_request_confirmation', response: { confirmed: true } },
  ])
  // A process was killed when it had stored the answer, and before the agent did anything with it.
  await append('user', answers)
  expect(await elsewhere.resume(name)).toEqual(message)
  await append('till', [{ text: 'Done.' }])
  expect(await elsewhere.resume(name)).toBeUndefined()
})
