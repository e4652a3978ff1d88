// A run of the OpenAI Agents SDK that is killed while it waits for an approval, and goes on in another process. Without
// an argument this file is both: it starts itself as the first process, which ends in the middle, and then resumes.
// Offline, with the SDK's scripted model; with OPENAI_API_KEY and @openai/agents installed, give the agent a real one.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/openai_agents_resume.js
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Annals } from '@annals/client'
import { AnnalsSession } from '@annals/openai-agents'
import { Agent, Runner, RunState, tool } from '@openai/agents-core'
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

/** Runs until the call needs an approval, and dies without another word. What it knew is in Annals. */
async function firstProcess(): Promise<void> {
  const model = new ScriptedModel([[functionCall('book_seat', { seat: '14C' }, { callId: 'call_1' })]])
  const agent = new Agent({ name: 'Booking', model, tools: [bookSeat] })
  const { state } = await runner.run(agent, 'Book seat 14C.', { session })
  await annals.sessions.append(session.id, {
    type: 'waits_for_approval',
    key: 'run',
    data: { state: `${state}` },
  })
  process.kill(process.pid, 'SIGKILL')
}

async function secondProcess(): Promise<void> {
  const model = new ScriptedModel([[assistantMessage('Seat 14C is yours.')]])
  const agent = new Agent({ name: 'Booking', model, tools: [bookSeat] })
  const [waiting] = (await annals.sessions.latest(session.id, { key: 'run' }).page()).items
  if (waiting?.kind !== 'event') throw new Error('no run waits')
  const state = await RunState.fromString(agent, String(waiting.data.state))
  for (const call of state.getInterruptions()) state.approve(call)
  const { finalOutput } = await runner.run(agent, state, { session })
  const kinds = (await session.getItems()).map((item) => item.type)
  process.stdout.write(`${finalOutput} (${kinds.join(', ')})\n`)
}

if (process.argv[2] === 'first') await firstProcess()
else {
  const { signal } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), 'first'], {
    stdio: 'inherit',
  })
  process.stdout.write(`The first process ended by ${signal}.\n`)
  await secondProcess()
}
