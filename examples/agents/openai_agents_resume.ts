// A run of the OpenAI Agents SDK that needs an approval. Its process is killed while it waits; a person says yes; another
// process, which runs the same program, goes on with the call that was approved.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/openai_agents_resume.js
//
// It runs offline, with the SDK's scripted model; with OPENAI_API_KEY and @openai/agents, give the agent a real one.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Annals } from '@annals/client'
import { AnnalsSession } from '@annals/openai-agents'
import { Agent, Runner, tool } from '@openai/agents-core'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing'
import { z } from 'zod'

const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
const session = new AnnalsSession({ annals, sessionId: 'booking 7', user: 'omar' })
const runner = new Runner({ tracingDisabled: true })
const bookSeat = tool({
  name: 'book_seat',
  description: 'Books a seat',
  parameters: z.object({ seat: z.string() }),
  needsApproval: true,
  execute: async ({ seat }) => `${seat} is booked`,
})
const call = [functionCall('book_seat', { seat: '14C' }, { callId: 'call_1' })]
const last = [assistantMessage('Seat 14C is yours.')]

/** Starts the run, or goes on with the one that waits. */
async function work(): Promise<void> {
  const lease = { owner: `process ${process.pid}`, ttl_ms: 2_000, wait_ms: 30_000 }
  await session.withLease(lease, async ({ signal }) => {
    const agentOf = (...steps: (typeof call | typeof last)[]) =>
      new Agent({ name: 'Booking', model: new ScriptedModel(steps), tools: [bookSeat] })
    let agent = agentOf(last)
    let state = await session.resume(agent, { signal })
    if (!state) {
      agent = agentOf(call, last)
      const asked = await runner.run(agent, 'Book seat 14C.', { session, signal })
      await session.checkpoint(asked)
      process.send!('asked')
      state = await session.resume(agent, { signal })
    }
    const done = await runner.run(agent, state!, { session, signal })
    await session.checkpoint(done)
    console.log(done.finalOutput)
  })
  process.disconnect()
}

async function main(): Promise<void> {
  const first = fork(process.argv[1]!, ['work'])
  await once(first, 'message')
  first.kill('SIGKILL')
  await once(first, 'exit')
  for await (const { id, call, call_sha256 } of annals.runs.requests({ session_id: session.id })) {
    console.log(`a person approves ${call!.name} ${JSON.stringify(call!.arguments)}`)
    await annals.runs.resolve(id, { decision: 'approve', by: 'ada', call_sha256: call_sha256! })
  }
  await once(fork(process.argv[1]!, ['work']), 'exit')
  console.log((await session.getItems()).map(({ type }) => type).join(', '))
}

await (process.argv[2] === 'work' ? work() : main())
