// A graph's interrupt becomes a request, which a person answers while no process of the graph runs: the one that asked
// was killed. Another one reads the answer and resumes the graph with it.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/langgraph_approval.js
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Annals } from '@annals/client'
import { AnnalsSaver } from '@annals/langgraph'
import { Annotation, Command, END, interrupt, START, StateGraph } from '@langchain/langgraph'

const State = Annotation.Root({ eur: Annotation<number>(), paid: Annotation<string>() })
const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
const graph = new StateGraph(State)
  .addNode('pay', ({ eur }) => {
    const decision = interrupt<object, string>({ name: 'pay', arguments: { eur } })
    return { paid: decision === 'approve' ? `${eur} EUR` : 'nothing' }
  })
  .addEdge(START, 'pay')
  .addEdge('pay', END)
  .compile({ checkpointer: new AnnalsSaver(annals) })

const [, , step, session_id = '', thread_id = '', request_id = ''] = process.argv
const config = { configurable: { thread_id }, durability: 'sync' as const }

if (step === undefined) {
  const { id } = await annals.sessions.create({})
  const asked = randomUUID()
  const run = (next: string) =>
    spawnSync(process.execPath, [fileURLToPath(import.meta.url), next, id, `thread of ${id}`, asked], {
      stdio: 'inherit',
    })
  console.log(`the first process ended by ${run('ask').signal}`)
  const { call, call_sha256 } = await annals.runs.getRequest(asked)
  console.log(`a person approves ${call!.name} ${JSON.stringify(call!.arguments)}`)
  await annals.runs.resolve(asked, { decision: 'approve', by: 'ada', call_sha256: call_sha256! })
  process.exitCode = run('resume').status!
} else if (step === 'ask') {
  await graph.invoke({ eur: 40 }, config)
  const { tasks } = await graph.getState(config)
  const call = tasks[0]!.interrupts[0]!.value as { name: string; arguments: object }
  await annals.runs.request(session_id, { id: request_id, kind: 'approval', call })
  process.kill(process.pid, 'SIGKILL')
} else {
  const { decision } = await annals.runs.getRequest(request_id)
  const { paid } = await graph.invoke(new Command({ resume: decision ?? 'deny' }), config)
  console.log(`the second process paid ${paid}`)
}
