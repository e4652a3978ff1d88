import { writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { useSharedService } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'

const service = useSharedService()
const annals = useTransfers(service)
const FORMAT = ['--format', 'openai-runs']

const call = {
  id: 'call_1',
  type: 'function',
  function: { name: 'search', arguments: '{"id":1234567890123456789}' },
}
const MESSAGES = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Where is my flight?' },
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'call_1', content: 'JG7FMM' },
]
const run = (user: string, n: number) => JSON.stringify({ user, configs: { n }, messages: MESSAGES })

async function fileOf(...lines: string[]): Promise<string> {
  const path = annals.newPath()
  await writeFile(path, `${lines.join('\n')}\n`)
  return path
}

/** Takes a log back to where an interrupted import would have left it. */
async function cutLog(project: string, session: string, last_seq: number): Promise<void> {
  const ids = [project, session, last_seq]
  await execute(
    service.databaseUrl,
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq > $3',
    ids,
  )
  await execute(
    service.databaseUrl,
    `UPDATE session_heads AS h SET last_seq = $3, last_message_id = e.id FROM entries e
     WHERE h.project_id = $1 AND h.session_id = $2 AND e.project_id = $1 AND e.session_id = $2 AND e.seq = $3`,
    ids,
  )
}

async function messagesOf(api: ApiClient, session: string) {
  const answer = await api.request<{ items: unknown[] }>('GET', `/api/v1/session/${session}/messages`)
  expectOk(answer)
  return answer
}

describe('recorded runs', () => {
  it('become sessions with their messages, once', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const path = await fileOf(run('a', 1), run('b', 2), run('a', 3))
    const nothing = 'There already: 0 sessions, 0 messages.'
    expect(await annals.import(path, project.name, ...FORMAT, '--dry-run')).toBe(
      `Would import 3 sessions, 12 messages.\n${nothing}`,
    )
    expect(expectOk(await api.listSessions()).items).toEqual([])
    expect(await annals.import(path, project.name, ...FORMAT)).toBe(
      `Imported 3 sessions, 12 messages.\n${nothing}`,
    )
    expect(await annals.import(path, project.name, ...FORMAT)).toBe(
      'Imported 0 sessions, 0 messages.\nThere already: 3 sessions, 12 messages.',
    )
    const { items } = expectOk(await api.listSessions({ user: 'a' }))
    expect(items.map(({ configs }) => configs.n).sort()).toEqual([1, 3])
    expect((await messagesOf(api, items[0]!.id)).json.data.items).toEqual(MESSAGES)
    const tokens = await api.request<{ total_tokens: number }>(
      'GET',
      `/api/v1/session/${items[0]!.id}/token_counts`,
    )
    expect(expectOk(tokens).total_tokens).toBeGreaterThan(10)
  })

  it('keep every digit', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const configs = '{"n": 1.50, "id": 12345678901234567890}'
    const message = '{"role":"user","content":"Hi","odd":{"id":98765432109876543210.10}}'
    await annals.import(
      await fileOf(`{"configs":${configs},"messages":[${message}]}`),
      project.name,
      ...FORMAT,
    )
    const list = await api.listSessions()
    expect(exactAt(list.text, 'data', 'items')).toMatchObject([{ $configs: exactJson(configs) }])
    const { text } = await messagesOf(api, list.json.data.items[0]!.id)
    expect(exactAt(text, 'data', 'items')).toEqual([exactJson(message)])
  })

  it('that were half stored are completed', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const messages = Array.from({ length: 1_500 }, (_, n) => ({ role: 'user', content: `${n}` }))
    const path = await fileOf(JSON.stringify({ user: 'a', configs: {}, messages }))
    await annals.import(path, project.name, ...FORMAT)
    const { id } = expectOk(await api.listSessions()).items[0]!
    await cutLog(project.id, id, 1_000)
    expect(await annals.import(path, project.name, ...FORMAT)).toBe(
      'Imported 0 sessions, 500 messages.\nThere already: 1 session, 1000 messages.',
    )
    expect((await messagesOf(api, id)).json.data.items).toEqual(messages)
  })

  it('with a bad line are not stored at all, and the line is named', async () => {
    const project = await service.newProject()
    const path = await fileOf(run('a', 1), '', JSON.stringify({ user: 'a', messages: [{ role: 'x' }] }))
    const result = await annals.run('import', path, '--project', project.name, ...FORMAT)
    expect(result.code).toBe(1)
    expect(result.stderr).toContain('Line 3: /messages/0/role is invalid in a message of openai format')
    expect((await annals.export(project.name)).body).toEqual([])
  })
})
