import { randomUUID } from 'node:crypto'
import { Annals, type RunnerRequest } from '@annals/client'
import { AnnalsSession } from '@annals/openai-agents'
import { Agent, Runner, tool } from '@openai/agents-core'
import {
  assistantMessage,
  functionCall,
  ScriptedModel,
  type ScriptedModelResponse,
} from '@openai/agents-core/testing'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { useSharedService } from '../../../../tests/harness/service.ts'

const service = useSharedService()
const runner = new Runner({ tracingDisabled: true })
let annals: Annals
let session: AnnalsSession
/** As another process would have it. */
let elsewhere: AnnalsSession
/** The arguments of the calls that ran. */
let ran: unknown[]

beforeAll(async () => {
  annals = new Annals({ url: service.node.url, token: (await service.newProject()).token })
})
beforeEach(() => {
  const sessionId = randomUUID()
  session = new AnnalsSession({ annals, sessionId })
  elsewhere = new AnnalsSession({ annals, sessionId })
  ran = []
})

const pay = tool({
  name: 'pay',
  description: 'Pays',
  parameters: z.object({ eur: z.number(), to: z.string().nullish() }),
  needsApproval: true,
  execute: async (args) => {
    ran.push(args)
    return 'paid'
  },
})
const agentOf = (...steps: ScriptedModelResponse[]) =>
  new Agent({ name: 'Till', model: new ScriptedModel(steps), tools: [pay] })
const calls = (...args: Record<string, unknown>[]) =>
  args.map((arg, at) => functionCall('pay', arg, { callId: `call_${at}` }))
const said = (text: string) => [assistantMessage(text)]
const answer = (request: RunnerRequest, decision: 'approve' | 'deny') =>
  annals.runs.resolve(request.id, { decision, by: 'ada', call_sha256: request.call_sha256! })
const outputs = async () =>
  (await session.getItems()).flatMap((item) => (item.type === 'function_call_result' ? [item.output] : []))

it('shows each call as it will run, runs what was approved, and tells the model why the other was denied', async () => {
  const agent = agentOf(calls({ eur: 5, to: 'a\0b' }, { eur: 7 }), said('done'))
  const asked = await session.checkpoint(await runner.run(agent, 'Pay.', { session }))
  expect(asked.map(({ call, text }) => [call, text])).toEqual([
    [{ name: 'pay', arguments: { eur: 5, to: 'a\uFDD00b' } }, 'Call call_0 of Till'],
    [{ name: 'pay', arguments: { eur: 7 } }, 'Call call_1 of Till'],
  ])
  const resumed = elsewhere.resume(agentOf(said('done')))
  await answer(asked[1]!, 'deny')
  await answer(asked[0]!, 'approve')
  const state = (await resumed)!
  const done = await runner.run(agentOf(said('done')), state, { session: elsewhere })
  expect([done.finalOutput, ran]).toEqual(['done', [{ eur: 5, to: 'a\0b' }]])
  expect(await outputs()).toEqual([
    { type: 'text', text: 'paid' },
    { type: 'text', text: 'This call was denied by ada.' },
  ])
  await elsewhere.checkpoint(done)
  expect(await session.resume(agent)).toBeUndefined()
})

it('asks for arguments that a digest cannot hold, or that are large, so that only these are approved', async () => {
  const exact = functionCall('pay', '{"eur":12345678901234567890}', { callId: 'exact' })
  const large = functionCall('pay', { eur: 1, to: 'x'.repeat(100_000) }, { callId: 'large' })
  const [one, other] = await session.checkpoint(
    await runner.run(agentOf([exact, large]), 'Pay.', { session }),
  )
  expect(one!.call!.arguments).toBe('{"eur":12345678901234567890}')
  expect(other!.call!.arguments).toMatchObject({
    bytes: 100_017,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
})

it('asks once for one wait, whatever crashes in between, and anew when the same call comes again', async () => {
  const first = await runner.run(agentOf(calls({ eur: 1 }, { eur: 2 })), 'Pay.', { session })
  const asked = await session.checkpoint(first)
  // Another process asks again, and stops while it waits.
  const abort = new AbortController()
  const waiting = elsewhere.resume(agentOf(), { signal: abort.signal })
  abort.abort(new Error('stopped'))
  await expect(waiting).rejects.toThrow('stopped')
  const open = (await annals.runs.requests({ session_id: session.id }).page()).items
  expect(open.map(({ id }) => id).sort()).toEqual(asked.map(({ id }) => id).sort())
  for (const request of asked) await answer(request, 'approve')
  const agent = agentOf(said('done'))
  await elsewhere.checkpoint(
    await runner.run(agent, (await elsewhere.resume(agent))!, { session: elsewhere }),
  )
  const next = await runner.run(agentOf(calls({ eur: 1 })), 'Again.', { session: elsewhere })
  const [anew] = await elsewhere.checkpoint(next)
  expect(anew).toMatchObject({ state: 'open', call: { arguments: { eur: 1 } } })
  expect(asked.map(({ id }) => id)).not.toContain(anew!.id)
})

it('takes back what a process stored that was killed after the answer, so that each call has one result', async () => {
  const [asked] = await session.checkpoint(await runner.run(agentOf(calls({ eur: 1 })), 'Pay.', { session }))
  await answer(asked!, 'approve')
  for (const text of ['killed before its checkpoint', 'done']) {
    const agent = agentOf(said(text))
    await runner.run(agent, (await elsewhere.resume(agent))!, { session: elsewhere })
  }
  expect((await session.getItems()).map(({ type }) => type)).toEqual([
    'message',
    'function_call',
    'function_call_result',
    'message',
  ])
})

it('writes under its lease, and nothing once another runner has it', async () => {
  await expect(
    session.withLease({ owner: 'a', ttl_ms: 1_000 }, async ({ fence }) => {
      await session.addItems([{ role: 'user', content: 'mine' }])
      const taken = await annals.runs.takeLease(session.id, { owner: 'a', ttl_ms: 60_000 })
      expect(taken.fence).toBeGreaterThan(fence)
      await session.addItems([{ role: 'user', content: 'late' }])
    }),
  ).rejects.toMatchObject({ error: 'fenced' })
  expect((await session.getItems()).length).toBe(1)
})
