import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { apiClient } from '../harness/api_client.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, sessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const SECRET = `sk-ant-api03-${'aZ3xK9_qLm7Rt2Vw'.repeat(6)}`
const OTHER = `ghp_${'kJ4mQ8sT2vX6zB1nC5'.repeat(2)}`

interface Line {
  session_id: string
  entries: number
  found: Record<string, number>
  entries_with_findings: number
  attachments: number
  copy: { session_id: string; entries: number; added: number } | null
}

/** A project whose sessions are older than its rules, and an administrator's key. */
async function newProject() {
  const project = await service.newProject()
  const path = `/admin/v1/projects/${project.id}/tokens`
  const body = { name: 'redact', scopes: ['admin', 'read', 'write'] }
  const make = () => service.adminClient().request<{ token: string }>('POST', path, { body })
  const newToken = async () => expectOk(await make(), 201).token
  let token = await newToken()
  const api = apiClient(service.node.url, token)
  const run = async (...args: string[]) => {
    const ended = await commands.annals(['redact', ...args], { ANNALS_TOKEN: token })
    for (const secret of [SECRET, OTHER]) expect(ended.stdout + ended.stderr).not.toContain(secret)
    return ended
  }
  const lines = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args)
    expect(code, stderr).toBe(0)
    return stdout === '' ? [] : stdout.split('\n').map((line) => JSON.parse(line) as Line)
  }
  const setRules = async (rules?: object[]) => {
    expectOk(await api.request('PUT', '/api/v1/redaction', { body: rules ? { rules } : {} }))
    // A new key meets them at once.
    token = await newToken()
  }
  return { api, run, lines, setRules }
}

/** A log with what a copy has to keep: two formats, keys, times, meta, a retraction, a compaction and base64. */
async function newLog(api: ReturnType<typeof apiClient>) {
  const log = await newSessionLog(api, { user: 'omar', configs: { key: SECRET, n: 1.5 } })
  const image = `data:image/png;base64,${Buffer.alloc(40_000, 7).toString('base64')}`
  const at = '2024-03-01T01:00:00.000000Z'
  const entries = [
    { kind: 'message', blob: { role: 'user', content: `use ${SECRET}` }, meta: { mine: OTHER } },
    { kind: 'event', type: 'note', key: 'plan', data: { n: 12, key: OTHER, again: OTHER }, occurred_at: at },
    { kind: 'message', format: 'anthropic', blob: { role: 'assistant', content: 'Done.' } },
    {
      kind: 'message',
      blob: { role: 'user', content: [{ type: 'image_url', image_url: { url: image } }] },
    },
    { kind: 'event', type: 'wrong', data: {} },
  ]
  const sent = expectOk(await log.batch(entries), 201)
  const path = `/api/v1/session/${log.id}`
  const ids = [sent.items[4]!.id]
  expectOk(await api.request('POST', `${path}/retractions`, { body: { ids } }))
  const summary = { blob: { role: 'user', content: `It was ${SECRET}.` } }
  const except = [sent.items[2]!.id]
  const compaction = { to_seq: 4, summary, except, by: 'test' }
  expectOk(await api.request('POST', `${path}/compactions`, { body: compaction }), 201)
  expectOk(await log.addEvent('last', { text: `bye ${SECRET}` }))
  return log
}

const FOUND = { anthropic_key: 4, github_token: 3 }

