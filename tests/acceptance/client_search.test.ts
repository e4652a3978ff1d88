import { Annals } from '@annals/client'
import { describe, expect, it, vi } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { newSearchingProjects, search, switchSearch, untilIndexed } from '../harness/search.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const { annals, values, newSession } = commands

describe('annals search', () => {
  it('lists what was found, can be narrowed, and shows the session from a hit on', async () => {
    const { api, token } = commands
    const id = await newSession()
    const { project_id } = expectOk(await api.getSession(id))
    for (const text of ['before', 'where is the refund?', 'after'])
      expect((await annals(['append', id, '--type', 'note', '--data', JSON.stringify({ text })])).code).toBe(
        0,
      )
    for (const command of ['search', 'ask'])
      expect(await annals([command, 'refund'])).toMatchObject({
        code: 6,
        stderr: expect.stringContaining('annals project set <name> --search on'),
      })
    await switchSearch(service.adminClient(), project_id, true)
    await vi.waitFor(async () => expect(expectOk(await search(api, 'refund')).items).toHaveLength(1), {
      timeout: 30_000,
    })
    const hit = { session_id: id, seq: 2, kind: 'event', type: 'note' }
    expect(await values('search', 'refund')).toMatchObject([hit])
    expect(await values('search', 'refund', '--role', 'user')).toEqual([])
    expect(await values('search', 'refund', '--session', id, '--from', '1d', '--relevance')).toMatchObject([
      hit,
    ])
    expect((await values('search', 'refund', '--show', '1')).map(({ seq }) => seq)).toEqual([2, 3])
    expect(await values('search', '-paid refund', '--kind', 'event')).toMatchObject([hit])
    expect(await values('search', '-where refund')).toEqual([])
    expect(await values('search', 'refund', '-paid', '--kind', 'event')).toMatchObject([hit])
    expect(await values('search', '-where', '--kind', 'event', 'refund')).toEqual([])
    for (const query of [['-paid'], ['--', '-paid']])
      expect(await annals(['search', ...query])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('at least one word'),
      })
    expect(await annals(['search', 'refund', '--usr', 'omar'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("unknown option '--usr'"),
    })

    await untilIndexed(api)
    const client = new Annals({ url: service.node.url, token })
    const page = await client.search('refund', { kind: 'event', limit: 1 }).page()
    expect(page).toMatchObject({ items: [hit], has_more: false, indexed_through: expect.any(String) })
  })
})

describe('annals ask', () => {
  it('is answered with the session that a question in plain words is about, as recall() of the client is', async () => {
    const [project] = await newSearchingProjects(service, 1)
    const token = project!.token
    const api = await service.newClient({ token })
    const said = (role: string, content: string) => ({ kind: 'message', blob: { role, content } })
    const refund = await newSessionLog(api, { user: 'omar' })
    const weather = await newSessionLog(api, { user: 'lea' })
    expectOk(
      await refund.batch([
        said('user', 'Hello, this is Omar.'),
        said('assistant', 'How can I help you?'),
        said('user', 'I have complained twice about my refunds.'),
      ]),
      201,
    )
    expectOk(
      await weather.batch([said('user', 'Will it rain?'), said('assistant', 'Omar asked as well.')]),
      201,
    )
    await untilIndexed(api)
    const question = 'Did anybody complain about a refund?'

    const client = new Annals({ url: service.node.url, token })
    const { items, terms, complete } = await client.recall(question)
    expect(items).toMatchObject([
      { session_id: refund.id, title: 'Hello, this is Omar.', entries: [{ seq: 3, before: { seq: 2 } }] },
    ])
    expect({ terms, complete }).toEqual({ terms: ['anybody', 'complain', 'refund'], complete: true })

    const asked = async (...args: string[]) => {
      const { code, stdout, stderr } = await annals(['ask', ...args], { ANNALS_TOKEN: token })
      expect(code, stderr).toBe(0)
      return stdout === '' ? [] : stdout.split('\n').map((line) => JSON.parse(line))
    }
    expect(await asked(question)).toEqual(items)
    expect(await asked(...question.split(' '))).toEqual(items)
    expect(await asked(question, '--user', 'lea')).toEqual([])
    expect(await asked('omar', '--role', 'assistant')).toMatchObject([{ session_id: weather.id }])
    expect(await asked('omar', '--limit', '1')).toHaveLength(1)
    const shown = await annals(['ask', question, '--no-json'], { ANNALS_TOKEN: token })
    expect(shown.stdout).toContain('I have complained twice about my refunds.')
    expect(shown.stderr).toContain(`show ${refund.id} --from-seq 3`)
    const nothing = await annals(['ask', 'submarine', '--no-json'], { ANNALS_TOKEN: token })
    expect(nothing).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing was found.') })
    expect(await asked('omar', '-hello')).toMatchObject([{ session_id: weather.id }])
  })
})
