import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { useSharedService } from '../harness/service.ts'
import { userProgram } from '../harness/user_program.ts'

const service = useSharedService()

const LANGGRAPH_RESUME = `process 1: researches cathedrals
process 1: killed by SIGKILL
process 2: writes
process 2: waits for a person: Publish "By hand: cathedrals were built by hand."?
process 3: verdict yes
process 3: writes
process 3: another way: cathedrals took centuries.
`

const CLAUDE_IMPORT = `after the first import: 4 messages, 1 events
after the second import: 4 messages, 1 events
called Bash {"command":"npm test"}
it returned: Error: 2 tests failed
`

const TWO_RUNNERS = `10 events of user
10 events of support
shared state: {"app:asked_by_north":5,"app:asked_by_south":5}
`

const AI_SDK_RESUME = `reloaded: One two three four five six seven eight
stored: user, assistant
the server that answered ended by SIGKILL
reloaded: One two three four five [The answer was interrupted.]
`

const CLAUDE_PERMISSION = `a person allows Bash {"command":"npm publish"}
the second process: {"behavior":"allow","updatedInput":{"command":"npm publish"}}
`

const LANGGRAPH_APPROVAL = `the first process ended by SIGKILL
a person approves pay {"eur":40}
the second process paid 40 EUR
`

const OPENAI_AGENTS_RESUME = `a person approves book_seat {"seat":"14C"}
Seat 14C is yours.
message, function_call, function_call_result, message
`

const AI_SDK_APPROVAL = `a person approves pay {"to":"Ada","eur":40}
the tool: Ada got 40 EUR
the second process: Paid.
stopped: what came is kept
`

const ADK_APPROVAL = `a person approves pay {"to":"Ada","eur":40}
Ada got 40 EUR.
0 calls wait
`

it.each([
  ['adk_approval.ts', ADK_APPROVAL],
  ['adk_two_runners.ts', TWO_RUNNERS],
  ['ai_sdk_approval.ts', AI_SDK_APPROVAL],
  ['ai_sdk_resume.ts', AI_SDK_RESUME],
  ['claude_import.ts', CLAUDE_IMPORT],
  ['claude_permission.ts', CLAUDE_PERMISSION],
  ['langgraph_approval.ts', LANGGRAPH_APPROVAL],
  ['langgraph_resume.ts', LANGGRAPH_RESUME],
  ['mcp_failure.ts', 'book_seat {"seat":"14C"} returned: Error: seat 14C is taken\n'],
  ['openai_agents_resume.ts', OPENAI_AGENTS_RESUME],
])(
  'examples/agents/%s runs offline, and prints what it found',
  async (name, printed) => {
    const code = await readFile(new URL(`../../examples/agents/${name}`, import.meta.url), 'utf8')
    const program = await userProgram(code)
    try {
      await program.translate()
      const { token } = await service.newProject()
      const finished = await program.run({ ANNALS_URL: service.node.url, ANNALS_API_KEY: token })
      expect(finished).toEqual({ code: 0, stdout: printed, stderr: '' })
    } finally {
      await program.remove()
    }
  },
  120_000,
)