describe('annals redact', { timeout: 120_000 }, () => {
  it('counts what is stored, makes a copy that is cleared of it, continues the copy, and leaves the original alone', async () => {
    const { api, run, lines, setRules } = await newProject()
    const log = await newLog(api)
    const clean = await newSessionLog(api)
    expectOk(await clean.addEvent('note', { text: 'nothing' }))
    const before = (await log.timeline()).text

    const off = await run('--all')
    expect([off.code, off.stderr]).toEqual([1, expect.stringContaining('has no rules for writing')])
    const dry = await lines('--all', '--dry-run')
    const counted = { entries: 8, found: FOUND, entries_with_findings: 4, attachments: 1, copy: null }
    expect(new Map(dry.map((line) => [line.session_id, line]))).toEqual(
      new Map([
        [log.id, { session_id: log.id, ...counted }],
        [
          clean.id,
          {
            session_id: clean.id,
            entries: 1,
            found: {},
            entries_with_findings: 0,
            attachments: 0,
            copy: null,
          },
        ],
      ]),
    )
    const told = await run(log.id.slice(0, 36), '--dry-run', '--no-json')
    expect(told.stdout).toContain('1 session: anthropic_key 4, github_token 3.')

    await setRules()
    const [made] = await lines(log.id)
    expect(made).toEqual({
      session_id: log.id,
      ...counted,
      copy: { session_id: expect.any(String), entries: 8, added: 8 },
    })
    const copied = sessionLog(api, made!.copy!.session_id)
    const [{ items: originals }, answer] = [expectOk(await log.timeline()), await copied.timeline()]
    for (const secret of [SECRET, OTHER]) expect(answer.text).not.toContain(secret)
    const { items } = expectOk(answer)
    const shape = (all: typeof items) =>
      all.map(({ seq, kind, type, format, key, retracted_by }: Record<string, unknown>) => ({
        ...{ seq, kind, type, format, key },
        is_retracted: retracted_by != null,
      }))
    expect(shape(items)).toEqual(shape(originals))
    expect(items[0]).toMatchObject({
      blob: { content: 'use <ANTHROPIC_KEY_1>' },
      meta: { mine: '<GITHUB_TOKEN_1>', redacted: { anthropic_key: 1, github_token: 1 } },
      occurred_at: originals[0]!.created_at,
    })
    expect(items[1]).toMatchObject({
      data: { n: 12, key: '<GITHUB_TOKEN_1>', again: '<GITHUB_TOKEN_1>' },
      occurred_at: originals[1]!.occurred_at,
    })
    expect(items[3]).toMatchObject({ blob: (originals[3] as unknown as { blob: object }).blob })
    expect(items[6]).toMatchObject({ data: { from_seq: 1, to_seq: 4, except_seqs: [3], by: 'test' } })
    const session = expectOk(await api.getSession(copied.id))
    expect(session).toMatchObject({
      user_id: expectOk(await api.getSession(log.id)).user_id,
      forked_from: log.id,
      configs: { key: '<ANTHROPIC_KEY_1>', n: 1.5, redacted_from: log.id },
    })

    expect((await lines(log.id))[0]!.copy).toEqual({ session_id: copied.id, entries: 8, added: 0 })
    expect((await log.timeline()).text).toBe(before)
    const numbered = 'SELECT count(*)::int AS masks FROM redaction_masks WHERE session_id = $1'
    expect(await queryRows(service.databaseUrl, numbered, [log.id])).toEqual([{ masks: 0 }])
    expectOk(await log.addEvent('later', { key: OTHER }))
    const all = await lines('--all')
    expect(all.map(({ session_id, copy }) => [session_id, copy?.added]).sort()).toEqual(
      [
        [log.id, 1],
        [clean.id, undefined],
      ].sort(),
    )
    expectOk(await copied.addEvent('own', {}))
    expectOk(await log.addEvent('more', {}))
    expectOk(await log.addEvent('more', {}))
    const apart = await run(log.id)
    expect([apart.code, apart.stderr]).toEqual([1, expect.stringContaining('has entries of its own')])
  })

  it('masks what a rule refuses, applies patterns and scopes of rules, and makes another copy by other rules', async () => {
    const { api, run, lines, setRules } = await newProject()
    const log = await newSessionLog(api)
    expectOk(await log.addEvent('note', { text: `K-123456 and ${SECRET}`, mail: 'omar@example.com' }))
    expectOk(await log.addEvent('other', { text: 'K-123456' }))
    const order = { pattern: 'K-[0-9]{6}', as: 'ORDER' }
    const rules = [
      { what: { detector: 'secrets' }, do: 'refuse', when: 'write' },
      { where: { types: ['note'] }, what: order, do: 'hash', when: 'write' },
      { what: { detector: 'personal' }, do: 'mask', when: 'read' },
    ]
    await setRules(rules)
    const [made] = await lines(log.id)
    expect(made!.found).toEqual({ anthropic_key: 1, order: 1 })
    const { items } = expectOk(await sessionLog(api, made!.copy!.session_id).timeline())
    expect(items.map(({ data }) => data)).toEqual([
      { text: expect.stringMatching(/^<ORDER:.{12}> and <ANTHROPIC_KEY>$/), mail: 'omar@example.com' },
      { text: 'K-123456' },
    ])
    await setRules(rules.slice(0, 1))
    const [other] = await lines(log.id)
    expect(other!.copy!.session_id).not.toBe(made!.copy!.session_id)

    const neither = await run()
    expect([neither.code, neither.stderr]).toEqual([2, expect.stringContaining('--all')])
    expect((await run(log.id, '--all')).code).toBe(2)
    expect((await run(randomUUID())).code).toBe(3)
    const other_key = await commands.annals(['redact', log.id, '--dry-run'])
    expect(other_key.code).toBe(4)
  })
})
