import { Annals } from '@annals/client'
import { AnnalsSession } from '@annals/openai-agents'
import { Agent, type AgentInputItem, Runner, RunState, setTracingDisabled, tool } from '@openai/agents-core'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { useService } from '../../../../tests/harness/service.ts'

const service = useService()
setTracingDisabled(true)

it('a conversation loses and doubles nothing when the service is killed in the middle of an append or a pop', async () => {
  const { token } = await service.newProject()
  const first = await service.startNode()
  const { port } = new URL(first.url)
  const annals = new Annals({ url: first.url, token, retries: 200, timeout_ms: 120_000 })
  const session = new AnnalsSession({ annals, sessionId: 'long' })
  const said = (content: string): AgentInputItem => ({ type: 'message', role: 'user', content })
  const turns = Array.from({ length: 30 }, (_, n) => [said(`${n}`), said(`${n}, too`)])
  let restarted: Promise<unknown> | undefined
  for (const [n, turn] of turns.entries()) {
    if (n === 8) restarted = first.kill().then(() => service.startNode({ PORT: port }))
    await session.addItems([...turn, said('popped')])
    expect(await session.popItem()).toEqual(said('popped'))
  }
  await restarted
  expect(await session.getItems()).toEqual(turns.flat())
})

it('a run with a tool and an approval goes on after its process and the service were killed, with each item once', async () => {
  const { token } = await service.newProject()
  const first = service.node
  const { port } = new URL(first.url)
  let booked = 0
  const book = tool({
    name: 'book_seat',
    description: 'Books a seat',
    parameters: z.object({ seat: z.string() }),
    needsApproval: true,
    execute: async ({ seat }) => {
      booked += 1
      return `${seat} is booked`
    },
  })
  /** What a process has: everything but the text of the interrupted run's state. */
  const begin = (...steps: ConstructorParameters<typeof ScriptedModel>[0][]) => {
    const model = new ScriptedModel(steps.flatMap((step) => [...(step ?? [])]))
    const agent = new Agent({ name: 'Booking', model, tools: [book] })
    const annals = new Annals({ url: first.url, token, retries: 20, timeout_ms: 60_000 })
    const session = new AnnalsSession({ annals, sessionId: 'customer 7' })
    return { agent, model, session, runner: new Runner({ tracingDisabled: true }) }
  }

  const before = begin([[functionCall('book_seat', { seat: '14C' }, { callId: 'c1' })]])
  const interrupted = await before.runner.run(before.agent, 'Book 14C', { session: before.session })
  expect(interrupted.interruptions).toHaveLength(1)
  const state = interrupted.state.toString()
  await first.kill()
  const restarting = service.startNode({ PORT: port })

  const after = begin([[assistantMessage('Done: 14C.')], [assistantMessage('You asked for 14C.')]])
  const resumed = await RunState.fromString(after.agent, state)
  resumed.approve(resumed.getInterruptions()[0]!)
  const finished = await after.runner.run(after.agent, resumed, { session: after.session })
  await restarting
  expect(finished.finalOutput).toBe('Done: 14C.')
  expect(booked).toBe(1)
  const items = await after.session.getItems()
  expect(items).toMatchObject([
    { role: 'user', content: 'Book 14C' },
    { type: 'function_call', callId: 'c1' },
    { type: 'function_call_result', callId: 'c1', output: { text: '14C is booked' } },
    { role: 'assistant' },
  ])
  await after.runner.run(after.agent, 'What did I ask for?', { session: after.session })
  expect(after.model.lastCall!.request.input).toMatchObject([...items, { content: 'What did I ask for?' }])
  expect(await after.session.getItems()).toHaveLength(6)
})
