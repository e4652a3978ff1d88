import { existsSync, readFileSync } from 'node:fs'
import { BenchFailure } from './failure.ts'
import { ROOT } from './root.ts'

/** As it was recorded, in OpenAI's format. */
interface Message {
  role: string
  name?: string
  content?: string | null
  tool_calls?: { function: { name: string } }[] | null
}

/** A recorded run. */
export interface Run {
  user: string
  messages: Message[]
  reward?: number
  group?: string
}

/** Runs as agents recorded them: AIRLINE_RUNS names their file. */
export function recordedRuns(): Run[] {
  const path = process.env.AIRLINE_RUNS ?? `${ROOT}../shared/data/airline-runs.jsonl`
  if (!existsSync(path))
    throw new BenchFailure(`There are no recorded runs at ${path}: AIRLINE_RUNS names their file.`)
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { user, configs, messages } = JSON.parse(line)
      return { user, messages, reward: configs.reward, group: String(configs.task_id) }
    })
}
