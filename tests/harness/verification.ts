import { expect } from 'vitest'
import { runCommand } from './command_process.ts'

/** A problem that was found. */
interface Finding {
  project_id: string
  check: string
  session_id: string | null
  place: string
  detail: string
  means: string
  todo: string
}

/** What `annals verify --json` prints, and its exit code. */
export interface Verified {
  code: number | null
  sound: boolean
  findings_total: number
  found: Record<string, number>
  findings: Finding[]
  projects: Array<Record<string, string | number | null>>
}

export async function verifyDatabase(databaseUrl: string, ...args: string[]): Promise<Verified> {
  const { code, stdout, stderr } = await runCommand(['verify', '--json', ...args], {
    DATABASE_URL: databaseUrl,
  })
  expect(stdout, stderr).not.toBe('')
  return { ...(JSON.parse(stdout) as Verified), code }
}
