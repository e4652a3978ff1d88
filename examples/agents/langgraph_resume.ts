// A graph whose process is killed in the middle goes on in another process: what was done is not done again. Then it
// waits for a person, is resumed in a third process, travels back in time, and goes another way.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/langgraph_resume.js
//
// It runs offline; with ANTHROPIC_API_KEY, Claude writes the texts.
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Annals } from '@annals/client'
import { AnnalsSaver } from '@annals/langgraph'
import Anthropic from '@anthropic-ai/sdk'
import { Annotation, Command, END, interrupt, START, StateGraph } from '@langchain/langgraph'

const State = Annotation.Root({
  topic: Annotation<string>(),
  facts: Annotation<string>(),
  draft: Annotation<string>(),
  verdict: Annotation<string>(),
})

async function ask(prompt: string, scripted: string): Promise<string> {
  if (!process.env.ANTHROPIC_API_KEY) return scripted
  const model = process.env.ANTHROPIC_MODEL ?? 'claude-sonnet-4-5'
  const messages = [{ role: 'user' as const, content: prompt }]
  const { content } = await new Anthropic().messages.create({ model, max_tokens: 500, messages })
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

async function research({ topic }: typeof State.State) {
  console.log(`process ${step}: researches ${topic}`)
  return { facts: await ask(`Name one fact about ${topic}.`, `${topic} were built by hand.`) }
}

async function write({ facts }: typeof State.State) {
  if (step === '1') process.kill(process.pid, 'SIGKILL')
  console.log(`process ${step}: writes`)
  return { draft: await ask(`Write a title about: ${facts}`, `By hand: ${facts}`) }
}

function review({ draft }: typeof State.State) {
  return { verdict: interrupt<string, string>(`Publish "${draft}"?`) }
}

const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
const graph = new StateGraph(State)
  .addNode('research', research)
  .addNode('write', write)
  .addNode('review', review)
  .addEdge(START, 'research')
  .addEdge('research', 'write')
  .addEdge('write', 'review')
  .addEdge('review', END)
  .compile({ checkpointer: new AnnalsSaver(annals) })

const [, , step, thread_id = randomUUID()] = process.argv
// A step begins when what the one before did is durable.
const config = { configurable: { thread_id }, durability: 'sync' as const }

if (step === undefined) {
  for (const next of ['1', '2', '3']) {
    const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url), next, thread_id], {
      stdio: 'inherit',
    })
    if (child.signal) console.log(`process ${next}: killed by ${child.signal}`)
    else if (child.status !== 0) process.exit(1)
  }
} else if (step === '1') {
  await graph.invoke({ topic: 'cathedrals' }, config)
} else if (step === '2') {
  await graph.invoke(null, config)
  const { tasks } = await graph.getState(config)
  console.log(`process 2: waits for a person: ${tasks[0]?.interrupts[0]?.value}`)
} else {
  const { verdict } = await graph.invoke(new Command({ resume: 'yes' }), config)
  console.log(`process 3: verdict ${verdict}`)
  for await (const past of graph.getStateHistory(config)) {
    if (past.next[0] !== 'write') continue
    const fork = await graph.updateState(past.config, { facts: 'cathedrals took centuries.' })
    await graph.invoke(null, fork)
    console.log(`process 3: another way: ${(await graph.getState(config)).values.facts}`)
    break
  }
}
