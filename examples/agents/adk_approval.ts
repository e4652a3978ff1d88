// An agent of the ADK whose tool needs a confirmation. The process is killed while it waits; a person says yes, and another
// process, which runs the same program, goes on with the call that was approved.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/adk_approval.js
//
// The model is scripted. A long-running tool waits in the same way.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { AnnalsSessionService } from '@annals/adk'
import { Annals } from '@annals/client'
import {
  BaseLlm,
  type BaseLlmConnection,
  FunctionTool,
  LlmAgent,
  type LlmResponse,
  Runner,
} from '@google/adk'
import { z } from 'zod'

/** Calls the tool, and says what it returned. */
class ScriptedModel extends BaseLlm {
  async *generateContentAsync({ contents }: { contents: object[] }): AsyncGenerator<LlmResponse, void> {
    const paid = /Ada got \d+ EUR/.exec(JSON.stringify(contents))
    const functionCall = { name: 'pay', args: { to: 'Ada', eur: 40 } }
    yield { content: { role: 'model', parts: [paid ? { text: `${paid[0]}.` } : { functionCall }] } }
  }

  async connect(): Promise<BaseLlmConnection> {
    throw new Error('The scripted model has no live connection.')
  }
}

const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
const sessionService = new AnnalsSessionService(annals)
const name = { appName: 'till', userId: 'omar', sessionId: 'order 17' }
const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({ to: z.string(), eur: z.number() }),
  requireConfirmation: true,
  execute: ({ to, eur }) => ({ paid: `${to} got ${eur} EUR` }),
})
const agent = new LlmAgent({ name: 'till', model: new ScriptedModel({ model: 'scripted' }), tools: [pay] })
const runner = new Runner({ appName: 'till', agent, sessionService })

async function run(newMessage: { role?: string; parts?: object[] }): Promise<void> {
  for await (const { content } of runner.runAsync({ ...name, newMessage }))
    for (const { text } of content?.parts ?? []) if (text) console.log(text)
}

/** Starts the run, or goes on with the one that waits. */
async function work(): Promise<void> {
  if (!(await sessionService.getSession(name))) {
    await sessionService.createSession(name)
    await run({ role: 'user', parts: [{ text: 'Pay Ada 40 EUR.' }] })
  }
  await sessionService.askForApprovals(name)
  process.send!('asked')
  // One process at a time: the tool must not run twice.
  const lease = { owner: `process ${process.pid}`, ttl_ms: 2_000, wait_ms: 30_000 }
  await annals.runs.withLease(sessionService.sessionId(name), lease, async ({ signal }) => {
    const answer = await sessionService.resume(name, { signal })
    if (answer) await run(answer)
  })
  process.disconnect()
}

async function main(): Promise<void> {
  const first = fork(process.argv[1]!, ['work'])
  await once(first, 'message')
  first.kill('SIGKILL')
  await once(first, 'exit')
  const session_id = sessionService.sessionId(name)
  for await (const { id, call, call_sha256 } of annals.runs.requests({ session_id })) {
    console.log(`a person approves ${call!.name} ${JSON.stringify(call!.arguments)}`)
    await annals.runs.resolve(id, { decision: 'approve', by: 'bob', call_sha256: call_sha256! })
  }
  await once(fork(process.argv[1]!, ['work']), 'exit')
  console.log(`${(await sessionService.askForApprovals(name)).length} calls wait`)
}

await (process.argv[2] === 'work' ? work() : main())
