import { expect } from 'vitest'
import { runCommand } from './command_process.ts'

/** One of the things that `annals doctor` looked at, and what to do about it where something is wrong. */
export interface Diagnosis {
  check: string
  state: string
  found: string
  todo?: string
}

/** What `annals doctor` says, with these variables set; `of` picks what it found by the name of the check. */
export async function doctor(env: Record<string, string>, ...options: string[]) {
  const { code, stdout, stderr } = await runCommand(['doctor', '--json', ...options], env)
  expect(stdout, stderr).not.toBe('')
  const { checks, ...rest } = JSON.parse(stdout) as {
    healthy: boolean
    failures: number
    warnings: number
    checks: Diagnosis[]
  }
  const of = (name: string) => checks.filter(({ check }) => check === name)
  return { code, checks, of, ...rest }
}
