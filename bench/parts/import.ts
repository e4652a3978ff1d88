import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ANNALS } from '../../lab/launch_service.ts'
import type { Figure, Part } from '../part.ts'
import { ROOT } from '../root.ts'

const FILES = 20
const LINES = 40_000
const CALLS_A_TURN = 6
const SECONDS_APART = 3
const BEGAN = Date.UTC(2026, 0, 1)

/** Transcripts of a coding agent, brought in by the command over HTTP. */
export const importing: Part = {
  name: 'import',
  describe: "annals import of a coding agent's transcripts over HTTP: lines a second",
  run: async (ctx) => {
    const service = await ctx.startService(await ctx.createDatabase())
    const words = (await readFile(`${ROOT}docs/import.md`, 'utf8')).split(/\s+/)
    const values: number[] = []
    for (let round = 1; round <= ctx.rounds; round++) {
      ctx.say(`round ${round} of ${ctx.rounds}`)
      const folder = `${ctx.directory}/transcripts`
      await mkdir(folder)
      let lines = 0
      for (let file = 0; file < FILES; file++) {
        const session = randomUUID()
        const written = transcript(session, ctx.some(LINES / FILES), words)
        await writeFile(`${folder}/${session}.jsonl`, `${written.join('\n')}\n`)
        lines += written.length
      }
      // Not DATABASE_URL: with it, the command would import into a database.
      const { PATH, HOME } = process.env
      const env = { PATH, HOME, ANNALS_URL: service.url, ANNALS_API_KEY: service.token }
      const began = performance.now()
      await promisify(execFile)(process.execPath, [ANNALS, 'import', folder], { env })
      values.push((1000 * lines) / (performance.now() - began))
      await rm(folder, { recursive: true })
    }
    const figure: Figure = { name: 'lines of Claude Code, 0.9 KB', unit: '/s', better: 'higher', values }
    return [{ ...figure, at_least: 5_000, aim: 10_000 }]
  },
}

/** At least so many lines, as Claude Code writes them: a question, calls with their results, and an answer. */
function transcript(sessionId: string, count: number, words: readonly string[]): string[] {
  const lines: string[] = []
  let parentUuid: string | null = null
  let told = 0
  const text = (length: number) => {
    told += length
    return Array.from({ length }, (_, at) => words[(told + 7 * at) % words.length]).join(' ')
  }
  const add = (line: object) => {
    const uuid = randomUUID()
    const timestamp = new Date(BEGAN + 1000 * SECONDS_APART * lines.length).toISOString()
    const common = { parentUuid, uuid, sessionId, timestamp, isSidechain: false, userType: 'external' }
    lines.push(
      JSON.stringify({ ...line, ...common, cwd: '/home/a/project', version: '2.0.14', gitBranch: 'main' }),
    )
    parentUuid = uuid
  }
  const say = (content: object, stop_reason: string) => {
    const usage = { input_tokens: 1_200, output_tokens: 80 }
    const message = { id: `msg_${randomUUID()}`, type: 'message', role: 'assistant', content: [content] }
    add({ type: 'assistant', message: { ...message, model: 'claude-sonnet-4-5', stop_reason, usage } })
  }
  while (lines.length < count) {
    add({ type: 'user', message: { role: 'user', content: text(40) } })
    for (let call = 0; call < CALLS_A_TURN; call++) {
      const id = `toolu_${randomUUID()}`
      say({ type: 'tool_use', id, name: 'Bash', input: { command: text(12) } }, 'tool_use')
      const content = [{ type: 'tool_result', tool_use_id: id, content: text(90) }]
      add({
        type: 'user',
        message: { role: 'user', content },
        toolUseResult: { stdout: text(10), stderr: '' },
      })
    }
    say({ type: 'text', text: text(60) }, 'end_turn')
  }
  return lines
}
