// An agent's client that reads yesterday's failure through the Model Context Protocol: it finds the run that failed, the
// tool call in it that did, and what the tool had returned.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/mcp_failure.js
import { Annals } from '@annals/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

const url = process.env.ANNALS_URL ?? 'http://127.0.0.1:8029'
const token = process.env.ANNALS_API_KEY

/** What ran yesterday, as an agent would have stored it. */
async function runYesterday(): Promise<void> {
  const annals = new Annals({ url, token })
  const { id } = await annals.sessions.create({ configs: { agent: 'booking', outcome: 'failed' } })
  const call = {
    id: 'call_7',
    type: 'function',
    function: { name: 'book_seat', arguments: '{"seat":"14C"}' },
  }
  await annals.sessions.appendBatch(id, [
    { kind: 'message', blob: { role: 'user', content: 'Seat 14C, please.' } },
    { kind: 'message', blob: { role: 'assistant', content: null, tool_calls: [call] } },
    { kind: 'message', blob: { role: 'tool', tool_call_id: 'call_7', content: 'Error: seat 14C is taken' } },
  ])
}

interface ShownEntry {
  seq: number
  blocks: { tool_result?: { call_seq: number; is_failed: boolean } }[]
}

/** Asks a tool, and reads the JSON of its answer. */
async function ask<T>(client: Client, name: string, asked: Record<string, unknown>): Promise<T> {
  const { content, isError } = await client.callTool({ name, arguments: asked })
  const [first] = content
  if (first?.type !== 'text' || isError) throw new Error(`${name} failed: ${JSON.stringify(content)}`)
  return JSON.parse(first.text) as T
}

await runYesterday()

const client = new Client({ name: 'example', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
const headers = { authorization: `Bearer ${token}` }
await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } }))

const configs = { outcome: 'failed' }
const { sessions } = await ask<{ sessions: { id: string }[] }>(client, 'list_sessions', { configs, limit: 1 })
const session_id = sessions[0]!.id
const { entries } = await ask<{ entries: ShownEntry[] }>(client, 'read_session', { session_id, last: 100 })
const results = entries.flatMap(({ blocks }) => blocks.flatMap(({ tool_result }) => tool_result ?? []))
const failed = results.find(({ is_failed }) => is_failed)!
const call = await ask<{ name: string; arguments: string; result: { text: string } }>(
  client,
  'get_tool_call',
  {
    session_id,
    seq: failed.call_seq,
  },
)
process.stdout.write(`${call.name} ${call.arguments} returned: ${call.result.text}\n`)
await client.close()
