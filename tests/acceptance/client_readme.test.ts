import { expect, it } from 'vitest'
import { useSharedService } from '../harness/service.ts'
import { readmeProgram, userProgram } from '../harness/user_program.ts'

const service = useSharedService()

it.each([
  { path: 'packages/client/README.md', lines_min: 11 },
  { path: 'packages/adapters/adk/README.md', lines_min: 2 },
  { path: 'packages/adapters/ai-sdk/README.md', lines_min: 3 },
  { path: 'packages/adapters/claude-agent-sdk/README.md', lines_min: 3 },
  { path: 'packages/adapters/langgraph/README.md', lines_min: 3 },
  { path: 'packages/adapters/mcp/README.md', lines_min: 2 },
  { path: 'packages/adapters/openai-agents/README.md', lines_min: 2 },
])(
  'the program of $path compiles, runs and prints what it says',
  async ({ path, lines_min }) => {
    const { code, printed } = await readmeProgram(path)
    expect(printed.length).toBeGreaterThanOrEqual(lines_min)
    const program = await userProgram(code)
    try {
      expect(program.compile()).toEqual([])
      const { token } = await service.newProject()
      const finished = await program.run({ ANNALS_URL: service.node.url, ANNALS_API_KEY: token })
      expect(finished.stderr).toBe('')
      expect(finished.stdout.trimEnd().split('\n')).toEqual(printed)
      expect(finished.code).toBe(0)
    } finally {
      await program.remove()
    }
  },
  120_000,
)
