// A transcript of Claude Code, imported from where Claude Code keeps it, and looked at in Annals: which tools were
// called, and what failed. Importing it again stores nothing.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/claude_import.js [session-id folder]
//
// Without arguments it writes a small transcript of its own first, and runs offline.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AnnalsSessionStore } from '@annals/claude-agent-sdk'
import { Annals } from '@annals/client'
import { importSessionToStore } from '@anthropic-ai/claude-agent-sdk'

const SAMPLE_ID = '7c0c0f3e-6f1d-4d6c-9a53-0f6f0d3f7b12'

/** The lines of a short session, as Claude Code writes them. */
function sampleLines(): object[] {
  const line = (n: number, role: 'user' | 'assistant', content: unknown) => ({
    type: role,
    uuid: `0d5d1a86-7d7c-4dbb-8f7c-3a4d0c7f2a0${n}`,
    parentUuid: n === 1 ? null : `0d5d1a86-7d7c-4dbb-8f7c-3a4d0c7f2a0${n - 1}`,
    sessionId: SAMPLE_ID,
    timestamp: `2026-11-21T09:30:0${n}.000Z`,
    cwd: '/work/shop',
    message: { role, content },
  })
  return [
    { type: 'mode', mode: 'default', sessionId: SAMPLE_ID },
    line(1, 'user', 'Do the tests pass?'),
    line(2, 'assistant', [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'npm test' } }]),
    line(3, 'user', [
      { type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, content: '2 tests failed' },
    ]),
    line(4, 'assistant', [{ type: 'text', text: 'Two of them fail.' }]),
  ]
}

/** Puts the sample where Claude Code would have put it, and returns the folder that was worked in. */
async function writeSample(home: string): Promise<string> {
  process.env.CLAUDE_CONFIG_DIR = home
  const folder = join(home, 'shop')
  const project = join(home, 'projects', folder.replaceAll(/[^a-zA-Z0-9]/g, '-'))
  await mkdir(folder, { recursive: true })
  await mkdir(project, { recursive: true })
  const text = sampleLines().map((line) => `${JSON.stringify(line)}\n`)
  await writeFile(join(project, `${SAMPLE_ID}.jsonl`), text.join(''))
  return folder
}

const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
const store = new AnnalsSessionStore(annals)
const home = await mkdtemp(join(tmpdir(), 'claude-import-'))
try {
  const [sessionId = SAMPLE_ID, dir = await writeSample(home)] = process.argv.slice(2)
  for (const time of ['first', 'second']) {
    await importSessionToStore(sessionId, store, { dir })
    const filter_by_configs = { claude_session: { session_id: sessionId, subpath: null } }
    const [session] = (await annals.sessions.list({ filter_by_configs }).page()).items
    const counts = { message: 0, event: 0 }
    for await (const { kind } of annals.sessions.timeline(session!.id, { limit: 1_000 })) counts[kind] += 1
    console.log(`after the ${time} import: ${counts.message} messages, ${counts.event} events`)
    if (time === 'first') continue
    for await (const message of annals.sessions.messages(session!.id, { format: 'openai' })) {
      const {
        tool_calls: calls = [],
        role,
        content,
      } = message as {
        role: string
        content: unknown
        tool_calls?: { function: { name: string; arguments: string } }[]
      }
      for (const call of calls) console.log(`called ${call.function.name} ${call.function.arguments}`)
      if (role === 'tool') console.log(`it returned: ${content}`)
    }
  }
} finally {
  await rm(home, { recursive: true })
}
