import { afterAll, beforeAll, expect, it } from 'vitest'
import { useSharedService } from '../harness/service.ts'
import { compile, readmeProgram, type Said, type UserProgram, userProgram } from '../harness/user_program.ts'

const service = useSharedService()
const READMES = [
  { path: 'packages/client/README.md', lines_min: 11 },
  { path: 'packages/adapters/adk/README.md', lines_min: 2 },
  { path: 'packages/adapters/ai-sdk/README.md', lines_min: 3 },
  { path: 'packages/adapters/claude-agent-sdk/README.md', lines_min: 3 },
  { path: 'packages/adapters/langgraph/README.md', lines_min: 3 },
  { path: 'packages/adapters/mcp/README.md', lines_min: 2 },
  { path: 'packages/adapters/openai-agents/README.md', lines_min: 2 },
]
const programs: Array<{ program: UserProgram; printed: string[]; said: Said[] }> = []

beforeAll(async () => {
  const read = await Promise.all(READMES.map(({ path }) => readmeProgram(path)))
  const made = await Promise.all(read.map(({ code }) => userProgram(code)))
  const said = await compile(made)
  for (const [at, program] of made.entries())
    programs.push({ program, printed: read[at]!.printed, said: said[at]! })
})
afterAll(() => Promise.all(programs.map(({ program }) => program.remove())))

it.each(READMES.map((readme, at) => ({ ...readme, at })))(
  'the program of $path compiles, runs and prints what it says',
  async ({ lines_min, at }) => {
    const { program, printed, said } = programs[at]!
    expect(printed.length).toBeGreaterThanOrEqual(lines_min)
    expect(said).toEqual([])
    const { token } = await service.newProject()
    const finished = await program.run({ ANNALS_URL: service.node.url, ANNALS_API_KEY: token })
    expect(finished.stderr).toBe('')
    expect(finished.stdout.trimEnd().split('\n')).toEqual(printed)
    expect(finished.code).toBe(0)
  },
  120_000,
)
