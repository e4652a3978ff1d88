import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type AgentRun, agentRuns } from '../harness/agent_runs.ts'
import type { ApiClient, Session } from '../harness/api_client.ts'
import type { ClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Project } from '../harness/service.ts'

/** A user, the latest session of that user that failed, and the third tool call in it. */
export interface FailedRun {
  user: string
  session: Session
  third: ToolCall
}

/** A tool call as its messages have it, and what it gave. */
interface ToolCall {
  name: string
  arguments: string
  result: string
}

interface Call {
  id: string
  function: { name: string; arguments: string }
}

/** Imports the recorded runs into a project, and returns them. */
export async function importRuns(commands: ClientCommands, project: Project): Promise<AgentRun[]> {
  const runs = agentRuns()
  const path = join(commands.directory, 'runs.jsonl')
  await writeFile(path, runs.map((run) => JSON.stringify(run)).join('\n'))
  const { code, stderr } = await commands.annals(['import', path], { ANNALS_TOKEN: project.token })
  expect(code, stderr).toBe(0)
  return runs
}

/** The latest failed run of the first user whose latest failed run has three tool calls. */
export async function findFailedRun(api: ApiClient, runs: AgentRun[]): Promise<FailedRun> {
  for (const user of new Set(runs.map((run) => run.user))) {
    const query = { user, filter_by_configs: '{"reward":0}', time_desc: 'true', limit: 1 }
    const [session] = expectOk(await api.listSessions(query)).items
    const third = session && (await thirdCall(api, session.id))
    if (third) return { user, session, third }
  }
  throw new Error('No failed run among these has three tool calls')
}

async function thirdCall(api: ApiClient, session: string): Promise<ToolCall | undefined> {
  const messages = expectOk(
    await api.request<{ items: Array<Record<string, unknown>> }>(
      'GET',
      `/api/v1/session/${session}/messages`,
    ),
  ).items
  const call = messages.flatMap(({ tool_calls }) => (tool_calls as Call[] | undefined) ?? [])[2]
  const answer = messages.find(({ tool_call_id }) => tool_call_id === call?.id)
  return call && answer && { ...call.function, result: String(answer.content) }
}
