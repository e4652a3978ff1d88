// Two runners, as two replicas of a server would be, work on one session at the same time. Neither loses what the other
// stores, and the state that they share with every session of the app counts both.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/adk_two_runners.js
//
// The model is scripted; with GEMINI_API_KEY, Gemini answers.
import { AnnalsSessionService } from '@annals/adk'
import { Annals } from '@annals/client'
import { BaseLlm, type BaseLlmConnection, LlmAgent, type LlmResponse, Runner } from '@google/adk'

class ScriptedModel extends BaseLlm {
  readonly #answer: string

  constructor(answer: string) {
    super({ model: 'scripted' })
    this.#answer = answer
  }

  async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
    yield { content: { role: 'model', parts: [{ text: this.#answer }] } }
  }

  async connect(): Promise<BaseLlmConnection> {
    throw new Error('The scripted model has no live connection.')
  }
}

const [appName, userId, sessionId] = ['support', 'alice', `two-runners-${Date.now()}`]

/** A process of its own would have the same: a client, a service, an agent, a runner. */
function newRunner(name: string): Runner {
  const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
  const model = process.env.GEMINI_API_KEY ? 'gemini-2.5-flash' : new ScriptedModel(`answer of ${name}`)
  const agent = new LlmAgent({ name: 'support', model, instruction: 'Answer in one sentence.' })
  return new Runner({ appName, agent, sessionService: new AnnalsSessionService(annals) })
}

async function ask(name: string, times: number): Promise<void> {
  const runner = newRunner(name)
  for (let n = 1; n <= times; n++) {
    const newMessage = { role: 'user', parts: [{ text: `question ${n}` }] }
    const stateDelta = { [`app:asked_by_${name}`]: n }
    for await (const _event of runner.runAsync({ userId, sessionId, newMessage, stateDelta }));
  }
}

const service = newRunner('reader').sessionService
await service.createSession({ appName, userId, sessionId })
await Promise.all([ask('north', 5), ask('south', 5)])

const session = await service.getSession({ appName, userId, sessionId })
for (const author of ['user', 'support'])
  console.log(`${session?.events.filter((event) => event.author === author).length} events of ${author}`)
console.log(`shared state: ${JSON.stringify(session?.state)}`)
