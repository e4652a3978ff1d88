import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Real runs, which stand beside the repository where they are. */
const SHARED = fileURLToPath(new URL('../../../shared/data/airline-runs.jsonl', import.meta.url))
const RUNS_MAX = 60

/** A recorded run, as `annals import` takes it. */
export interface AgentRun {
  user: string
  configs: Record<string, unknown>
  messages: unknown[]
}

/** Lines of recorded runs: real ones where they are at hand, else ones of the same shape. */
export function agentRuns(runs_max = RUNS_MAX): AgentRun[] {
  if (!existsSync(SHARED)) return Array.from({ length: 12 }, (_, number) => madeRun(number))
  const lines = readFileSync(SHARED, 'utf8').split('\n', runs_max)
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as AgentRun)
}

/** Every second one failed; each has four tool calls. */
function madeRun(number: number): AgentRun {
  const calls = [0, 1, 2, 3].flatMap((step) => {
    const id = `call_${number}_${step}`
    const called = {
      name: `look_up_${step}`,
      arguments: JSON.stringify({ reservation: `R${number}-${step}` }),
    }
    const content = JSON.stringify({ reservation: `R${number}-${step}`, seats: step + 1 })
    return [
      { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: called }] },
      { role: 'tool', tool_call_id: id, name: called.name, content },
    ]
  })
  return {
    user: `user_${number % 3}`,
    configs: { agent: 'made', env: 'airline', trial: number % 4, reward: (number % 2) + 0.0 },
    messages: [
      { role: 'system', content: 'Be **brief**.' },
      { role: 'user', content: `Where is reservation R${number}?` },
      ...calls,
      { role: 'assistant', content: 'It is on its way.' },
    ],
  }
}
